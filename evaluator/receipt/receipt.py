"""The receipt of an evaluation: what was measured, how, what was found, and whether to believe it.

A receipt is one JSON document. Its id is the hash of its content, and it cannot be built so that it contradicts itself:
an accepted candidate has passed every trial that was planned or is said not to have been tried.
"""

from __future__ import annotations

import hashlib
from typing import Literal, Self

from pydantic import Field, model_validator

from evaluator.receipt.document import KIND, Seal, SealedDocument, content_id, read, render
from evaluator.receipt.environment import Environment
from evaluator.receipt.findings import (
    CandidateOutput,
    DeviceKernel,
    LibraryOperation,
    NotTried,
    SanitizerRun,
    TaskCheck,
    Trial,
)
from evaluator.receipt.plan import Plan
from evaluator.receipt.problem import CandidateRecord, ProblemRecord, SourceRecord
from evaluator.receipt.timing import Ceiling, Physics, Timing
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.scan.hazards import Hazard, Severity
from kbs.common.canonical_json import Line, Seconds, Sha256, UtcTime
from kbs.common.json_model import Record

__all__ = ["Receipt", "ReceiptContent", "Seal", "content_id", "parse", "render"]

SCHEMA_VERSION: Literal[2] = 2


class ReceiptContent(Record):
    """All that an evaluation has to say, before it has its id."""

    schema_version: Literal[2] = SCHEMA_VERSION
    """Version of this schema."""
    kind: Literal["kopt-receipt"] = KIND
    """What this document is."""
    created: UtcTime
    """When the evaluation ended."""
    problem: ProblemRecord
    """What was to be computed."""
    candidate: CandidateRecord
    """What was to compute it."""
    incumbent: SourceRecord | None = None
    """Another kernel that the candidate was compared with in time; None where there was none."""
    plan: Plan
    """What was to be done, as it was written before the candidate ran."""
    seed: Sha256
    """The 32 bytes that all seeds are derived from, in hex: revealed now, committed to in the plan."""
    environment: Environment
    """Where it was done."""
    correctness: tuple[Trial, ...]
    """Every output of every call that was compared."""
    task_check: TaskCheck | None
    """Whether the problem can be passed without solving it; None where the evaluation ended before."""
    not_tried: tuple[NotTried, ...]
    """What was planned and not done. A distribution stands under its name."""
    kernels: tuple[DeviceKernel, ...]
    """What really ran on the device."""
    library_operations: tuple[LibraryOperation, ...]
    """Operations of PyTorch that the candidate called."""
    hazards: tuple[Hazard, ...]
    """What speaks against the measurement."""
    sanitizers: tuple[SanitizerRun, ...]
    """Tools of compute-sanitizer."""
    timing: Timing | None = None
    """Every time that was taken; None where none was."""
    ceiling: Ceiling | None = None
    """That of the first workload; None where none was measured."""
    physics: Physics | None = None
    """The first workload's time held against physical limits; None where no time was taken."""
    not_checked: tuple[Line, ...]
    """What this receipt does not say, in sentences."""
    verdict: Verdict
    """Whether the candidate is to be believed."""
    improvement: Improvement
    """Whether it is faster than the baseline."""
    reason: Line = Field(min_length=1)
    """The main reason for the verdict, in one sentence."""
    output_tail: CandidateOutput
    """What the candidate printed last. Untrusted."""
    seconds: Seconds
    """Time that the evaluation took."""
    evidence: Literal["measured"] = "measured"
    """Measured by kopt. What a command of the user's printed is another kind of document
    (`evaluator/external/record.py`)."""

    @model_validator(mode="after")
    def _kept_to_the_plan(self) -> Self:
        if hashlib.sha256(bytes.fromhex(self.seed)).hexdigest() != self.plan.seed_commitment:
            raise ValueError("the seed is not the one that the plan committed to")
        if self.candidate.hash != self.plan.candidate_hash:
            raise ValueError("the plan was made for another candidate")
        reference = None if self.problem.reference is None else self.problem.reference.hash
        if reference != self.plan.reference_hash:
            raise ValueError("the plan was made for another reference")
        planned = () if self.plan.timing is None else self.plan.timing.baselines
        if self.incumbent is None and any(baseline.how == "incumbent" for baseline in planned):
            raise ValueError("the plan compares with an incumbent, and there is none")
        if len({(trial.index, trial.output) for trial in self.correctness}) != len(self.correctness):
            raise ValueError("one output of one call stands in the table twice")
        return self

    @model_validator(mode="after")
    def _verdict_follows(self) -> Self:
        rejected = any(hazard.severity is Severity.REJECT for hazard in self.hazards)
        if self.verdict is Verdict.CHEATING and not rejected:
            raise ValueError("the verdict is cheating, and no hazard says why")
        if self.verdict is Verdict.TASK_REFUSED and not (self.task_check and self.task_check.refused):
            raise ValueError("the verdict is task_refused, and the task check did not refuse it")
        against = self._against_acceptance() if self.verdict is Verdict.ACCEPTED else ""
        if against:
            raise ValueError(f"the verdict is accepted, and {against}")
        against = self._against_improvement()
        if against:
            raise ValueError(f"the improvement is {self.improvement}, and {against}")
        return self

    @model_validator(mode="after")
    def _times_of_this_plan(self) -> Self:
        first = None if self.timing is None else self.timing.workloads[0]
        if self.ceiling != (None if first is None else first.ceiling):
            raise ValueError("the ceiling is not that of the first workload's times")
        if self.physics != (None if first is None else first.physics):
            raise ValueError("the physics are not those of the first workload's times")
        if self.timing is None:
            return self
        if self.timing.plan != self.plan.name:
            raise ValueError("the times were taken by another plan")
        dims = [workload.dims for workload in self.timing.workloads]
        if any(d not in self.plan.workloads for d in dims) or any(d in dims[:n] for n, d in enumerate(dims)):
            raise ValueError("the times are of workloads that were not planned, or of one twice")
        return self

    def _against_improvement(self) -> str:
        """What the improvement contradicts; empty where nothing."""
        if self.timing is None:
            return "" if self.improvement is Improvement.NOT_TIMED else "no time was taken"
        if self.improvement is Improvement.NOT_TIMED:
            return "there are times"
        if self.improvement is Improvement.UNSTABLE:
            return ""
        if self.verdict is not Verdict.ACCEPTED:
            return f"the verdict is {self.verdict}"
        ratio = self.timing.ratio
        if self.improvement is Improvement.NOT_COMPARED:
            return "" if ratio is None else "there is a ratio"
        if ratio is None:
            return "there is no ratio"
        found = {workload.improvement for workload in self.timing.workloads}
        if self.improvement is Improvement.SLOWER:
            said = ratio.ci_high < 1 or Improvement.SLOWER in found
            return "" if said else "neither the interval of the ratio nor a workload says so"
        against = found - {Improvement.FASTER, Improvement.SAME}
        if against:
            return f"a workload is {min(against)}"
        if not all(workload.confirmed for workload in self.timing.workloads):
            return "no cross-check confirms a workload's device time"
        if self.improvement is Improvement.FASTER and ratio.ci_low <= 1:
            return "the interval of the ratio reaches down to 1"
        return ""

    def _against_acceptance(self) -> str:
        """What forbids the verdict `accepted`; empty where nothing does."""
        if not self.correctness:
            return "nothing was compared"
        failed = [trial for trial in self.correctness if not trial.passed]
        if failed:
            return f"output {failed[0].output} of call {failed[0].index} failed"
        rejected = [hazard.id for hazard in self.hazards if hazard.severity is Severity.REJECT]
        if rejected:
            return f"the hazard {rejected[0]} rejects"
        if self.task_check is None or self.task_check.refused:
            return "the task was not checked" if self.task_check is None else "the task is refused"
        untried = [dims for dims in self.plan.workloads if all(trial.dims != dims for trial in self.correctness)]
        if untried:
            return f"the workload {untried[0]} was not tried"
        told = {trial.distribution for trial in self.correctness} | {skipped.what for skipped in self.not_tried}
        silent = [name for name in self.plan.distributions if name not in told]
        if silent:
            return f"the distribution {silent[0]} was not tried, and nothing says why"
        unsound = [run.tool for run in self.sanitizers if run.status == "failed"]
        if unsound:
            return f"{unsound[0]} failed"
        for workload in () if self.timing is None else self.timing.workloads:
            if "refuted" in (workload.spans and workload.spans.status, workload.audit.status):
                return "a cross-check refutes its time"
            if workload.physics.status == "impossible":
                return "its time is impossible"
        silent = [tool for tool in self.plan.sanitizers if all(run.tool != tool for run in self.sanitizers)]
        return f"nothing says what {silent[0]} found" if silent else ""


class Receipt(ReceiptContent, SealedDocument):
    """A receipt. `of` computes the hashes, `evaluator.store.seal.seal` adds the seal."""

    plan_hash: Sha256
    """SHA-256 of the canonical JSON of the plan."""

    @classmethod
    def of(cls, content: ReceiptContent) -> Receipt:
        """The receipt of an evaluation, with its id, not sealed yet."""
        plan_hash = content.plan.hash
        id = content_id({**content.model_dump(mode="json"), "plan_hash": plan_hash})
        return cls(**dict(content), plan_hash=plan_hash, id=id)

    @model_validator(mode="after")
    def _plan_fits(self) -> Self:
        if self.plan_hash != self.plan.hash:
            raise ValueError("the hash of the plan is not the plan's")
        return self


def parse(data: bytes) -> Receipt:
    """Read the receipt of an evaluation; `evaluator.store.store.parse` reads every kind.

    Raises `UsageError`: `external_receipt` for what a command of the user's printed, `receipt_invalid` for all else.
    """
    return read(data, {KIND: Receipt})
