"""What a process and its descendants use, and how often workers are looked at."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from evaluator.sandbox import watchdog
from evaluator.sandbox.watchdog import POLL_SECONDS, Watchdog, family, private_bytes, resident_bytes
from tests.waiting import wait_until

TREE = """
import os, subprocess, sys, threading, time
depth = int(sys.argv[1])
def start():
    subprocess.Popen([sys.executable, sys.argv[0], str(depth - 1)])
if depth:
    subprocess.Popen([sys.executable, sys.argv[0], '0'])
    thread = threading.Thread(target=lambda: (start(), time.sleep(600)), daemon=True)  # the child is the thread's
    thread.start()
time.sleep(600)
"""
"""Each process starts one that has no children, and, from another thread, one that goes on."""


@contextlib.contextmanager
def running(*words: str) -> Iterator[psutil.Process]:
    """A process, ended with all that it started."""
    started = subprocess.Popen(words)
    process = psutil.Process(started.pid)
    try:
        yield process
    finally:
        for one in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.Error):
                one.kill()
        started.wait()


def by_psutil(process: psutil.Process) -> set[int]:
    """The tree as psutil sees it."""
    return {process.pid, *(child.pid for child in process.children(recursive=True))}


@pytest.mark.processes
@pytest.mark.parametrize("files", [True, False])
def test_a_family_is_the_tree_that_psutil_sees(tmp_path: object, monkeypatch: pytest.MonkeyPatch, files: bool) -> None:
    script = f"{tmp_path}/tree.py"
    with open(script, "w") as stream:
        stream.write(TREE)
    if files and not watchdog.has_children_files():
        pytest.skip("this kernel does not list the children of a thread")
    monkeypatch.setattr(watchdog, "has_children_files", lambda: files)
    with running(sys.executable, script, "2") as process:
        wait_until(lambda: len(by_psutil(process)) == 5)
        found = family(process)
        assert found[0] == process.pid
        assert len(found) == len(set(found)) == 5
        assert set(found) == by_psutil(process)
        last = psutil.Process(found[-1])
        last.kill()
        wait_until(lambda: last.pid not in family(process) or last.status() == psutil.STATUS_ZOMBIE)
        assert {*found} - {last.pid} <= {*family(process)}
    assert family(process) == []


@pytest.mark.processes
def test_the_children_of_other_threads_are_found_by_the_files() -> None:
    """The file of the main thread lists its own alone."""
    if not watchdog.has_children_files():
        pytest.skip("this kernel does not list the children of a thread")
    started: list[subprocess.Popen[bytes]] = []
    go_on = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen(["sleep", "60"]))
        go_on.wait(20)

    thread = threading.Thread(target=start)
    thread.start()
    wait_until(lambda: started)
    try:
        assert started[0].pid in family(psutil.Process())
    finally:
        go_on.set()
        thread.join()
        started[0].kill()
        started[0].wait()


@pytest.mark.processes
def test_an_id_that_is_another_processs_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals must not reach who got the number of a process that ended."""
    with running("sleep", "60") as process:
        assert family(process) == [process.pid]
        other = psutil.Process(process.pid)
        assert family(other) == [process.pid]
        monkeypatch.setattr(other, "_ident", (process.pid, -100.0))  # psutil goes by the id and when it began
        assert family(other) == []


@pytest.mark.processes
def test_memory_of_processes() -> None:
    text = "import time; block = bytearray(b'x') * (64 << 20); print(flush=True); time.sleep(600)"
    with running(sys.executable, "-c", "import time; time.sleep(600)") as small:
        started = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        assert started.stdout is not None
        started.stdout.readline()
        try:
            large = psutil.Process(started.pid)
            for measure in (resident_bytes, private_bytes):
                assert measure([large.pid]) - measure([small.pid]) > 60 << 20
                both = measure([large.pid, small.pid])
                assert abs(both - measure([large.pid]) - measure([small.pid])) < 8 << 20
            assert resident_bytes([large.pid]) == pytest.approx(large.memory_info().rss, rel=0.05)
        finally:
            started.kill()
            started.wait()
            started.stdout.close()
    assert resident_bytes([started.pid]) == private_bytes([started.pid]) == 0
    assert resident_bytes([]) == private_bytes([]) == 0


@pytest.mark.processes
def test_memory_that_is_shared_counts_once() -> None:
    """A fork shares all that neither writes: resident counts it twice."""
    text = (
        "import os, time\nblock = bytearray(b'x') * (64 << 20)\n"
        "if os.fork() == 0: time.sleep(600)\nprint(flush=True); time.sleep(600)"
    )
    started = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    process = psutil.Process(started.pid)
    pids = family(process)
    try:
        assert len(pids) == 2
        assert resident_bytes(pids) > 128 << 20
        assert 64 << 20 < private_bytes(pids) < 100 << 20
    finally:
        for pid in pids:
            os.kill(pid, 9)
        started.wait()
        started.stdout.close()


class Looked:
    """Counts how often it is looked at."""

    def __init__(self, busy: bool) -> None:
        self.busy = busy
        self.times = 0

    def examine(self) -> None:
        """Count."""
        self.times += 1


@pytest.fixture
def dog() -> Iterator[Watchdog]:
    """A watchdog."""
    one = Watchdog()
    yield one
    one.close()


@pytest.mark.slow
def test_those_that_work_are_looked_at_often_and_the_others_rarely(dog: Watchdog) -> None:
    busy, idle = Looked(True), Looked(False)
    dog.watch(busy)
    dog.watch(idle)
    wait_until(lambda: busy.times >= 41)
    assert 3 <= idle.times <= busy.times / 8
    assert idle.times <= busy.times // watchdog.IDLE_EVERY + 1
    idle.busy = True  # it was asked for something
    before = busy.times, idle.times
    wait_until(lambda: busy.times >= before[0] + 10)
    assert idle.times - before[1] >= 9


def test_whoever_leaves_is_looked_at_no_more(dog: Watchdog) -> None:
    one, other = Looked(True), Looked(True)
    dog.watch(one)
    dog.watch(other)
    wait_until(lambda: one.times)
    dog.leave(one)
    dog.leave(one)  # twice is no matter
    after = other.times
    wait_until(lambda: other.times >= after + 2)
    before = one.times
    wait_until(lambda: other.times >= after + 6)
    assert one.times == before


def test_closing_ends_the_thread_at_once(dog: Watchdog) -> None:
    thread = dog._thread
    one = Looked(True)
    dog.watch(one)
    wait_until(lambda: one.times)
    began = time.monotonic()
    dog.close()
    assert time.monotonic() - began < 20 * POLL_SECONDS
    assert not thread.is_alive()


def test_closing_from_its_own_thread_does_not_wait_for_itself(dog: Watchdog) -> None:
    class Closes(Looked):
        def examine(self) -> None:
            """Close whoever looks."""
            dog.close()
            self.times += 1

    one = Closes(True)
    dog.watch(one)
    wait_until(lambda: not dog._thread.is_alive())
    assert one.times == 1
