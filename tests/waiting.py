"""Waits for what a test expects to happen, instead of pausing for as long as it might take."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def wait_until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until a condition holds; the test fails if it does not within some seconds."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to ask how it ended."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
