"""Resource use of processes and their descendants, and the thread that watches all workers of a server."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import psutil

POLL_SECONDS = 0.05
"""How often workers that have something to do are looked at."""
IDLE_EVERY = 10
"""Those that wait for a message are looked at once in so many polls."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watched(Protocol):
    """Something that can be looked at."""

    busy: bool

    def examine(self) -> None:
        """End it if it uses too much."""


class Watchdog:
    """One thread for all workers, because watching costs time while they are measured."""

    def __init__(self) -> None:
        self._watched: list[Watched] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
        self._thread.start()

    def watch(self, one: Watched) -> None:
        """Look at it from now on."""
        self._watched.append(one)

    def leave(self, one: Watched) -> None:
        """Look no more."""
        with contextlib.suppress(ValueError):
            self._watched.remove(one)

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _run(self) -> None:
        poll = 0
        while not self._ended.wait(POLL_SECONDS):
            poll += 1
            for one in list(self._watched):
                if one.busy or poll % IDLE_EVERY == 0:
                    one.examine()


def family(first: psutil.Process) -> list[int]:
    """Its id and those of all its descendants; nothing if it has ended and its id is another's."""
    if not first.is_running():
        return []
    found = [first.pid]
    if not has_children_files():
        with contextlib.suppress(psutil.Error):
            found += [child.pid for child in first.children(recursive=True)]
        return found
    for pid in found:  # grows while it is gone through
        found += _children(pid)
    return found


def has_children_files() -> bool:
    """Whether the kernel lists the children of each thread (CONFIG_PROC_CHILDREN): proc(5)."""
    return Path(f"/proc/self/task/{threading.get_native_id()}/children").exists()


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names, not paths
    except OSError:
        return found
    for thread in threads:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/children", "rb") as stream:
            found += [int(word) for word in stream.read().split()]
    return found


def resident_bytes(pids: Sequence[int]) -> int:
    """Bytes of memory that some processes hold; what they share is counted more than once."""
    used = 0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", "rb") as stream:
            used += int(stream.read().split()[1]) * _PAGE
    return used


def private_bytes(pids: Sequence[int]) -> int:
    """The same with what is shared counted once (proportional set size); slower."""
    used = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            used += psutil.Process(pid).memory_full_info().pss
    return used
