"""Run the user's own benchmark, and seal a record of what it printed.

kopt measures nothing here, and the record says so wherever it is shown: `evidence: external`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluator.external import command
from evaluator.external.command import Printed
from evaluator.external.figures import MAX_FIGURES, Figure, read_figures, readable
from evaluator.receipt import environment
from evaluator.receipt.document import EXTERNAL_KIND, SealedDocument, content_id, read
from evaluator.receipt.plan import utc_now
from evaluator.receipt.problem import SourceRecord
from evaluator.source.source_file import SourceFile
from kbs.common.canonical_json import Line, Seconds, UtcTime
from kbs.common.errors import UsageError
from kbs.common.json_model import Record

TIME_LIMIT = 600.0
"""Seconds that the command has where the user names none."""
NOT_CHECKED = (
    "correctness: kopt did not run the kernel, and held no result against a reference",
    "times: every figure is what the command printed; kopt measured none of them",
    "the kernel: nothing shows that the command ran the file whose text stands here",
    "isolation: the command ran with the rights and the environment of the user",
)
"""What no external receipt says."""

Option = Literal["--bench-command", "--signal-command"]


class Machine(environment.Machine):
    """Where the command ran. What it used of it (GPU, interpreter, libraries) kopt does not know."""

    cpu_count: int = Field(ge=1)
    """Processors that the command could use."""
    gpus: tuple[Line, ...]
    """Names of all NVIDIA GPUs, by nvidia-smi; empty where there is none or it could not be asked."""
    driver: Line | None
    """Version of the NVIDIA driver; None where there is none or it could not be asked."""


class ExternalContent(Record):
    """All that is known of a run of the user's command, before the record has its id."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    kind: Literal["kopt-external-receipt"] = EXTERNAL_KIND
    """What this document is."""
    created: UtcTime
    """When the command ended."""
    evidence: Literal["external"] = "external"
    """What a command of the user's printed, not measured by kopt."""
    plan: Literal["signal", "verdict"]
    """The plan that was asked for."""
    option: Option
    """The option that gave the command."""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """Its words. No shell read them, and kopt added none."""
    time_limit: Seconds
    """Seconds that it had."""
    exit_code: int | None
    """Its exit code; the number of the signal, negative, that ended it; None where it was ended at the time limit."""
    timed_out: bool
    """Whether it was ended at the time limit."""
    seconds: Seconds
    """Time that it took, start of the program and all."""
    left_running: int = Field(ge=0)
    """Processes that it left in its process group; they were ended."""
    patterns: dict[str, str]
    """The user's own patterns for figures: name → regular expression. Where there are any, no others were used."""
    figures: Annotated[tuple[Figure, ...], Field(max_length=MAX_FIGURES)]
    """Numbers that it printed, in the order of their lines."""
    notes: tuple[Line, ...]
    """What a reader should know of the run, and of how the figures were read."""
    stdout: Printed
    """The end of what it printed."""
    stderr: Printed
    """The end of what it printed there."""
    candidate: SourceRecord
    """The file that the user says was measured."""
    environment: Machine
    """Where it ran."""
    not_checked: tuple[Line, ...]
    """What this record does not say, in sentences."""

    @property
    def failed(self) -> bool:
        """Whether the command did not come to a good end by itself."""
        return self.exit_code != 0

    @property
    def ending(self) -> str:
        """How the command ended, in words."""
        if self.exit_code is None:
            return f"ended at its time limit of {self.time_limit:g} s"
        if self.exit_code < 0:
            return f"ended by signal {-self.exit_code}"
        return f"exit code {self.exit_code}, {self.seconds:.1f} s"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.timed_out != (self.exit_code is None):
            raise ValueError("a command has an exit code exactly where it was not ended at its time limit")
        if self.option == "--signal-command" and self.plan != "signal":
            raise ValueError("the command for the plan signal was run for another plan")
        lines = {"stdout": readable(self.stdout), "stderr": readable(self.stderr)}
        for figure in self.figures:
            printed = lines[figure.stream]
            if figure.line > len(printed) or figure.text not in printed[figure.line - 1]:
                raise ValueError(f"line {figure.line} of {figure.stream} is not the one that {figure.name} stands in")
            if figure.source == "pattern" and figure.name not in self.patterns:
                raise ValueError(f"there is no pattern {figure.name}")
        return self


class ExternalReceipt(ExternalContent, SealedDocument):
    """The record of a run of the user's own command. `of` computes the id, `evaluator.store.seal.seal` adds the
    seal."""

    @classmethod
    def of(cls, content: ExternalContent) -> ExternalReceipt:
        """The record with its id, not sealed yet."""
        return cls(**dict(content), id=content_id(content.model_dump(mode="json")))


def parse_external(data: bytes) -> ExternalReceipt:
    """Read one. Raises `UsageError` (`receipt_invalid`) for anything else, or what was changed."""
    return read(data, {EXTERNAL_KIND: ExternalReceipt})


def choose(bench: str | None, signal: str | None, plan: str) -> tuple[Option, tuple[str, ...]]:
    """(option, words) of the command that a plan runs: `signal` the one for it if there is one, else the other.

    Both are read, so that what is wrong with either is told. UsageError.
    """
    given: dict[Option, str | None] = {"--bench-command": bench, "--signal-command": signal}
    read = {option: command.split(text, option) for option, text in given.items() if text is not None}
    if plan not in ("signal", "verdict"):
        raise UsageError(f"unknown plan {plan!r}", code="plan_unknown", hint="Plans are signal and verdict.")
    option: Option = "--signal-command" if plan == "signal" and signal is not None else "--bench-command"
    if option not in read:
        raise UsageError(
            "--signal-command only applies to --plan signal",
            code="bench_command_invalid",
            hint="Add --plan signal, or give --bench-command too.",
        )
    return option, read[option]


def run_external(
    candidate: SourceFile,
    option: Option,
    words: tuple[str, ...],
    *,
    plan: Literal["signal", "verdict"],
    seconds: float,
    patterns: Mapping[str, str],
    kopt: str,
    folder: Path | None = None,
) -> ExternalReceipt:
    """Run the command in a folder (None: the current one), read its figures, and write down both.

    Raises as `evaluator.external.command.run` does.
    """
    machine = look(kopt)
    ran = command.run(words, seconds, folder)
    by_itself = ran.exit_code is not None and ran.exit_code >= 0
    figures, notes = read_figures(ran.stdout, ran.stderr, patterns, whole=by_itself)
    if ran.left:
        notes.append(f"the command left {ran.left} processes running, which were ended")
    return ExternalReceipt.of(
        ExternalContent(
            created=utc_now(),
            plan=plan,
            option=option,
            command=words,
            time_limit=seconds,
            exit_code=ran.exit_code,
            timed_out=ran.exit_code is None,
            seconds=ran.seconds,
            left_running=ran.left,
            patterns=dict(patterns),
            figures=tuple(figures),
            notes=tuple(notes),
            stdout=ran.stdout,
            stderr=ran.stderr,
            candidate=SourceRecord.of(candidate),
            environment=machine,
            not_checked=NOT_CHECKED,
        )
    )


def look(kopt: str) -> Machine:
    """This machine."""
    return Machine(**environment.look(kopt), gpus=environment.gpu_names(), driver=environment.driver_version())
