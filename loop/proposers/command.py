"""The proposer `command`: a program that reads a request on its standard input and writes a proposal on its output.

It is started without a shell, in the folder that the kernel came from, with the rights and the environment of the user:
it is the user's program. Its answer is untrusted: bounded in time and size, read by schema, judged by the gate.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.programs import KEPT, Finished, NotStartedError, run_program, split_words
from kbs.common.visible_text import visible
from loop.proposals.proposal import Proposal
from loop.proposers.reading import MAX_BYTES, Unread, read_proposal

SECONDS = 900.0
"""Time for one answer, unless the user gives more or less: a language model thinks for minutes."""


@dataclass(frozen=True)
class Answer:
    """The answer of a program."""

    outcome: Proposal | Unread
    stdout: bytes
    """What it wrote to standard output, as far as it was read."""
    stderr: str
    """The end of its standard error."""
    seconds: float


def split_command(text: str) -> tuple[str, ...]:
    """The words of `--command`, split as a POSIX shell does, nothing expanded. UsageError `command_invalid`."""
    try:
        return split_words(text)
    except ValueError as error:
        raise UsageError(
            f"--command {text!r} {error}",
            code="command_invalid",
            hint="Such as --command 'python proposer.py'. For pipes or variables: --command \"sh -c '…'\".",
        ) from error


def find_program(words: Sequence[str], folder: Path) -> None:
    """Raise ConfigurationError `command_missing` if the program of a command cannot be started from `folder`."""
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

    The outcome is an `Unread` if the program does not end within `seconds`, ends with a status other than 0, writes
    more than `MAX_BYTES`, or writes no proposal. All processes of its session end with it.
    Raises ConfigurationError (`command_missing`, `command_not_started`) if it cannot be started.
    """
    find_program(words, folder)
    try:
        done = run_program(words, seconds, folder=folder, request=request, max_output=MAX_BYTES)
    except NotStartedError as error:
        raise ConfigurationError(
            f"{visible(words[0])} cannot be started: {error}",
            code="command_not_started",
            hint="It must be a program that you may execute; a script needs #! in its first line.",
        ) from error
    stderr = bytes(done.stderr.data[-KEPT:]).decode("utf-8", "replace")
    return Answer(_outcome(done, stderr, seconds), bytes(done.stdout.data), stderr, done.seconds)


def _outcome(done: Finished, stderr: str, seconds: float) -> Proposal | Unread:
    said = [visible(line) for line in stderr.splitlines() if line.strip()][-3:]
    last = f"; it last said: {' / '.join(said)[:600]}" if said else ""
    if done.stdout.flooded:
        return Unread(
            "command-flood",
            (f"the program wrote more than {MAX_BYTES:,} bytes, and was ended{last}",),
            "One JSON object goes to standard output; everything else to standard error.",
        )
    if done.exit_code is None:
        return Unread(
            "command-timeout",
            (f"the program gave no answer within {seconds:g} s, and was ended{last}",),
            "Fix the program, or give it more time with --command-timeout.",
        )
    if done.exit_code != 0:
        status = done.exit_code
        how = f"signal {-status} ended it" if status < 0 else f"it ended with status {status}"
        return Unread(
            "command-failed",
            (f"the program gave no answer: {how}{last}",),
            "Run it by hand on `kopt run next --json`'s request; its standard error is kept beside the refusal.",
        )
    return read_proposal(bytes(done.stdout.data))
