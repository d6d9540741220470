"""Runs `kopt` in processes that need not import it first: one process has imported it, and forks for each command.

A command does what `python -m kopt` does, in a process of its own with its own folder, environment and streams; what it
saves is the seconds of its imports. Variables that count while an interpreter starts or a package is imported cannot be
given so: see `CommandServer.can_give`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "HF_", "TRANSFORMERS_", "OMP_", "MKL_", "TORCH", "TRITON")
"""How variables begin that an interpreter, a loader or a package reads once."""
_IMPORTED = ("kopt.cli.main", "kopt.cli.schemas", "kopt.engine", "kbs.vectors", "chromadb", "evaluator.evaluate")
"""What commands import."""
_START_SECONDS = 60.0
_DESCRIPTORS = 4096
"""More than the server has open."""


class Command:
    """One command under way; a context manager, which ends it."""

    def __init__(self, server: CommandServer, words: Sequence[str], stdin: str, folder: Path, env: Mapping[str, str]):
        self.words = list(words)
        request = {"words": self.words, "folder": str(folder), "environment": dict(env)}
        asked, stream = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with asked, stream, theirs:
            _write(asked, json.dumps(request))
            _write(stream, stdin)
            server.send(theirs, asked, stream, self._out, self._err)
        self._channel.settimeout(_START_SECONDS)
        try:
            self.pid = int(self._receive()["pid"])
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._close()

    def _close(self) -> None:
        self._channel.close()
        self._out.close()
        self._err.close()

    def _receive(self) -> dict[str, Any]:
        received = self._channel.recv(100)
        assert received, "the command server is gone"
        return dict(json.loads(received))

    def wait(self, seconds: float) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        self._channel.settimeout(seconds)
        try:
            return int(self._receive()["code"])
        except TimeoutError:
            raise subprocess.TimeoutExpired(self.words, seconds) from None

    def kill(self) -> bool:
        """End it by SIGKILL, and wait until it has gone; whether it was still under way."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(AssertionError):
            return self.wait(_START_SECONDS) == -signal.SIGKILL
        return False

    def printed(self) -> tuple[str, str]:
        """(stdout, stderr) so far."""
        return _read(self._out), _read(self._err)


class CommandServer:
    """The process that forks for each command. Several threads may use it."""

    def __init__(self) -> None:
        self._started_with = dict(os.environ)
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).resolve()), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """End the server; commands under way go on."""
        self._control.close()
        self._process.wait(_START_SECONDS)

    def can_give(self, environment: Mapping[str, str]) -> bool:
        """Whether a command with this environment does in a fork what it does in an interpreter of its own."""
        other = dict(environment.items() ^ self._started_with.items())
        return not any(name.startswith(_AT_START) for name in other)

    def send(self, *opened: IO[bytes] | socket.socket) -> None:
        """Ask for a command."""
        with self._lock:
            socket.send_fds(self._control, [b"run"], [one.fileno() for one in opened])

    def run(
        self, words: Sequence[str], stdin: str, folder: Path, env: Mapping[str, str], seconds: float
    ) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) of one command. Raises `subprocess.TimeoutExpired`."""
        with Command(self, words, stdin, folder, env) as command:
            code = command.wait(seconds)
            return code, *command.printed()


def _write(file: IO[bytes], text: str) -> None:
    file.write(text.encode("utf-8"))
    file.seek(0)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


# --- in the server --------------------------------------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Answer requests until the tests hang up."""
    control = socket.socket(fileno=descriptor)
    for name in _IMPORTED:
        with contextlib.suppress(ModuleNotFoundError):  # a machine without Chroma runs the commands without it
            importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would lose threads"
    waiting = selectors.DefaultSelector()
    waiting.register(control, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fileobj is control:
                said, opened, _, _ = socket.recv_fds(control, 10, 5)
                if not said:
                    return
                pid = os.fork()
                if pid == 0:
                    _become(*opened[1:])
                _tell(opened[0], {"pid": pid})
                for descriptor in opened[1:]:
                    os.close(descriptor)
                waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, opened[0]))
                continue
            pid, channel = key.data
            waiting.unregister(key.fileobj)
            os.close(key.fd)
            _tell(channel, {"code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
            os.close(channel)


def _tell(channel: int, message: dict[str, int]) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked may have gone
        os.write(channel, json.dumps(message).encode())


def _become(asked: int, *streams: int) -> NoReturn:
    """In the fork: run the command as `python -m kopt` runs it, and end as an interpreter does."""
    code: object = 1
    try:
        with open(asked, "rb") as file:
            request = json.load(file)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, _DESCRIPTORS)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path.insert(0, request["folder"])
        sys.argv[1:] = request["words"]
        runpy.run_module("kopt", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # an interpreter prints it and ends with 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter does when it ends
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve(int(sys.argv[1]))
