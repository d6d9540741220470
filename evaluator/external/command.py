"""Run a user's command as given: no shell, no added words, with a time limit and bounded output."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.json_model import Record
from kbs.common.programs import KEPT, NotStartedError, run_program, split_words


class Printed(Record):
    """The end of what a command printed on one stream."""

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
    try:
        return split_words(command)
    except ValueError as error:
        raise UsageError(
            f"{option} {command!r} {error}",
            code="bench_command_invalid",
            hint=f"Such as {option} 'python bench.py --size 4096'. For pipes or variables: {option} \"sh -c '…'\".",
        ) from error


def run(words: Sequence[str], seconds: float, folder: Path | None = None) -> Ran:
    """Run it in a folder (None: the current one), with nothing on its standard input.

    `run_program` says how it is ended.

    Raises `ConfigurationError` (`bench_command_missing`, `bench_command_not_started`) if it cannot be started.
    """
    try:
        done = run_program(words, seconds, folder=folder)
    except NotStartedError as error:
        raise _not_started(words[0], error) from error
    stdout, stderr = (Printed.of(bytes(stream.data), stream.size) for stream in (done.stdout, done.stderr))
    return Ran(done.exit_code, done.seconds, stdout, stderr, done.left)


def _not_started(program: str, error: NotStartedError) -> ConfigurationError:
    if not error.missing:
        return ConfigurationError(
            f"{program} cannot be started: {error}",
            code="bench_command_not_started",
            hint="It must be executable; a script needs #! in its first line.",
        )
    no_interpreter = shutil.which(program) is not None
    return ConfigurationError(
        f"the interpreter in the first line of {program} does not exist"
        if no_interpreter
        else f"program not found: {program}",
        code="bench_command_missing",
        hint="Check the name and the PATH; run a program in this folder as ./NAME. No shell is involved.",
    )
