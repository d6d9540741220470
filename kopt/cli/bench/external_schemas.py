"""The JSON of `kopt bench --bench-command`: what a command of the user's printed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kopt.cli.data import Data

if TYPE_CHECKING:
    from evaluator.external.record import ExternalReceipt


class FigureData(Data):
    """A number that the command printed."""

    name: str
    """The pattern's name, the keys of the JSON joined by dots, or the word that stands there."""
    value: float
    """In the unit in which it was printed."""
    unit: str
    """`us`, `ms`, `GB/s`, `TFLOP/s`, `x` and their like; empty where none stands there."""
    source: Literal["json", "pattern", "default"]
    stream: Literal["stdout", "stderr"]
    line: int
    """Number of its line in `text` of that stream."""
    text: str
    """The line, or what stands around the number where it is long."""


class PrintedData(Data):
    """The end of what the command printed on one stream. Untrusted."""

    untrusted: Literal[True]
    text: str
    size: int
    """Bytes that it printed in all."""
    partial: bool
    """Whether the first line of `text` has lost its beginning."""


class ExternalData(Data):
    """`kopt bench --bench-command`, told apart by `evidence` from what kopt measured: no verdict, and no times."""

    evidence: Literal["external"]
    """A command of the user's printed it; kopt measured nothing."""
    candidate: str
    """Name of the file that the user says was measured."""
    candidate_hash: str
    """SHA-256 of its text."""
    plan: Literal["signal", "verdict"]
    option: Literal["--bench-command", "--signal-command"]
    """The option that gave the command."""
    command: list[str]
    """Its words."""
    exit_code: int | None
    """The number of the signal, negative, that ended it; None where it was ended at its time limit."""
    timed_out: bool
    seconds: float
    """Time that it took, start of the program and all."""
    figures: list[FigureData]
    stdout: PrintedData
    stderr: PrintedData
    not_checked: list[str]
    """What the receipt does not say, in sentences."""
    receipt: str
    """The receipt's file."""
    environment: dict[str, Any]
    """The machine, as in the receipt (`kopt schema external-receipt`, Machine)."""

    @classmethod
    def of(cls, receipt: ExternalReceipt, path: Path) -> ExternalData:
        """From a receipt and where it was written."""
        content = receipt.model_dump(mode="json")
        own = {"candidate": receipt.candidate.name, "candidate_hash": receipt.candidate.hash, "receipt": str(path)}
        return cls(**{**{name: content[name] for name in cls.model_fields if name not in own}, **own})
