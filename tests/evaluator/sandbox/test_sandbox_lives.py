"""Workers from their start to their end: what those of one code share, memory that is lent and taken back, many at
once, and what is waited for."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
import torch

from evaluator.sandbox.fork_server import CacheScope, ForkServer
from evaluator.sandbox.shared_buffers import SharedTensor, shared_tensor
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.worker.process.isolation import Limits
from tests.waiting import wait_until

LIMITS = Limits(memory=3 << 30, processes=32, file_size=1 << 30, limit_data=True)
CPU = torch.device("cpu")
Start = Callable[..., Worker]


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts a worker whose candidate runs the given statements on `x` and returns `out`."""
    with contextlib.ExitStack() as stack:

        def start(body: str, limits: Limits = LIMITS, of: ForkServer = server, **words: Any) -> Worker:
            lines = "".join(f"    {line}\n" for line in body.splitlines())
            text = f"import os, sys, time, torch\nkept = []\ndef run(x):\n    out = x + 1\n{lines}    return out\n"
            worker = stack.enter_context(of.spawn("candidate", limits, {"c.py": text.encode()}, **words))
            assert load(worker)["ok"]
            return worker

        yield start


def load(worker: Worker) -> dict[str, Any]:
    """Have it load its candidate."""
    message: dict[str, Any] = {
        "form": "function",
        "role": "candidate",
        "file": "c.py",
        "entry": "run",
        "dims": {},
        "inputs": "",
    }
    return worker.request("load", 30, device="cpu", maps_cuda=False, **message)


def lend(elements: int) -> tuple[SharedTensor, SharedTensor]:
    """Memory for an argument and a result."""
    x, y = (shared_tensor({"shape": [elements], "dtype": "float32"}, CPU) for _ in range(2))
    x.tensor.fill_(1.0)
    return x, y


def call(worker: Worker, x: SharedTensor, y: SharedTensor, seconds: float = 30) -> dict[str, Any]:
    """One call."""
    tree = {"list": [{"tensor": 0}]}
    more = {"watch": "", "late": False, "written": []}
    lent = [x.buffer, y.buffer]
    lent_to = {"tensors": [x.message], "result": {"tensor": 0}, "returns": [y.message]}
    return worker.request("call", seconds, lent, tree=tree, **lent_to, **more)


def once(worker: Worker, seconds: float = 30) -> list[float]:
    """The result of one call on four ones."""
    x, y = lend(4)
    try:
        assert call(worker, x, y, seconds)["ok"]
        return y.tensor.tolist()
    finally:
        x.close()
        y.close()


def words(worker: Worker) -> list[str]:
    """What it printed."""
    return worker.output().split()


# --- lineages ---------------------------------------------------------------------------------------------------------

WRITES = """
place = os.environ["TRITON_CACHE_DIR"]
os.makedirs(place, exist_ok=True)
print(len(os.listdir(place)))
open(os.path.join(place, str(os.getpid()) + os.path.basename(os.getcwd())), "w").write("x")
"""


def test_what_compilers_keep_is_there_for_the_next_process_of_the_code(server: ForkServer, start: Start) -> None:
    mine, others = server.cache_scope("candidate"), server.cache_scope("eager")
    found = []
    for cache_scope in (mine, mine, others, mine, None):
        worker = start(WRITES, cache_scope=cache_scope)
        once(worker)
        found += words(worker)
        worker.close()
    assert found == ["0", "1", "0", "2", "0"]


@pytest.mark.parametrize("name", ["TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH", "XDG_CACHE_HOME"])
def test_only_caches_lie_in_the_shared_folder(server: ForkServer, start: Start, name: str) -> None:
    cache_scope = server.cache_scope("candidate")
    worker = start(f"print(os.environ[{name!r}], os.environ['HOME'], os.environ['TMPDIR'])", cache_scope=cache_scope)
    once(worker)
    cache, home, temporary = words(worker)
    assert cache.startswith(f"{cache_scope.folder}/")
    assert [home, temporary] == [str(worker.folder), f"{worker.folder}/tmp"]


def test_processes_of_a_cache_scope_are_one_user_and_others_are_another(server: ForkServer, start: Start) -> None:
    one, other = server.cache_scope("a"), server.cache_scope("a")
    if not one.uid:
        pytest.skip("there are no other users here")
    assert one.folder != other.folder
    users = []
    for cache_scope in (one, one, other):
        worker = start("print(os.getuid())", cache_scope=cache_scope)
        once(worker)
        users += words(worker)
    assert users == [str(one.uid), str(one.uid), str(other.uid)]
    assert one.uid != other.uid


def test_one_cache_scope_does_not_reach_into_another(server: ForkServer, start: Start) -> None:
    own, other = server.cache_scope("candidate"), server.cache_scope("eager")
    secret = other.folder / "kernel.ptx"
    secret.write_text("mine")
    worker = start(
        f"for place, mode in (({str(secret)!r}, 'r'), ({str(other.folder / 'new')!r}, 'w')):\n"
        "    try: open(place, mode); print('opened')\n"
        "    except OSError as error: print(type(error).__name__)",
        cache_scope=own,
    )
    if not any(layer.applied for layer in worker.layers if layer.name == "landlock files"):
        pytest.skip("landlock is not in force here")
    once(worker)
    assert words(worker) == ["PermissionError", "PermissionError"]
    assert [path.name for path in other.folder.iterdir()] == ["kernel.ptx"]


@pytest.mark.processes
def test_a_cache_scope_goes_with_its_server() -> None:
    with ForkServer("cpu") as server:
        cache_scope: CacheScope = server.cache_scope("candidate")
        assert cache_scope.folder.is_dir()
        assert cache_scope.folder.parent == server.folder
    assert not cache_scope.folder.exists()


# --- memory that is lent ----------------------------------------------------------------------------------------------

MAPPED = "print(sum('memfd:kopt' in line for line in open('/proc/self/maps')))"


def test_what_is_forgotten_is_no_longer_mapped(start: Start) -> None:
    worker = start(MAPPED)
    first = lend(4)
    call(worker, *first)
    assert [shared.buffer.sent_to for shared in first] == [{worker.id}] * 2
    worker.forget(shared.buffer for shared in first)
    assert [shared.buffer.sent_to for shared in first] == [set()] * 2
    second = lend(4)
    assert call(worker, *second)["ok"]
    call(worker, *first)  # lent anew, it is mapped anew
    assert words(worker) == ["2", "2", "4"]
    assert first[1].tensor.tolist() == [2.0] * 4
    for shared in (*first, *second):
        shared.close()


def test_what_was_never_sent_needs_no_forgetting(start: Start) -> None:
    worker = start("pass")
    x, y = lend(4)
    worker.forget([x.buffer, y.buffer])
    assert worker.lent_bytes == 0
    assert call(worker, x, y)["ok"]
    assert worker.lent_bytes == x.buffer.size + y.buffer.size
    worker.forget([x.buffer, x.buffer])
    assert worker.lent_bytes == y.buffer.size
    x.close()
    y.close()


LARGE = (320 << 20) // 4
"""Elements of a tensor of 320 MiB: two are more than the limit."""
TIGHT = Limits(memory=480 << 20, processes=32, file_size=1 << 30, limit_data=False)


def test_lent_memory_is_not_held_against_the_limit(start: Start) -> None:
    worker = start("out = x\nx.sum()", TIGHT)
    x, y = lend(LARGE)
    assert call(worker, x, y)["ok"]
    worker.examine()
    assert worker.lost_because is None
    worker.forget([x.buffer, y.buffer])
    assert worker.request("map", 10)["ok"]
    assert worker.lent_bytes == 0
    worker.examine()
    assert worker.lost_because is None
    x.close()
    y.close()
    assert once(worker) == [1.0] * 4


def test_what_is_kept_after_it_was_asked_back_is_held_against_it(start: Start) -> None:
    worker = start("kept.append(x)\nout = x\nx.sum()", TIGHT)
    for _ in range(2):
        x, y = lend(LARGE)
        try:
            assert call(worker, x, y)["ok"]
        except WorkerLostError:
            break  # the watchdog was there first
        worker.forget([x.buffer, y.buffer])
        x.close()
        y.close()
        del x, y
    with contextlib.suppress(WorkerLostError):
        worker.request("map", 10)
    worker.examine()
    assert worker.lost_because is not None
    assert worker.lost_because[0] == "memory"


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_worker_is_gone_when_its_process_is(start: Start) -> None:
    worker = start("pass")
    pid = worker.pid
    assert not worker.gone(0.05)
    assert psutil.pid_exists(pid)
    worker.close()
    assert worker.gone()
    assert not psutil.pid_exists(pid)
    worker.close()  # twice is no matter
    assert worker.gone(0.0)


@pytest.mark.processes
def test_closing_waits_for_nobody() -> None:
    """The server, which would tell of the end, does not run meanwhile."""
    with ForkServer("cpu") as server:
        worker = server.spawn("candidate", LIMITS, {})
        os.kill(server._process.pid, signal.SIGSTOP)
        try:
            worker.close()
            assert not worker.gone(0.2)
        finally:
            os.kill(server._process.pid, signal.SIGCONT)
        assert worker.gone()


def test_a_closed_worker_ends_in_the_middle_of_a_call(start: Start) -> None:
    deaf = "import signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)"
    worker = start(f"{deaf}\nos.spawnvp(os.P_NOWAIT, 'sleep', ['sleep', '600'])\ntime.sleep(600)")
    failed: list[WorkerLostError] = []

    def ask() -> None:
        try:
            once(worker, 60)
        except WorkerLostError as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    family = psutil.Process(worker.pid)
    wait_until(lambda: worker.busy and family.children(recursive=True))
    all_of_it = [family, *family.children(recursive=True)]
    worker.close()
    assert worker.gone()
    thread.join(20)
    assert not thread.is_alive()
    assert len(failed) == 1
    assert not psutil.wait_procs(all_of_it, timeout=10)[1]


def test_what_it_printed_cannot_be_read_after_the_end(start: Start) -> None:
    worker = start("print('said')")
    once(worker)
    assert words(worker) == ["said"]
    worker.close()
    assert worker.output() == ""


# --- several at once --------------------------------------------------------------------------------------------------


def test_several_threads_spawn_at_once(start: Start) -> None:
    def live(n: int) -> tuple[int, list[float], bool]:
        worker = start(f"out = x + {n}")
        try:
            return worker.id, once(worker), True
        finally:
            worker.close()
            assert worker.gone()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(live, range(8)))
    assert len({id for id, _, _ in found}) == 8
    assert [result for _, result, _ in found] == [[1.0 + n] * 4 for n in range(8)]


def test_all_who_wait_for_an_end_are_told(start: Start) -> None:
    """Whichever of them reads the server's message."""
    workers = [start("pass") for _ in range(4)]
    with ThreadPoolExecutor(12) as pool:
        waiting = [pool.submit(worker.gone, 30.0) for worker in workers for _ in range(3)]
        for worker in workers:
            worker.close()
        assert all(one.result() for one in waiting)


def test_one_who_waits_does_not_keep_others_from_spawning(start: Start) -> None:
    slow = start("pass")
    ended = threading.Event()

    def wait() -> bool:
        found = slow.gone(30.0)
        ended.set()
        return found

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait)
        assert once(start("pass")) == [2.0] * 4
        assert not ended.is_set()
        slow.close()
        assert waiting.result()


# --- modules that are imported beforehand -----------------------------------------------------------------------------


def test_modules_are_imported_before_the_first_worker(server: ForkServer, start: Start) -> None:
    body = "print('sched' in sys.modules, os.environ.get('TORCHINDUCTOR_COMPILE_THREADS'))"
    plain = start(body)
    once(plain)
    with ForkServer("cpu", preload=("no_such_module_anywhere", "sched")) as prepared:
        worker = start(body, of=prepared)
        once(worker)
        assert words(worker) == ["True", "None"]
        worker.close()
    assert words(plain) == ["False", "None"]
