"""Processes that are forked from one that has imported what they need: who asks for them, and who forks."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

START_SECONDS = 60.0
Become = Callable[[Any], None]
"""What a fork does with a request before it ends."""
_ASIDE = 100
"""A number above all streams."""
_DESCRIPTORS = 4096
"""More than a server has open."""


def start(main: Callable[..., None], *words: str, pass_fds: Sequence[int], **more: Any) -> subprocess.Popen[bytes]:
    """A new interpreter that calls a function of a module of the tests, and has nothing else of this tree."""
    root = str(Path(__file__).resolve().parent.parent)
    code = f"import sys; sys.path.insert(0, {root!r}); from {main.__module__} import {main.__name__} as main; "
    code += f"sys.path.remove({root!r}); main(*sys.argv[1:])"
    asked = [sys.executable, "-P", "-c", code, *words]
    return subprocess.Popen(asked, pass_fds=pass_fds, stdin=subprocess.DEVNULL, **more)


class Fork:
    """A process that a server has forked: what `subprocess.Popen` is of a child."""

    def __init__(self, server: socket.socket, request: Any, streams: Sequence[IO[bytes] | int]) -> None:
        """Ask for it. `streams` become its descriptors 0, 1, 2; further ones it finds at the numbers that follow."""
        self.returncode: int | None = None
        self._words = str(request)
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, tempfile.TemporaryFile() as asked:
            asked.write(json.dumps(request).encode())
            asked.seek(0)
            opened = [one if isinstance(one, int) else one.fileno() for one in streams]
            socket.send_fds(server, [b"run"], [theirs.fileno(), asked.fileno(), *opened])
        self._channel.settimeout(START_SECONDS)
        try:
            self.pid = int(self._receive()["pid"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hear no more of it."""
        self._channel.close()

    def _receive(self) -> dict[str, Any]:
        received = self._channel.recv(100)
        assert received, "the process that forks is gone"
        return dict(json.loads(received))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._channel.settimeout(timeout)
            try:
                self.returncode = int(self._receive()["code"])
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self._words, timeout or 0.0) from None
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, None while it is under way."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def kill(self) -> bool:
        """End it by SIGKILL, and wait until it has gone; whether it was still under way."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.wait(START_SECONDS) == -signal.SIGKILL


def serve(
    control: socket.socket, become: Become, also: Mapping[socket.socket, Callable[[], None]] | None = None
) -> None:
    """Fork for each request until who asks hangs up. `become` runs in the fork, which has the streams and no more.

    `also`: what else is done when something can be read where.
    """
    others = also or {}
    waiting = selectors.DefaultSelector()
    for one in (control, *others):
        waiting.register(one, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if isinstance(key.fileobj, socket.socket) and key.fileobj in others:
                others[key.fileobj]()
                continue
            if key.fileobj is not control:
                pid, channel = key.data
                waiting.unregister(key.fileobj)
                os.close(key.fd)
                _tell(channel, {"code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])})
                os.close(channel)
                continue
            said, opened, _, _ = socket.recv_fds(control, 10, 10)
            if not said:
                return
            pid = os.fork()
            if pid == 0:
                _begin(opened[1], opened[2:], become)
            _tell(opened[0], {"pid": pid})
            for descriptor in opened[1:]:
                os.close(descriptor)
            waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, opened[0]))


def _begin(asked: int, streams: Sequence[int], become: Become) -> NoReturn:
    try:
        with open(asked, "rb", closefd=False) as file:
            request = json.load(file)
        aside = [fcntl.fcntl(one, fcntl.F_DUPFD, _ASIDE) for one in streams]
        for number, stream in enumerate(aside):
            os.dup2(stream, number)
        os.closerange(len(aside), _DESCRIPTORS)
        become(request)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(70)


def _tell(channel: int, message: dict[str, int]) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked may have gone
        os.write(channel, json.dumps(message).encode())
