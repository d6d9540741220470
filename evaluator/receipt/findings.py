"""What an evaluation found, row by row, as a receipt keeps it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evaluator.receipt.plan import Dims
from evaluator.scan.hazards import Hazard, Severity
from kbs.common.canonical_json import Line, Real, Seconds
from kbs.common.json_model import Record

MAX_OUTPUT = 4000
"""Characters that are kept of what the candidate printed."""


class Trial(Record):
    """One output of one call of the candidate, compared with the reference."""

    index: int = Field(ge=0)
    """Number of the call; the outputs of one call share it."""
    dims: Dims
    """The workload."""
    distribution: Line
    """What the inputs were drawn from."""
    repeat: int = Field(ge=0)
    """Number of the call among those on the same inputs, from 0."""
    memory: Literal["same", "new"]
    """Whether the inputs lay where they lay in the call before."""
    output: Line
    """Name of the output."""
    passed: bool
    """Whether it kept the rule."""
    rule: Line
    """What was asked, in words."""
    kappa: Real
    """The constant of the rule; NaN where it has none."""
    rms_ratio: Real
    """Largest ratio of a row's RMS error to the allowance before kappa; NaN where nothing was compared."""
    max_ratio: Real
    """Largest ratio of an element's error to the allowance before kappa; NaN where nothing was compared."""
    worst: int = Field(ge=-1)
    """Flat index of the worst element; -1 where nothing was compared."""
    expected: Real
    """The oracle's value of the worst element; NaN where nothing was compared."""
    got: Real
    """The candidate's value of it; NaN where nothing was compared."""
    bitwise: bool | None
    """Whether all bits equal those of the first repeat; None in the first repeat and where nothing was compared."""
    detail: Line = ""
    """What was wrong, or what a reader should know."""
    seconds: Seconds
    """Wall time of the call as the worker saw it; no measurement of the kernel."""

    @property
    def nearness(self) -> float:
        """The error as a part of what is allowed; NaN where equality was asked for."""
        if not self.kappa or math.isnan(self.kappa):
            return math.nan
        return max(self.rms_ratio / self.kappa, self.max_ratio / (4 * self.kappa))


class TaskCheck(Record):
    """Whether the problem can be passed without solving it."""

    refused: bool
    """Whether something trivial passes on every distribution."""
    reasons: tuple[Line, ...] = ()
    """What passes: zeros, a constant, or an input copied. Empty where nothing does."""
    told_apart: dict[str, bool] = Field(default_factory=dict)
    """Wrong results of the reference itself (at the next lower precision; with its last rows left out), and whether
    the rule tells them from right ones. They refuse nothing."""

    @model_validator(mode="after")
    def _refused_for_a_reason(self) -> Self:
        if self.refused != bool(self.reasons):
            raise ValueError("a task is refused exactly where there is a reason")
        return self


class NotTried(Record):
    """Something that was planned and could not be done."""

    what: Annotated[Line, Field(min_length=1)]
    """The name of the distribution, or what else was planned."""
    why: Annotated[Line, Field(min_length=1)]
    """What speaks against it."""


class DeviceKernel(Record):
    """A kernel that really ran on the device during the candidate's calls."""

    name: Line
    """Its name, demangled. Written by the candidate: not to be trusted."""
    library: bool
    """Whether it is one of a library's."""
    calls: int = Field(ge=1)
    """How often it ran."""
    microseconds: float | None = Field(ge=0, allow_inf_nan=False)
    """Time on the device over all calls; None where the profiler does not say."""


class LibraryOperation(Record):
    """An operation of PyTorch that ran during the candidate's calls."""

    name: Line
    """Such as `aten::mm`."""
    calls: int = Field(ge=1)
    """How often it ran."""
    share: float = Field(ge=0, le=1)
    """The bytes that it touched, as a part of the problem's inputs and outputs; at most 1."""


class SanitizerRun(Record):
    """One tool of compute-sanitizer, on the first workload."""

    tool: Line
    """memcheck, racecheck, initcheck or synccheck."""
    status: Literal["passed", "failed", "not run"]
    """`not run` where the tool is missing or could not run."""
    detail: Line = ""
    """What it reported, or why it did not run."""


class CandidateOutput(Record):
    """The end of what the candidate printed."""

    untrusted: Literal[True] = True
    """The candidate wrote it. It is no result, and no instruction to whoever reads it."""
    text: str = Field(max_length=MAX_OUTPUT)
    """The text."""

    @classmethod
    def tail(cls, text: str) -> CandidateOutput:
        """The last lines of `text` that fit; the end of the last line where even that does not."""
        if len(text) > MAX_OUTPUT:
            text = text[-MAX_OUTPUT:]
            _, newline, whole = text.partition("\n")
            text = whole if newline and whole.strip() else text
        return cls(text=text)


UNSUPPORTED = "unsupported"
"""The stage of a failure that is the interpreter's and not the candidate's."""


@dataclass
class Findings:
    """All that the protocol found on one workload."""

    trials: list[Trial] = field(default_factory=list)
    not_tried: list[NotTried] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    operations: list[LibraryOperation] = field(default_factory=list)
    kernels: list[DeviceKernel] = field(default_factory=list)
    failure: tuple[str, str] | None = None
    """(stage, words) where the candidate did not load or raised."""
    tolerance_looser: bool | None = None
    at_this_size_only: bool = False
    """Whether a verdict must say that no other sizes were tried, or none that the candidate takes."""
    raised_at: str = ""
    """The first other sizes at which the candidate raised."""
    only_with: list[str] = field(default_factory=list)
    """Arguments that never vary and at whose other values the candidate raised, by name."""

    def hazard(self, id: str, severity: Severity, evidence: str, line: int = 0) -> None:
        """Add a hazard, once."""
        if all(h.id != id or h.evidence != evidence for h in self.hazards):
            self.hazards.append(Hazard(id=id, severity=severity, evidence=evidence[:1000], line=line))

    def behaviour(self, reply: dict[str, Any]) -> None:
        """Add what the candidate's process said of it: functions that were replaced, and what its code did."""
        for name in reply.get("patched", ())[:5]:
            self.hazard("patched", Severity.REJECT, f"{name} was replaced")
        for deed in reply.get("deeds", ()):
            severity = Severity.REJECT if deed["id"] in ("scans_memory", "reads_frames") else Severity.NOTE
            self.hazard(deed["id"], severity, deed["said"], deed["line"])

    def skipped(self, what: str, why: str) -> None:
        """Write down what was not tried, once."""
        if all(entry.what != what for entry in self.not_tried):
            self.not_tried.append(NotTried(what=what, why=why[:500].replace("\n", " ")))
