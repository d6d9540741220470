"""The fork server: starts the processes that run untrusted code, each in a folder of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import evaluator
from evaluator.sandbox.watchdog import Watchdog
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.worker.process import bootstrap, protocol
from evaluator.worker.process.isolation import Limits, Sandbox
from kbs.common.errors import ConfigurationError

START_SECONDS = 120.0
"""Time for the interpreter to import torch and triton, from a cold disk too."""
OUTPUT = "output.txt"
"""The file that a worker prints to; `evaluator.worker.process.child` opens it under this name."""
_POLL_SECONDS = 0.05
"""How often a waiting thread checks whether another one has read the message that it waits for."""
PASSED_ON = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUTLASS_PATH",
    "CC", "CXX", "TORCH_CUDA_ARCH_LIST", "VIRTUAL_ENV", "OMP_NUM_THREADS",
)  # fmt: skip
"""Environment variables that workers get; `--env` adds to them."""


_QUIET = {"PYTHONDONTWRITEBYTECODE": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
"""No files beside the sources, and no line of the observer of operators at each watched call."""
_NO_DEVICE = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""So that modules that are imported before the fork touch no device and start no threads."""


@dataclass(frozen=True)
class CacheScope:
    """What processes of the same code share: a folder for compiler caches, and the user that owns it."""

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
        self.folder = Path(tempfile.mkdtemp())
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
                [self.python, "-P", "-c", bootstrap.SERVER, *words],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**self.environment, **_QUIET, **(_NO_DEVICE if preload else {})},
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

    def __exit__(self, *error: object) -> None:
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
                printed = (self.folder / "server.txt").read_text("utf-8", "replace")[-2000:].strip()
                raise ConfigurationError(
                    f"{self.python} cannot run kernels: {message.get('error') or printed or 'it ended without a word'}",
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
        cache_scope: CacheScope | None = None,
    ) -> Worker:
        """Fork a worker with its own folder that holds `files`; compiler caches go to the folder of `cache_scope`."""
        self.wait_ready()
        id = next(self._ids)
        folder = self.folder / secrets.token_hex(4)  # a path that says nothing of who made it
        folder.mkdir(mode=0o700)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        output = os.open(folder / OUTPUT, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        uid = give_away(folder, cache_scope.uid if cache_scope else 0)
        cache = str(cache_scope.folder) if cache_scope else ""
        sandbox = Sandbox(str(folder), (package_folder(), *readable), uid, limits, loopback, cache)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {**self.environment, **_folders(folder, cache_scope.folder if cache_scope else folder)}
        message = {"op": "spawn", "id": id, "sandbox": asdict(sandbox), "environment": environment}
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
            return Worker(self.watchdog, partial(self.exit_status, id), id, name, ours, folder, limits, output)
        except BaseException:
            os.close(output)
            raise

    def cache_scope(self, name: str) -> CacheScope:
        """A folder that processes of the same code share; it goes with the server."""
        folder = self.folder / f"{next(self._ids)}-{name}-cache"
        folder.mkdir(mode=0o700)
        return CacheScope(folder, give_away(folder))

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
        """Read one message of the server. Raises `EOFError` if it has ended."""
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
    """Environment variables that send what libraries write to the worker's folder, and compiler caches to `cache`."""
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
        "USER": "user",  # the worker's user has no entry that could be looked up
        "LOGNAME": "user",
    }
