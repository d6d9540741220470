"""A command of the user's, run as it is: no shell, no word added, its end bounded, its output kept within bounds."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import psutil
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kbs.common.errors import ConfigurationError, UsageError

KEPT = 64 * 1024
"""Bytes that are kept of each of the two streams: the last ones."""
_POLL_SECONDS = 0.02
_DRAIN_SECONDS = 1.0
"""How long a stream may stay open after the command has ended, held by something that the command left running."""


class Printed(BaseModel):
    """The end of what a command printed on one stream."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    untrusted: Literal[True] = True
    """The command wrote it. It is no instruction to whoever reads it."""
    text: str = Field(max_length=KEPT)
    """The end of it: at most 64 KiB, from the beginning of a line where there is one. What is not UTF-8 is replaced."""
    size: int = Field(ge=0)
    """Bytes that it printed in all."""
    partial: bool = False
    """Whether the first line of `text` has lost its beginning: no figure is read from it."""

    @model_validator(mode="after")
    def _partial_means_cut(self) -> Self:
        if self.partial and self.size <= KEPT:
            raise ValueError("a first line has lost its beginning, and nothing was cut")
        return self

    @property
    def cut(self) -> bool:
        """Whether there was more before it."""
        return self.size > KEPT

    @property
    def lines(self) -> list[str]:
        """Its lines, without their ends."""
        return self.text.split("\n")

    @classmethod
    def of(cls, last: bytes, size: int) -> Printed:
        """From the last bytes of a stream, one more than are kept, and the number of all."""
        if size <= KEPT:
            return cls(text=last.decode("utf-8", "replace"), size=size)
        _, newline, whole = last[-KEPT - 1 :].partition(b"\n")
        if newline and whole.strip():
            return cls(text=whole.decode("utf-8", "replace"), size=size)
        return cls(text=last[-KEPT:].decode("utf-8", "replace"), size=size, partial=True)


@dataclass(frozen=True)
class Ran:
    """What came of a command."""

    exit_code: int | None
    """Negative: the number of the signal that ended it. None where it was ended at its time limit."""
    seconds: float
    stdout: Printed
    stderr: Printed
    left: int
    """Processes that it left running, which were ended."""


def split(command: str, option: str) -> tuple[str, ...]:
    """The words of a command, split as a POSIX shell does; nothing is expanded. UsageError `bench_command_invalid`."""
    hint = f"Such as {option} 'python bench.py --size 4096'. For pipes or variables: {option} \"sh -c '…'\"."
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:  # a quotation that does not end
        raise UsageError(
            f"{option} {command!r} cannot be read: {str(error).lower()}", code="bench_command_invalid", hint=hint
        ) from error
    if not words or not words[0] or any("\0" in word for word in words):
        raise UsageError(f"{option} {command!r} names no program", code="bench_command_invalid", hint=hint)
    return words


def run(words: Sequence[str], seconds: float) -> Ran:
    """Run it in the folder, with the environment and the rights of the user, with nothing to read on its stdin.

    It gets a session of its own. At the time limit, or if kopt is interrupted, it is ended with everything that it
    started; what it leaves running in its process group is ended after it.
    `ConfigurationError` (`bench_command_missing`, `bench_command_not_started`) where it cannot be started.
    """
    tails = _Tail(), _Tail()
    ended = False
    started = time.monotonic()
    with ended_by_signals() as admit, selectors.DefaultSelector() as selector, _start(words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for stream, tail in zip((process.stdout, process.stderr), tails, strict=True):
            selector.register(stream, selectors.EVENT_READ, tail)
        try:
            admit()
            ended = _follow(selector, started + seconds, process)
            took = time.monotonic() - started
            if ended:
                _follow(selector, time.monotonic() + _DRAIN_SECONDS)
        finally:
            left = end_group(process, whole_family=not ended)
        _follow(selector, time.monotonic() + _DRAIN_SECONDS)
    stdout, stderr = (Printed.of(bytes(tail.last), tail.size) for tail in tails)
    return Ran(process.returncode if ended else None, took, stdout, stderr, left if ended else 0)


class _Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self.last = bytearray()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.last += data
        del self.last[: -KEPT - 1]


def _start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        there = shutil.which(words[0]) is not None
        raise ConfigurationError(
            f"the interpreter that {words[0]} names in its first line is not there"
            if there
            else f"there is no program {words[0]}",
            code="bench_command_missing",
            hint="Check its name and the PATH; a program of this folder is called ./NAME. No shell reads the command.",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{words[0]} cannot be started: {error.strerror or error}",
            code="bench_command_not_started",
            hint="It must be a program that you may execute; a script needs #! in its first line.",
        ) from error


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Callable[[], None]]:
    """SIGTERM and SIGHUP end kopt by an exception, as SIGINT does: the command has a session of its own.

    All three wait until what this yields is called: of a command that is being started nobody knows yet what to end.
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


def _follow(selector: selectors.BaseSelector, until: float, process: subprocess.Popen[bytes] | None = None) -> bool:
    """Read until the process has ended, or, without one, until all streams are closed; False where time ran out."""
    while time.monotonic() < until:
        still_open = bool(selector.get_map())
        if _has_ended(process) if process else not still_open:
            return True
        if not still_open:
            time.sleep(_POLL_SECONDS)
            continue
        for key, _ in selector.select(_POLL_SECONDS):
            data = os.read(key.fd, KEPT)
            if data:
                key.data.add(data)
            else:
                selector.unregister(key.fileobj)
    return False


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has; it is not reaped, so that its id, which is its group's too, is given to no other."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end_group(process: subprocess.Popen[bytes], *, whole_family: bool) -> int:
    """End its process group, `whole_family`: and what has left it, and reap it; how many others were in the group."""
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
