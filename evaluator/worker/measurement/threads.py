"""Threads that a candidate leaves running."""

from __future__ import annotations

import _thread
import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from evaluator.worker.loading.cpu_mode import CudaIsCpu

_count, _now, _sleep = _thread._count, time.monotonic, time.sleep
BEGIN_SECONDS = 0.1
"""How long a thread that the system lists, and Python does not yet, may take to begin. Threads of libraries are never
Python's: each costs this once."""


class Threads:
    """Python's threads since this was made, also those that `threading` does not list."""

    def __init__(self) -> None:
        self._before = self._counted = _count()
        self._known = _tasks()

    def count(self) -> int:
        """How many there are more than at the beginning.

        A thread counts itself when it first runs, which may be long after it was started (`thread_run` in CPython's
        _threadmodule.c): new threads of the process are waited for.
        """
        until = _now() + BEGIN_SECONDS
        while len(_tasks() - self._known) > max(0, _count() - self._counted) and _now() < until:
            _sleep(0.0005)
        self._known, self._counted = _tasks(), _count()
        return max(0, self._counted - self._before)


def elsewhere(call: Callable[[], Any], device: torch.device, *, mapped: bool) -> Any:
    """What a call gives, or raises, in a thread of its own; `mapped`: where a GPU stands for the CPU."""
    found: list[Any] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            if device.type == "cuda":
                torch.cuda.set_device(device)
            with CudaIsCpu() if mapped else contextlib.nullcontext():
                found.append(call())
        except BaseException as error:  # it is raised again where it is waited for
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def _tasks() -> frozenset[str]:
    """Ids of all threads of this process, whoever started them; none where there is no /proc."""
    with contextlib.suppress(OSError):
        return frozenset(os.listdir("/proc/self/task"))  # noqa: PTH208 - names, not paths
    return frozenset()
