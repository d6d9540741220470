"""Threads that are left running: all of Python's, none of a library's, and those that have not begun."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time

import pytest

from evaluator.worker.measurement import threads
from evaluator.worker.measurement.threads import Threads


def test_threads_are_counted_while_they_run() -> None:
    watch, ending = Threads(), threading.Event()
    assert watch.count() == 0
    for _ in range(2):
        threading.Thread(target=ending.wait, daemon=True).start()
    _thread.start_new_thread(ending.wait, ())
    assert watch.count() == 3
    assert watch.count() == 3
    ending.set()
    until = time.monotonic() + 10
    while watch.count() and time.monotonic() < until:
        time.sleep(0.01)
    assert watch.count() == 0


def test_those_of_before_do_not_count() -> None:
    ending = threading.Event()
    old = threading.Thread(target=ending.wait, daemon=True)
    old.start()
    watch = Threads()
    assert watch.count() == 0
    ending.set()
    old.join()
    assert watch.count() == 0


@pytest.mark.processes
def test_a_thread_that_has_not_begun_is_waited_for() -> None:
    """On one core it begins only when this one waits: twenty in a row, each told at once."""
    text = (
        "import _thread, os, time\nfrom evaluator.worker.measurement.threads import Threads\n"
        "os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])\n"
        "watch, found = Threads(), []\n"
        "for n in range(20):\n"
        "    _thread.start_new_thread(time.sleep, (60,))\n"
        "    found.append(watch.count())\n"
        "print(found, flush=True)\nos._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(list(range(1, 21)))


def test_a_thread_of_a_library_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system lists it, and Python never counts it."""
    listed = [frozenset({"1"})]
    monkeypatch.setattr(threads, "_tasks", lambda: listed[0])
    slept: list[float] = []
    monkeypatch.setattr(threads, "_sleep", slept.append)
    monkeypatch.setattr(threads, "_now", lambda: sum(slept))
    watch = Threads()
    assert (watch.count(), slept) == (0, [])
    listed[0] |= {"2"}
    assert watch.count() == 0
    assert sum(slept) == pytest.approx(threads.BEGIN_SECONDS, abs=0.01)
    before = len(slept)
    assert (watch.count(), len(slept)) == (0, before)
