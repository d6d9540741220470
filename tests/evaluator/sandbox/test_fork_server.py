"""Workers: what they can reach, what ends them, and what is left when they are gone."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.sandbox.shared_buffers import host_buffer, shared_tensor
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import ConfigurationError
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

LIMITS = Limits(memory=3 << 30, processes=32, file_size=1 << 30, limit_data=True)
Start = Callable[..., Worker]


@pytest.fixture
def start(server: ForkServer) -> Iterator[Start]:
    """Starts a worker whose candidate runs the given statements on `x` (and `os`, `torch`) and returns `out`."""
    started: list[Worker] = []

    def start(body: str, limits: Limits = LIMITS, before: str = "") -> Worker:
        started.append(spawned(server, body, limits, before))
        return started[-1]

    yield start
    for worker in started:
        worker.close()


def spawned(server: ForkServer, body: str, limits: Limits = LIMITS, before: str = "") -> Worker:
    """A worker with the candidate that `start` describes."""
    lines = "\n".join("        " + line for line in body.splitlines())
    text = (
        f"import os, sys, time, socket, torch\n{before}\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        out = x + 1\n"
        f"{lines}\n        return out\n"
    )
    worker = server.spawn("candidate", limits, {"candidate.py": text.encode()})
    message: dict[str, Any] = {"form": "kernelbench", "role": "candidate", "file": "candidate.py", "entry": ""}
    assert worker.request("load", 30, device="cpu", maps_cuda=False, dims={}, **message)["ok"]
    assert worker.request("build", 30, tree={"list": []}, tensors=[], seed=1)["ok"]
    return worker


def call(worker: Worker, seconds: float = 30) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
    """(reply, input, output) of one call on eight floats."""
    cpu = torch.device("cpu")
    x, y = (shared_tensor({"shape": [8], "dtype": "float32"}, cpu) for _ in range(2))
    x.tensor.normal_()
    y.tensor.zero_()
    reply = worker.request(
        "call",
        seconds,
        [x.buffer, y.buffer],
        tree={"list": [{"tensor": 0}]},
        tensors=[x.message],
        result={"tensor": 0},
        returns=[y.message],
        watch=False,
        late=False,
        written=[],
    )
    return reply, x.tensor, y.tensor


def needs(worker: Worker, layer: str) -> None:
    """Skip where the kernel does not offer a layer."""
    if not any(found.applied for found in worker.layers if found.name == layer):
        pytest.skip(f"{layer} is not in force here")


def test_a_result_comes_back_through_memory(start: Start) -> None:
    reply, x, y = call(start("pass"))
    assert reply["ok"]
    assert torch.equal(y, x + 1)


def test_a_worker_sees_no_other_process_and_has_no_parent(start: Start) -> None:
    worker = start("print(os.getpid(), os.getppid(), sorted(p for p in os.listdir('/proc') if p.isdigit()))")
    needs(worker, "private /proc")
    call(worker)
    assert worker.output().strip() == "1 0 ['1']"


@pytest.mark.parametrize("place", ["outside", "home", "package"])
def test_it_writes_nothing_outside_its_folder(start: Start, tmp_path: Path, place: str) -> None:
    target = {
        "outside": tmp_path / "x",
        "home": Path.home() / "kopt-test-x",
        "package": Path(__file__).parents[1] / "x",
    }[place]
    worker = start(f"open({str(target)!r}, 'w').write('x')")
    needs(worker, "landlock files")
    reply, _, _ = call(worker)
    assert reply["error"]["type"] == "PermissionError"
    assert not target.exists()


def test_it_writes_into_its_folder(start: Start) -> None:
    worker = start("open('mine', 'w').write('x')")
    assert call(worker)[0]["ok"]
    assert (worker.folder / "mine").read_text() == "x"


def test_it_reads_no_file_of_the_user(start: Start, tmp_path: Path) -> None:
    secret = tmp_path / "receipt.key"
    secret.write_text("secret")
    worker = start(f"open({str(secret)!r}).read()")
    needs(worker, "landlock files")
    assert call(worker)[0]["error"]["type"] == "PermissionError"


def test_it_reads_no_password_hashes(start: Start) -> None:
    worker = start("open('/etc/shadow').read()")
    needs(worker, "landlock files")
    assert call(worker)[0]["error"]["type"] == "PermissionError"


def test_it_reaches_no_network(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        reply, _, _ = call(start(f"socket.create_connection(('127.0.0.1', {port}), 2)"))
    assert reply["error"]["type"] in ("PermissionError", "OSError", "ConnectionRefusedError")


def test_it_signals_nobody_outside(start: Start) -> None:
    worker = start(f"os.kill({os.getpid()}, 9)")
    needs(worker, "pid namespace")
    assert call(worker)[0]["error"]["type"] in ("ProcessLookupError", "PermissionError")


def test_it_is_no_root(start: Start) -> None:
    worker = start("print(os.getuid(), os.geteuid())")
    call(worker)
    assert "0" not in worker.output().split()


def test_no_variable_of_the_user_reaches_it(server: ForkServer, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "KOPT_HOME" not in server.environment
    worker = start("print(sorted(os.environ))")
    call(worker)
    assert "KOPT" not in worker.output()
    assert "API_KEY" not in worker.output()


def test_a_planted_secret_is_not_in_the_memory_that_it_is_lent(start: Start) -> None:
    """A buffer is an allocation of its own: what lies beside it in the parent cannot be read from it."""
    secret = secrets.token_bytes(32)
    neighbours = [host_buffer(4096) for _ in range(8)]
    for neighbour in neighbours:
        neighbour.base[:32] = torch.frombuffer(bytearray(secret), dtype=torch.uint8)
    body = "\n".join(
        [
            "whole = torch.empty(0, dtype=torch.uint8).set_(x.untyped_storage())",
            "seen = bytes(whole.tolist())",
            "for line in open('/proc/self/maps'):",
            "    if 'memfd:kopt' in line:",
            "        low, high = (int(n, 16) for n in line.split()[0].split('-'))",
            "        with open('/proc/self/mem', 'rb') as memory:",
            "            memory.seek(low); seen += memory.read(high - low)",
            "print(len(seen) > 0, seen.count(bytes.fromhex('" + secret[::-1].hex() + "')[::-1]))",
        ]
    )
    worker = start(body)
    call(worker)
    for neighbour in neighbours:
        neighbour.close()
    assert worker.output().split() == ["True", "0"]


def test_a_lent_buffer_cannot_be_shrunk(start: Start) -> None:
    body = "for fd in os.listdir('/proc/self/fd'):\n    try: os.ftruncate(int(fd), 1)\n    except OSError: pass"
    reply, x, y = call(start(body))
    assert reply["ok"]
    assert torch.equal(y, x + 1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("os._exit(0)", "crashed"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("os.abort()", "crashed"),
        ("os.closerange(0, 4096); time.sleep(60)", "crashed"),
        ("while True: pass", "timeout"),
        ("import signal; [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]; time.sleep(60)", "timeout"),
    ],
)
def test_a_worker_that_gives_no_answer_is_lost(start: Start, body: str, kind: str) -> None:
    worker = start(body)
    with pytest.raises(WorkerLostError) as lost:
        call(worker, 3)
    assert lost.value.kind == kind


def test_memory_is_limited(start: Start) -> None:
    body = "keep = []\nwhile True: keep.append(torch.ones(1 << 26)); print(len(keep), flush=True)"
    small = Limits(memory=1 << 30, processes=32, file_size=1 << 30, limit_data=False)
    with pytest.raises(WorkerLostError) as lost:
        call(start(body, small), 60)
    assert lost.value.kind == "memory"


def test_memory_is_limited_by_the_kernel_too(start: Start) -> None:
    reply, _, _ = call(start("torch.ones(1 << 32)"))
    assert "memory" in reply["error"]["message"].lower()


def test_forks_without_end_come_to_an_end(start: Start) -> None:
    """Grandchildren that leave the session are ended too."""
    lines = ["try: pid = os.fork()", "except OSError: time.sleep(0.2); continue", "if pid == 0: os.setsid()"]
    body = "\n    ".join(["while True:", *lines])
    worker = start(body)
    family = worker.pid
    with pytest.raises(WorkerLostError) as lost:
        call(worker, 4)
    assert lost.value.kind in ("processes", "timeout")
    worker.close()
    wait_until(lambda: not psutil.pid_exists(family))


def test_a_process_left_behind_ends_with_the_worker(start: Start) -> None:
    worker = start("print(os.spawnvp(os.P_NOWAIT, 'sleep', ['sleep', '600']))")
    reply, _, _ = call(worker)
    assert reply["processes"] == 1
    children = psutil.Process(worker.pid).children(recursive=True)
    worker.close()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert len(children) == 1
    assert not alive


@pytest.mark.parametrize(
    "starting",
    [
        "import threading; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "import _thread; _thread.start_new_thread(time.sleep, (60,))",
        "import _thread; os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])\n"
        "_thread.start_new_thread(time.sleep, (60,))",  # on one core it begins only when the other waits
    ],
)
def test_a_thread_left_behind_is_told(start: Start, starting: str) -> None:
    reply, _, _ = call(start(starting))
    assert reply["threads"] == 1


@pytest.mark.parametrize("name", ["torch.allclose", "time.perf_counter", "torch.Tensor.copy_", "statistics.median"])
def test_replaced_functions_are_told(start: Start, name: str) -> None:
    owner, _, attribute = name.rpartition(".")
    worker = start("pass", before=f"import statistics\n{owner}.{attribute} = lambda *a, **k: True")
    findings = worker.request("map", 10)
    assert findings["ok"]
    reply = worker.request("build", 10, tree={"list": []}, tensors=[], seed=1)
    assert any(attribute in changed for changed in reply["patched"])


def test_a_message_that_nobody_asked_for_ends_the_worker(start: Start) -> None:
    body = "\n".join(
        [
            "for fd in range(3, 64):",
            '    try: socket.socket(fileno=os.dup(fd)).send(b\'{"ok": true, "verdict": "accepted"}\')',
            "    except OSError: pass",
        ]
    )
    with pytest.raises(WorkerLostError) as lost:
        call(start(body))
    assert lost.value.kind == "protocol"


def test_what_it_prints_is_kept_apart_and_cut(start: Start) -> None:
    worker = start("print('y' * 100000 + 'END')")
    reply, _, _ = call(worker)
    assert reply["ok"]
    assert len(worker.output()) <= 4000
    assert worker.output().strip().endswith("END")


def test_the_next_worker_is_unharmed(start: Start) -> None:
    with pytest.raises(WorkerLostError):
        call(start("os.kill(0, 9); os.abort()"), 5)
    reply, x, y = call(start("pass"))
    assert reply["ok"]
    assert torch.equal(y, x + 1)


def test_many_buffers_travel_in_several_messages(start: Start) -> None:
    worker = start("pass")
    buffers = [host_buffer(4096) for _ in range(150)]
    assert worker.request("map", 10, buffers)["ok"]
    for buffer in buffers:
        assert buffer.sent_to == {worker.id}
        buffer.close()


def test_an_interpreter_that_is_none() -> None:
    with pytest.raises(ConfigurationError) as raised:
        ForkServer("cpu", "/nowhere/python")
    assert raised.value.code == "python_not_started"


def test_an_interpreter_without_torch(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    with ForkServer("cpu", str(python)) as server, pytest.raises(ConfigurationError) as raised:
        server.wait_ready()
    assert raised.value.code == "python_without_torch"


def test_the_server_takes_its_workers_and_folders_with_it() -> None:
    server = ForkServer("cpu")
    worker = server.spawn("candidate", LIMITS, {})
    pid, folder = worker.pid, server.folder
    server.close()
    worker.close()
    wait_until(lambda: not psutil.pid_exists(pid))
    assert not folder.exists()
    assert not [t for t in threading.enumerate() if "watchdog" in t.name and not t.daemon]


@pytest.mark.parametrize(
    "body",
    [
        "os.unlink('output.txt'); os.mkfifo('output.txt')",
        "os.unlink('output.txt'); os.symlink('/etc/passwd', 'output.txt')",
        "os.unlink('output.txt'); os.link('candidate.py', 'output.txt')",
        "os.unlink('output.txt'); os.mkdir('output.txt')",
        "os.rename('output.txt', 'other.txt')",
    ],
)
def test_what_was_printed_is_read_from_the_file_that_it_was_printed_to(start: Start, body: str) -> None:
    """Its folder is its own: under that name may lie a link to a file that only kopt reads, or a pipe without end."""
    worker = start(f"print('first', flush=True); {body}; print('last')")
    call(worker)
    assert worker.output().split() == ["first", "last"]


def test_a_worker_that_prints_without_end_is_ended(start: Start) -> None:
    worker = start("block = b'x' * (1 << 20)\nwhile True: os.write(1, block)")
    with pytest.raises(WorkerLostError) as lost:
        call(worker, 60)
    assert lost.value.kind == "output"
    assert "printed more than 256 MiB" in lost.value.detail
    assert len(worker.output()) == 4000


def test_a_worker_keeps_its_temporary_files_in_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "asks_early.py").write_text("import tempfile\ntempfile.gettempdir()\n", "utf-8")
    environment = {**passed_environment(()), "PYTHONPATH": str(tmp_path)}
    with ForkServer("cpu", environment=environment, preload=["asks_early"]) as server:
        worker = spawned(server, "import tempfile\nprint('asks_early' in sys.modules, tempfile.gettempdir())")
        assert call(worker)[0]["ok"]
        asked, place = worker.output().split()
        worker.close()
        assert asked == "True", "the module was not imported before the fork"
        assert Path(place).is_relative_to(server.folder)
        assert Path(place) != server.folder
