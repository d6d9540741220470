"""JSON of `kopt bench`, `kopt bench verify` and `kopt bench replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kopt.cli.bench.timing_schemas import CeilingData, PhysicsData, TimingData
from kopt.cli.data import Data

if TYPE_CHECKING:
    from evaluator.receipt.receipt import Receipt


class HazardData(Data):
    """Something that speaks against a measurement, or that a reader may want to look at."""

    id: str
    severity: Literal["reject", "note"]
    evidence: str
    line: int
    """Line of the candidate's file; 0 where it was not found in the text."""


class BenchData(Data):
    """`kopt bench`"""

    evidence: Literal["measured"]
    """By kopt. `external` is what a command of the user's printed (`--bench-command`)."""
    verdict: str
    """accepted, incorrect, cheating, compile_error, crashed, timeout or task_refused."""
    improvement: str
    """faster, same, slower, unstable, not_compared or not_timed."""
    reason: str
    """The main reason for the verdict, in one sentence."""
    hazards: list[HazardData]
    correctness: list[dict[str, Any]]
    """Every output of every call: the rows of the receipt (`kopt schema receipt`, Trial)."""
    timing: TimingData | None
    """None where no time was taken: on the CPU, or because the candidate was rejected before."""
    ceiling: CeilingData | None
    """Of the first workload; None where none was measured."""
    physics: PhysicsData | None
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
            ceiling=None if receipt.ceiling is None else CeilingData(**content["ceiling"]),
            physics=PhysicsData.of(receipt.physics),
            hazards=[HazardData(**hazard) for hazard in content["hazards"]],
            receipt=str(path),
        )


class VerifyData(Data):
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


class ReplayData(Data):
    """`kopt bench replay`"""

    same: bool
    """Whether the replay came to the same result."""
    differences: list[str]
    environment: list[str]
    """What is different about machine and software; not held against the result."""
    replay: BenchData
