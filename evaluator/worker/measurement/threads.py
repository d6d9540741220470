"""Threads that a candidate leaves running."""

from __future__ import annotations

import _thread
import contextlib
import os
import time

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


def _tasks() -> frozenset[str]:
    """Ids of all threads of this process, whoever started them; none where there is no /proc."""
    with contextlib.suppress(OSError):
        return frozenset(os.listdir("/proc/self/task"))  # noqa: PTH208 - names, not paths
    return frozenset()
