"""Data of `kopt bench` and its subcommands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evaluator.external.command import Printed
from evaluator.external.figures import Figure
from evaluator.external.record import ExternalReceipt
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Ceiling, Physics
from evaluator.scan.hazards import Hazard
from kbs.common.json_model import JsonModel
from kopt.services.results.timing import TimingData

if TYPE_CHECKING:
    from evaluator.noise import NoiseRun
    from evaluator.timing.ceilings import Ceilings


class BenchData(JsonModel):
    """`kopt bench`"""

    evidence: Literal["measured"]
    """By kopt. `external` is what a command of the user's printed (`--bench-command`)."""
    verdict: str
    """accepted, incorrect, cheating, compile_error, crashed, timeout, not_supported_here or task_refused."""
    improvement: str
    """faster, same, slower, unstable, not_compared or not_timed."""
    reason: str
    """The main reason for the verdict, in one sentence."""
    hazards: list[Hazard]
    correctness: list[dict[str, Any]]
    """Every output of every call: the rows of the receipt (`kopt schema receipt`, Trial)."""
    timing: TimingData | None
    """None where no time was taken: on the CPU, or because the candidate was rejected before."""
    ceiling: Ceiling | None
    """Of the first workload; None where none was measured."""
    physics: Physics | None
    """Of the first workload; None where no time was taken."""
    not_checked: list[str]
    """What the receipt does not say, in sentences."""
    receipt: str
    """The receipt's file."""
    environment: dict[str, Any]
    """Machine, device, software and layers of isolation, as in the receipt."""

    @classmethod
    def of(cls, receipt: Receipt, path: Path) -> BenchData:
        """From a receipt and where it was written."""
        content = receipt.model_dump(mode="json", exclude={"timing"})
        kept = ("evidence", "verdict", "improvement", "reason", "correctness", "not_checked", "environment")
        return cls(
            **{name: content[name] for name in kept},
            timing=TimingData.of(receipt.timing, receipt.improvement.value),
            ceiling=receipt.ceiling,
            physics=receipt.physics,
            hazards=list(receipt.hazards),
            receipt=str(path),
        )


class VerifyData(JsonModel):
    """`kopt bench verify`"""

    receipt: str
    ok: bool
    content: str
    """intact, changed, or not canonical: the same content in other bytes."""
    seal: str
    """own key, foreign key, none or broken."""
    evidence: Literal["measured", "external"] | None
    """Measured by kopt, or printed by a command of the user's. None for what is no receipt."""
    detail: str


class BenchExportData(JsonModel):
    """`kopt bench export`"""

    file: str
    """Empty: standard output."""
    format: str


class ReplayData(JsonModel):
    """`kopt bench replay`"""

    same: bool
    """Whether the replay came to the same result."""
    differences: list[str]
    environment: list[str]
    """What is different about machine and software; not held against the result."""
    replay: BenchData


class ExternalData(JsonModel):
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
    figures: list[Figure]
    stdout: Printed
    stderr: Printed
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


class CeilingsData(JsonModel):
    """`kopt bench ceilings`"""

    device: str
    driver: str
    torch: str
    """PyTorch, whose kernels were measured."""
    cuda: str
    created: str
    l2_bytes: int
    empty_us: float
    """Median time of a pair of events with nothing between."""
    figures: list[dict[str, Any]]
    """name, value, unit (GB/s, TFLOP/s or us), us (median time), n (samples)."""
    clocks: dict[str, Any]
    path: str
    """Where they are kept."""

    @classmethod
    def of(cls, found: Ceilings, path: Path) -> CeilingsData:
        """From what was measured and where it is kept."""
        content = found.model_dump(mode="json", exclude={"schema_version", "kind"})
        return cls(**content, path=str(path))


class NoiseData(JsonModel):
    """`kopt bench noise`"""

    runs: list[dict[str, Any]]
    """run, improvement, ratio (median, ci_low, ci_high, noise …), median_us, turns, seconds, turn_seconds."""
    wrong: int
    """Runs that called a difference where there is none."""
    largest_noise: float
    """Largest noise floor of a run, as a part of the time."""

    @classmethod
    def of(cls, found: Sequence[NoiseRun]) -> NoiseData:
        """From all runs."""
        return cls(
            runs=[run.model_dump(mode="json") for run in found],
            wrong=sum(run.improvement in ("faster", "slower") for run in found),
            largest_noise=max((run.ratio.noise for run in found), default=0.0),
        )
