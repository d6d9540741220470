"""Processes that run code nobody has vouched for: a fork server, its workers, and a watchdog over each.

The parent executes nothing of theirs. A worker's answer is a claim; what it computed is read from memory that the
parent made. A worker that ends without an answer has failed, whatever it printed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import psutil

import evaluator
from evaluator.watchdog import Watchdog, family, private_bytes, resident_bytes
from evaluator.worker import protocol
from evaluator.worker.isolation import Jail, Layer, Limits
from evaluator.worker.server import BOOTSTRAP, jail_message
from kbs.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from evaluator.buffers import Buffer  # imports torch, and the fork server shall start before that

START_SECONDS = 120.0
"""Time for the interpreter to import torch and triton, from a cold disk too."""
OUTPUT = "output.txt"
"""What a worker prints to; `evaluator.worker.child` opens it under this name."""
_POLL_SECONDS = 0.05
"""After which it is looked whether another thread has read the message that this one waits for."""
OUTPUT_LIMIT = 256 << 20
"""Bytes that a worker may print."""
PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUTLASS_PATH",
    "CC", "CXX", "TORCH_CUDA_ARCH_LIST", "VIRTUAL_ENV", "OMP_NUM_THREADS",
)  # fmt: skip
"""Environment variables that workers get; `--env` adds to them."""


_NO_DEVICE = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""So that modules that are imported before the fork touch no device and start no threads."""


class WorkerLostError(Exception):
    """A worker that ended, was ended, or answered nonsense."""

    def __init__(
        self, kind: Literal["timeout", "crashed", "memory", "processes", "output", "protocol"], detail: str
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


@dataclass(frozen=True)
class Lineage:
    """What processes of the same code share: a folder for what their compilers keep, and its user."""

    folder: Path
    uid: int
    """0 where there are no other users to give it to."""


class ForkServer:
    """The process that forks workers; a context manager. Several threads may use it."""

    def __init__(
        self,
        device: str,
        python: str = "",
        environment: Mapping[str, str] | None = None,
        preload: Sequence[str] = (),
    ) -> None:
        """Start it; it is ready only when the first worker is asked for, so that the parent can work meanwhile.

        `device` is `cpu` or `cuda`; `environment` is what the workers get besides their own folders; `preload` names
        further modules to import before the first worker, where they are installed.
        """
        self.environment = dict(environment) if environment is not None else passed_environment(())
        if device == "cpu":
            self.environment["TRITON_INTERPRET"] = "1"
        self.python = python or sys.executable
        self.folder = Path(tempfile.mkdtemp(prefix="kopt-"))
        self.folder.chmod(0o711)
        self._ids = itertools.count(1)
        self._exits: dict[int, int] = {}
        self._lock = threading.RLock()
        """Of the control socket."""
        self._ready = False
        self.watchdog = Watchdog()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._errors = (self.folder / "server.txt").open("wb")
        words = [package_folder(), str(theirs.fileno()), device, *preload]
        try:
            self._process = subprocess.Popen(
                [self.python, "-P", "-c", BOOTSTRAP, *words],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**self.environment, "PYTHONDONTWRITEBYTECODE": "1", **(_NO_DEVICE if preload else {})},
                cwd=self.folder,
                start_new_session=True,
            )
        except OSError as error:
            self.watchdog.close()
            ours.close()
            theirs.close()
            self._errors.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise ConfigurationError(
                f"{self.python} cannot be started: {error.strerror}",
                code="python_not_started",
                hint="--python takes the path of a Python interpreter that has torch.",
            ) from error
        theirs.close()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the server and all its workers, and remove their folders."""
        self.watchdog.close()
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_ready(self) -> None:
        """Wait until torch is imported. Raises `ConfigurationError` if the interpreter cannot do it."""
        with self._lock:
            self._wait_ready()

    def _wait_ready(self) -> None:
        if self._ready:
            return
        self._control.settimeout(START_SECONDS)
        try:
            received = protocol.receive(self._control)
        except (TimeoutError, OSError, protocol.ProtocolError):
            received = None
        message = received[0] if received else {}
        if message.get("op") != "ready":
            self._errors.flush()
            said = message.get("error") or (self.folder / "server.txt").read_text("utf-8", "replace")[-2000:].strip()
            raise ConfigurationError(
                f"{self.python} cannot run kernels: {said or 'it ended without a word'}",
                code="python_without_torch",
                hint="The interpreter needs torch and numpy, and triton for Triton kernels.",
            )
        self._ready = True

    def spawn(
        self,
        name: str,
        limits: Limits,
        files: Mapping[str, bytes],
        readable: Iterable[str] = (),
        *,
        loopback: bool = False,
        lineage: Lineage | None = None,
    ) -> Worker:
        """Fork a worker with a folder of its own that holds `files`; compilers keep what they make in the lineage's."""
        self.wait_ready()
        id = next(self._ids)
        folder = self.folder / f"{id}-{name}"
        folder.mkdir(mode=0o700)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        output = os.open(folder / OUTPUT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        uid = give_away(folder, lineage.uid if lineage else 0)
        cache = str(lineage.folder) if lineage else ""
        jail = Jail(str(folder), (package_folder(), *readable), uid, limits, loopback, cache)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**self.environment, **_folders(folder, lineage.folder if lineage else folder)}
        message = {"op": "spawn", "id": id, "jail": jail_message(jail), "environment": environment}
        try:
            with self._lock:
                self._control.settimeout(START_SECONDS)
                protocol.send(self._control, message, [theirs.fileno()])
        except OSError as error:
            ours.close()
            os.close(output)
            raise WorkerLostError("crashed", "the fork server is gone") from error
        finally:
            theirs.close()
        try:
            return Worker(self, id, name, ours, folder, limits, output)
        except BaseException:
            os.close(output)
            raise

    def lineage(self, name: str) -> Lineage:
        """A folder that processes of the same code share; it goes with the server."""
        folder = self.folder / f"{next(self._ids)}-{name}-cache"
        folder.mkdir(mode=0o700)
        return Lineage(folder, give_away(folder))

    def exit_status(self, id: int, seconds: float) -> int | None:
        """How a worker ended: its exit code, 128 and the signal's number if by a signal; None while it lives."""
        until = time.monotonic() + seconds
        while id not in self._exits:
            left = until - time.monotonic()
            try:
                if _readable(self._control, min(max(left, 0.01), _POLL_SECONDS)):
                    self._read_exit()
                elif left <= _POLL_SECONDS:
                    break
            except BlockingIOError:  # another thread has read what was there
                continue
            except (OSError, ValueError, EOFError, protocol.ProtocolError):
                break
        return self._exits.get(id)

    def _read_exit(self) -> None:
        """Take note of what the server says. Raises `EOFError` where it is gone."""
        with self._lock:
            self._control.settimeout(0)
            received = protocol.receive(self._control)
            if received is None:
                raise EOFError
            message = received[0]
            if message.get("op") == "exited":
                self._exits[int(message["id"])] = int(message["status"])


def _readable(channel: socket.socket, seconds: float) -> bool:
    """Wait for a message, with no lock held: others spawn meanwhile. Raises `ValueError` for a closed channel."""
    waiting = select.poll()
    waiting.register(channel, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def package_folder() -> str:
    """The evaluator's own folder, which workers import from."""
    return str(Path(evaluator.__file__).resolve().parent)


def give_away(folder: Path, uid: int = 0) -> int:
    """Give a folder and its files to a user that nobody is, where we are root: that user; 0 where we are not, or where
    there are no other users, as in a container without root. `uid` is the user of an earlier one, or 0."""
    if os.geteuid() != 0:
        return 0
    uid = uid or 0x5A000000 + secrets.randbelow(1 << 20)
    try:
        for path in (*folder.iterdir(), folder):
            os.chown(path, uid, uid)
    except OSError:  # EINVAL: the user namespace maps no such user
        return 0
    return uid


def passed_environment(names: Iterable[str]) -> dict[str, str]:
    """The variables that workers get, with `names` added where they are set."""
    return {name: os.environ[name] for name in (*PASSED_ON, *names) if name in os.environ}


def _folders(folder: Path, cache: Path) -> dict[str, str]:
    """Everything that libraries write lies in the worker's own folder, and what compilers keep in its lineage's."""
    kept = {
        "TRITON_CACHE_DIR": "triton",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TORCH_EXTENSIONS_DIR": "extensions",
        "XDG_CACHE_HOME": "cache",
        "CUDA_CACHE_PATH": "cuda",
    }
    (folder / "tmp").mkdir(mode=0o777)
    (folder / "tmp").chmod(0o777)
    return {name: str(cache / place) for name, place in kept.items()} | {
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "USER": "kopt",  # the worker's user has no entry that could be looked up
        "LOGNAME": "kopt",
    }


class Worker:
    """One isolated process, as its parent holds it; a context manager."""

    def __init__(
        self,
        server: ForkServer,
        id: int,
        name: str,
        channel: socket.socket,
        folder: Path,
        limits: Limits,
        output: int,
    ) -> None:
        self.server = server
        self.id = id
        self.name = name
        self.folder = folder
        self.limits = limits
        self.layers: list[Layer] = []
        self.versions: dict[str, str] = {}
        self._channel = channel
        self._output = output
        """The file that it prints to, opened before it had the folder: what lies under that name later is its own."""
        self._lent = 0
        """Bytes of host memory that the parent lent: they are not held against the worker."""
        self._pid = 0
        self._why: tuple[str, str] | None = None
        self.busy = False
        """Whether it was asked for something and has not answered."""
        self._hello()
        self._forget: list[int] = []
        """Buffers that it shall let go of."""
        self._process = psutil.Process(self._pid) if psutil.pid_exists(self._pid) else None
        server.watchdog.watch(self)

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _hello(self) -> None:
        """The two first messages, sent before any foreign code runs: the process id, and the layers in force."""
        hello = None
        while hello is None or not self._pid:
            message = self._receive(30.0)
            if message.get("op") == "forked" and not self._pid:
                self._pid = int(message["pid"])
            elif message.get("op") == "hello" and hello is None:
                hello = message
        self.layers = [Layer(**layer) for layer in hello["layers"]]
        self.versions = hello["versions"]

    def request(self, op: str, seconds: float, buffers: Sequence[Buffer] = (), **fields: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer, at most `seconds`. Raises `WorkerLostError`.

        Buffers that this worker has not seen yet travel with the message.
        """
        self.busy = True
        try:
            return self._request(op, seconds, buffers, fields)
        finally:
            self.busy = False

    def _request(self, op: str, seconds: float, buffers: Sequence[Buffer], fields: dict[str, Any]) -> dict[str, Any]:
        nonce = secrets.token_hex(8)
        fresh = list({b.id: b for b in buffers if self.id not in b.sent_to}.values())
        for start in range(0, len(fresh), protocol.MAX_DESCRIPTORS):
            batch = fresh[start : start + protocol.MAX_DESCRIPTORS]
            if start + protocol.MAX_DESCRIPTORS < len(fresh):
                self._exchange({"op": "map", "nonce": nonce + str(start)}, batch, seconds)
            else:
                return self._exchange({"op": op, "nonce": nonce, **fields}, batch, seconds)
        return self._exchange({"op": op, "nonce": nonce, **fields}, [], seconds)

    def forget(self, buffers: Iterable[Buffer]) -> None:
        """Have it let go of buffers that it has mapped, before whatever it is asked for next."""
        for buffer in buffers:
            if self.id in buffer.sent_to:
                buffer.sent_to.discard(self.id)
                self._forget.append(buffer.id)
                self._lent -= buffer.size if buffer.kind == "host" else 0

    def _exchange(self, message: dict[str, Any], batch: Sequence[Buffer], seconds: float) -> dict[str, Any]:
        described = [{"id": b.id, "kind": b.kind, "size": b.size} for b in batch]
        try:
            forget, self._forget = self._forget[:1000], self._forget[1000:]
            sent = {**message, "buffers": described, "forget": forget}
            protocol.send(self._channel, sent, [b.descriptor for b in batch])
        except protocol.ProtocolError as error:
            raise UsageError(
                f"the arguments cannot be passed to the kernel's process: {error}",
                code="value_unsupported",
                hint="Give long text or many numbers as tensors.",
            ) from error
        except OSError as error:
            raise self._lost() from error
        for buffer in batch:
            buffer.sent_to.add(self.id)
            self._lent += buffer.size if buffer.kind == "host" else 0
        reply = self._receive(seconds)
        if reply.get("nonce") != message["nonce"]:
            self.kill("protocol", "it sent a message that was not asked for")
            raise self._lost()
        return reply

    def _receive(self, seconds: float) -> dict[str, Any]:
        self._channel.settimeout(seconds)
        try:
            received = protocol.receive(self._channel)
        except TimeoutError:
            self.kill("timeout", f"no answer within {seconds:g} s")
            raise self._lost() from None
        except protocol.ProtocolError as error:
            self.kill("protocol", str(error))
            raise self._lost() from error
        except OSError as error:
            raise self._lost() from error
        if received is None:
            raise self._lost()
        message, descriptors = received
        for descriptor in descriptors:
            os.close(descriptor)
        return message

    def _lost(self) -> WorkerLostError:
        if self._why is not None:
            kind, detail = self._why
            return WorkerLostError(kind, detail)  # type: ignore[arg-type]  # one of kill's own kinds
        status = self.server.exit_status(self.id, 2.0)
        if status is None:
            self.kill("crashed", "it closed its channel and went on")
            return WorkerLostError("crashed", "the process closed its channel without an answer")
        if status > 128:
            with contextlib.suppress(ValueError):
                return WorkerLostError("crashed", f"the process ended by {signal.Signals(status - 128).name}")
        return WorkerLostError("crashed", f"the process ended with exit code {status} and without an answer")

    def kill(self, kind: str, detail: str) -> None:
        """End the process and everything that it started."""
        if self._why is None:
            self._why = (kind, detail)
        for number in self._family():
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGSTOP)  # a process that forks without end must not outrun its killer
        for number in self._family():
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)

    def _family(self) -> list[int]:
        return family(self._process) if self._process is not None else []

    def examine(self) -> None:
        """Memory, processes and what it printed; what goes over its limit is ended."""
        found = self._family()
        if self._printed() > OUTPUT_LIMIT:
            self.kill("output", f"it printed more than {OUTPUT_LIMIT >> 20} MiB")
        elif len(found) > self.limits.processes:
            self.kill("processes", f"it had {len(found)} processes, the limit is {self.limits.processes}")
        elif resident_bytes(found) - self._lent > self.limits.memory:
            used = private_bytes(found) - self._lent
            if used > self.limits.memory:
                limit = self.limits.memory / 1e9
                self.kill("memory", f"it used {used / 1e9:.1f} GB, the limit is {limit:.1f} GB")

    def _printed(self) -> int:
        try:
            return os.fstat(self._output).st_size
        except OSError:  # it was closed meanwhile
            return 0

    def output(self) -> str:
        """The last of what it printed; untrusted text."""
        try:
            return os.pread(self._output, 4000, max(0, self._printed() - 4000)).decode("utf-8", "replace")
        except OSError:
            return ""

    def read_file(self, name: str, most: int) -> bytes | None:
        """A file that it wrote into its folder, at most so many bytes; None where there is no such ordinary file, or a
        larger one. Untrusted."""
        if Path(name).name != name:
            return None
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(descriptor, "rb") as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_size > most:
                    return None
                return stream.read(most)
        except OSError:
            return None

    def close(self) -> None:
        """End it. Its folder goes with the server's. Returns before the process has let go of a GPU: see `gone`."""
        self.server.watchdog.leave(self)
        self._channel.close()
        if self.server.exit_status(self.id, 0.0) is None:
            self.kill("closed", "no longer needed")
        if self._output >= 0:
            opened, self._output = self._output, -1
            os.close(opened)

    def gone(self, seconds: float = 10.0) -> bool:
        """Wait until a closed worker has ended and its memory is free."""
        return self.server.exit_status(self.id, seconds) is not None
