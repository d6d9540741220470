"""The proposer `command`: a program that reads a request on its standard input and writes a proposal on its output.

It is started without a shell, in the folder that the kernel came from, with the rights and the environment of the user:
it is the user's program. Its answer is untrusted: bounded in time and size, read by schema, judged by the gate.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from evaluator.external.command import end_group, ended_by_signals
from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.visible_text import visible
from loop.proposals.proposal import Proposal
from loop.proposers.reading import MAX_BYTES, Unread, read_proposal

SECONDS = 900.0
"""Time for one answer, unless the user gives more or less: a language model thinks for minutes."""
REFUSED_IN_A_ROW = 3
"""Answers that may be refused one after another before a version is closed as failed."""
STDERR_KEPT = 64 * 1024
"""Bytes of the end of its standard error."""
_CHUNK = 64 * 1024
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 1.0
"""How long output that is under way may still come after the program has ended."""


@dataclass(frozen=True)
class Answer:
    """What came of asking a program once."""

    outcome: Proposal | Unread
    stdout: bytes
    """What it answered, as far as it was read."""
    stderr: str
    """The end of what it said beside the answer."""
    seconds: float


def split_command(text: str) -> tuple[str, ...]:
    """The words of `--command`, split as a POSIX shell does, nothing expanded. UsageError `command_invalid`."""
    hint = "Such as --command 'python proposer.py'. For pipes or variables: --command \"sh -c '…'\"."
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:  # a quotation that does not end
        raise UsageError(
            f"--command {text!r} cannot be read: {str(error).lower()}", code="command_invalid", hint=hint
        ) from error
    if not words or not words[0] or any("\0" in word for word in words):
        raise UsageError(f"--command {text!r} names no program", code="command_invalid", hint=hint)
    return words


def find_program(words: Sequence[str], folder: Path) -> None:
    """ConfigurationError `command_missing` where the program of a command cannot be started from `folder`."""
    name = words[0]
    there = os.access(folder / name, os.X_OK) and (folder / name).is_file() if "/" in name else shutil.which(name)
    if not there:
        raise ConfigurationError(
            f"there is no program {visible(name)} that could be started in {folder}",
            code="command_missing",
            hint="Check its name and the PATH; a program of that folder is called ./NAME. No shell reads the command.",
        )


def ask(words: Sequence[str], request: bytes, folder: Path, seconds: float = SECONDS) -> Answer:
    """Ask the program once: `request` on its standard input, a proposal on its standard output.

    A program that does not end within `seconds`, ends with another status than 0, writes more than `MAX_BYTES`, or
    writes no proposal gives an `Unread`. With it end all processes of its session.
    Raises ConfigurationError (`command_missing`, `command_not_started`) where it cannot be started.
    """
    find_program(words, folder)
    started = time.monotonic()
    with ended_by_signals() as admit, _start(words, folder) as process:
        talk = _Talk(process, request)
        ended = False
        try:
            admit()
            ended = talk.until(started + seconds)
        finally:
            end_group(process, whole_family=not ended)
            talk.close()
    took = time.monotonic() - started
    return Answer(_outcome(talk, process.returncode, ended, seconds), bytes(talk.out), talk.words, took)


def _outcome(talk: _Talk, status: int, ended: bool, seconds: float) -> Proposal | Unread:
    said = [visible(line) for line in talk.words.splitlines() if line.strip()][-3:]
    last = f"; it last said: {' / '.join(said)[:600]}" if said else ""
    if talk.flood:
        return Unread(
            "command-flood",
            (f"the program wrote more than {MAX_BYTES:,} bytes, and was ended{last}",),
            "One JSON object goes to standard output; everything else to standard error.",
        )
    if not ended:
        return Unread(
            "command-timeout",
            (f"the program gave no answer within {seconds:g} s, and was ended{last}",),
            "Mend the program, or give it more time with --command-timeout.",
        )
    if status != 0:
        how = f"signal {-status} ended it" if status < 0 else f"it ended with status {status}"
        return Unread(
            "command-failed",
            (f"the program gave no answer: {how}{last}",),
            "Run it by hand on `kopt run next --json`'s request; its standard error is kept beside the refusal.",
        )
    return read_proposal(bytes(talk.out))


class _Talk:
    """Both directions at once, so that neither side waits for the other."""

    def __init__(self, process: subprocess.Popen[bytes], request: bytes) -> None:
        self.process = process
        self.unsent = memoryview(request)
        self.out = bytearray()
        self.flood = False
        self._err = bytearray()
        self._selector = selectors.DefaultSelector()
        for stream, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, event)

    @property
    def words(self) -> str:
        """The end of its standard error."""
        return bytes(self._err).decode("utf-8", "replace")

    def until(self, deadline: float) -> bool:
        """Talk until the program has ended by itself; False where time ran out or it wrote too much."""
        last = None
        while not self.flood and time.monotonic() < deadline:
            for key, _ in self._selector.select(_POLL_SECONDS):
                self._serve(key.fileobj)  # type: ignore[arg-type]  # streams are all that was registered
            if last is None and self._has_ended():
                last = time.monotonic() + _GRACE_SECONDS
            if last is not None and (not self._open() or time.monotonic() > last):
                return True
            if not self._selector.get_map():
                time.sleep(_POLL_SECONDS)
        return False

    def _open(self) -> bool:
        return any(key.fileobj is not self.process.stdin for key in self._selector.get_map().values())

    def _has_ended(self) -> bool:
        """Not reaped here, so that its id, which is its group's too, is given to no other."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _serve(self, stream: IO[bytes]) -> None:
        if stream is self.process.stdin:
            self._send(stream)
            return
        data = os.read(stream.fileno(), _CHUNK)
        if not data:
            self._selector.unregister(stream)
        elif stream is self.process.stdout:
            self.out += data[: MAX_BYTES + 1 - len(self.out)]
            self.flood = len(self.out) > MAX_BYTES
        else:
            self._err += data
            del self._err[:-STDERR_KEPT]

    def _send(self, stream: IO[bytes]) -> None:
        try:
            self.unsent = self.unsent[os.write(stream.fileno(), self.unsent[:_CHUNK]) :]
        except BrokenPipeError:  # a program that does not read its request may still answer
            self.unsent = self.unsent[:0]
        if not self.unsent:
            self._selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()

    def close(self) -> None:
        """Nothing further is read."""
        self._selector.close()


def _start(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise ConfigurationError(
            f"{visible(words[0])} cannot be started: {error.strerror or error}",
            code="command_not_started",
            hint="It must be a program that you may execute; a script needs #! in its first line.",
        ) from error
