"""Runs a user's program without a shell, with a time limit and bounded output, and leaves nothing running."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

KEPT = 64 * 1024
"""Bytes kept of the end of a stream, plus one that shows that there was more."""
_CHUNK = 64 * 1024
_POLL_SECONDS = 0.02
_DRAIN_SECONDS = 1.0
"""How long a stream may stay open after the program has ended, held by something that the program left running."""


class NotStartedError(Exception):
    """The program could not be started."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause.strerror or str(cause))
        self.missing = isinstance(cause, FileNotFoundError)
        """Whether there is no such program, or no interpreter that its first line names."""


class Stream:
    """What was kept of an output stream: its end, or, with `limit`, its first `limit + 1` bytes."""

    def __init__(self, limit: int | None = None) -> None:
        self.data = bytearray()
        self.size = 0
        """Bytes that were written in all."""
        self._limit = limit

    @property
    def flooded(self) -> bool:
        """Whether more than the limit was written."""
        return self._limit is not None and self.size > self._limit

    def add(self, data: bytes) -> None:
        """Keep what was read."""
        self.size += len(data)
        if self._limit is None:
            self.data += data
            del self.data[: -KEPT - 1]
        else:
            self.data += data[: self._limit + 1 - len(self.data)]


@dataclass(frozen=True)
class Finished:
    """How a program ended."""

    exit_code: int | None
    """Negative: the number of the signal that ended it. None: it was ended at a limit."""
    seconds: float
    stdout: Stream
    stderr: Stream
    left: int
    """Processes that it left running, which were ended."""


def split_words(text: str) -> tuple[str, ...]:
    """Split a command as a POSIX shell does, expanding nothing. Raises `ValueError` with what is wrong."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:  # an unclosed quotation
        raise ValueError(f"cannot be read: {str(error).lower()}") from error
    if not words or not words[0] or any("\0" in word for word in words):
        raise ValueError("names no program")
    return words


def run_program(
    words: Sequence[str],
    seconds: float,
    *,
    folder: Path | None = None,
    request: bytes | None = None,
    max_output: int | None = None,
) -> Finished:
    """Run a program with the user's environment and rights, `request` on its standard input.

    It gets a session of its own. At the time limit, after more than `max_output` bytes of standard output, or when
    kopt is interrupted, it is ended with everything that it started. If it ends by itself, what it leaves running in
    its process group is ended after it. Raises `NotStartedError`.
    """
    ended = False
    started = time.monotonic()
    with (
        ended_by_signals() as admit,
        start_program(words, folder, request) as process,
        _Talk(process, max_output) as talk,
    ):
        try:
            admit()
            ended = talk.until_ended(started + seconds, request or b"")
            took = time.monotonic() - started
            if ended:
                talk.until_closed()
        finally:
            left = _end_group(process, whole_family=not ended)
        talk.until_closed()
    return Finished(process.returncode if ended else None, took, talk.stdout, talk.stderr, left if ended else 0)


def output_of(words: Sequence[str], seconds: float) -> str | None:
    """The standard output of a tool; None if it is missing, fails or does not end in time."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


class _Talk:
    """Writes to and reads from a process at the same time, so that neither side waits for the other."""

    def __init__(self, process: subprocess.Popen[bytes], max_output: int | None) -> None:
        self.stdout, self.stderr = Stream(max_output), Stream()
        self._process = process
        self._unsent = memoryview(b"")
        self._selector = selectors.DefaultSelector()
        for pipe, stream in ((process.stdout, self.stdout), (process.stderr, self.stderr)):
            assert pipe is not None
            self._selector.register(pipe, selectors.EVENT_READ, stream)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE)

    def __enter__(self) -> _Talk:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def until_ended(self, deadline: float, request: bytes) -> bool:
        """Talk until the process has ended by itself; False if time ran out or it wrote too much."""
        self._unsent = memoryview(request)
        return self._until(deadline, self._has_ended)

    def until_closed(self) -> None:
        """Read what is still on its way."""
        self._until(time.monotonic() + _DRAIN_SECONDS, lambda: not self._outputs_open())

    def _until(self, deadline: float, done: Callable[[], bool]) -> bool:
        while not self.stdout.flooded and time.monotonic() < deadline:
            if done():
                return True
            if not self._selector.get_map():
                time.sleep(_POLL_SECONDS)
                continue
            for key, _ in self._selector.select(_POLL_SECONDS):
                if key.data is None:
                    self._send()
                elif data := os.read(key.fd, _CHUNK):
                    key.data.add(data)
                else:
                    self._selector.unregister(key.fileobj)
        return False

    def _outputs_open(self) -> bool:
        return any(key.data is not None for key in self._selector.get_map().values())

    def _has_ended(self) -> bool:
        """The process is not reaped, so that its id, which is its group's too, is given to no other."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _send(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent[:_CHUNK]) :]
        except BrokenPipeError:  # a program that does not read its request may still answer
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(pipe)
            with contextlib.suppress(OSError):
                pipe.close()


def start_program(words: Sequence[str], folder: Path | None, request: bytes | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL if request is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise NotStartedError(error) from error


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """SIGTERM and SIGHUP end kopt by an exception, as SIGINT does: the program has a session of its own.

    All three wait until the caller calls what this yields: while a program is being started, nobody knows yet what to
    end.
    """
    waiting, arrived = True, list[int]()

    def leave(number: int, _: object) -> None:
        if waiting:
            arrived.append(number)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)

    def admit() -> None:
        nonlocal waiting
        waiting = False
        for number in arrived:
            leave(number, None)

    if threading.current_thread() is not threading.main_thread():
        yield admit
        return
    numbers = [signal.SIGTERM, signal.SIGHUP]
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        numbers.append(signal.SIGINT)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield admit
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:  # it could not be started
            admit()


def _end_group(process: subprocess.Popen[bytes], *, whole_family: bool) -> int:
    """End a process group and reap its leader; return how many others were in the group.

    `whole_family`: also end descendants that have left the group.
    """
    family, others = [], 0
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True) if whole_family else []
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            in_group = one.pid != process.pid and os.getpgid(one.pid) == process.pid
            others += in_group and one.status() != psutil.STATUS_ZOMBIE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    process.wait()
    return others
