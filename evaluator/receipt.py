"""The receipt of an evaluation: what was measured, how, what was found, and whether to believe it.

A receipt is one JSON document. Its id is the hash of its content, and it cannot be built so that it contradicts itself:
an accepted candidate has passed every trial that was planned or is said not to have been tried.
"""

from __future__ import annotations

import hashlib
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evaluator import canonical
from evaluator.canonical import Line, Seconds, Sha256, UtcTime
from evaluator.environment import Environment
from evaluator.findings import CandidateOutput, DeviceKernel, LibraryOperation, NotTried, SanitizerRun, TaskCheck, Trial
from evaluator.hazards import Hazard, Severity
from evaluator.plan import Plan
from evaluator.records import CandidateRecord, ProblemRecord
from evaluator.verdict import Improvement, Verdict
from kbs.errors import KoptError, UsageError

SCHEMA_VERSION: Literal[1] = 1
KIND: Literal["kopt-receipt"] = "kopt-receipt"


class Seal(BaseModel):
    """Who wrote a receipt: see `evaluator/seal.py` for what it is worth."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    algorithm: Literal["HMAC-SHA256"] = "HMAC-SHA256"
    """How it was made."""
    key_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    """First 16 hex digits of the SHA-256 of the key."""
    mac: Sha256
    """Of the receipt without its seal."""


class ReceiptContent(BaseModel):
    """All that an evaluation has to say, before it has its id."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of this schema."""
    kind: Literal["kopt-receipt"] = KIND
    """What this document is."""
    created: UtcTime
    """When the evaluation ended."""
    problem: ProblemRecord
    """What was to be computed."""
    candidate: CandidateRecord
    """What was to compute it."""
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
    timing: None = None
    """No time was taken."""
    ceiling: None = None
    """No ceiling was measured."""
    physics: None = None
    """No time was held against physical limits."""
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
    evidence: Literal["measured", "external"] = "measured"
    """`external`: what a command of the user's printed, not measured by kopt."""

    @model_validator(mode="after")
    def _kept_to_the_plan(self) -> Self:
        if hashlib.sha256(bytes.fromhex(self.seed)).hexdigest() != self.plan.seed_commitment:
            raise ValueError("the seed is not the one that the plan committed to")
        if self.candidate.hash != self.plan.candidate_hash:
            raise ValueError("the plan was made for another candidate")
        reference = None if self.problem.reference is None else self.problem.reference.hash
        if reference != self.plan.reference_hash:
            raise ValueError("the plan was made for another reference")
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
        if self.timing is None and self.improvement not in (Improvement.NOT_TIMED, Improvement.UNSTABLE):
            raise ValueError(f"the improvement is {self.improvement}, and no time was taken")
        against = self._against_acceptance() if self.verdict is Verdict.ACCEPTED else ""
        if against:
            raise ValueError(f"the verdict is accepted, and {against}")
        return self

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
        silent = [tool for tool in self.plan.sanitizers if all(run.tool != tool for run in self.sanitizers)]
        return f"nothing says what {silent[0]} found" if silent else ""


class Receipt(ReceiptContent):
    """A receipt. `of` computes the hashes, `evaluator.seal.seal` adds the seal."""

    plan_hash: Sha256
    """SHA-256 of the canonical JSON of the plan."""
    id: Sha256
    """SHA-256 of the canonical JSON of all other fields but the seal."""
    seal: Seal | None = None
    """None where it is not sealed."""

    @classmethod
    def of(cls, content: ReceiptContent) -> Receipt:
        """The receipt of an evaluation, with its id, not sealed yet."""
        fields = {name: getattr(content, name) for name in ReceiptContent.model_fields}
        plan_hash = content.plan.hash
        return cls(**fields, plan_hash=plan_hash, id=content_id(content.model_dump(mode="json"), plan_hash))

    @model_validator(mode="after")
    def _hashes_fit(self) -> Self:
        if self.plan_hash != self.plan.hash:
            raise ValueError("the hash of the plan is not the plan's")
        if self.id != content_id(self.model_dump(mode="json"), self.plan_hash):
            raise ValueError("the id is not the hash of the content")
        return self


def content_id(document: dict[str, object], plan_hash: object) -> str:
    """The id that belongs to a receipt's JSON object, whatever id and seal it has."""
    content = {name: value for name, value in document.items() if name not in ("id", "seal")}
    return canonical.digest({**content, "plan_hash": plan_hash})


def render(receipt: Receipt) -> bytes:
    """The one JSON document of a receipt."""
    data = canonical.dumps(receipt.model_dump(mode="json"))
    if len(data) > canonical.MAX_BYTES:
        raise KoptError(
            f"the receipt would be larger than {canonical.MAX_BYTES // 2**20} MiB",
            code="receipt_too_large",
            hint="Give fewer workloads.",
        )
    return data


def parse(data: bytes) -> Receipt:
    """Read a receipt. Raises `UsageError` (`receipt_invalid`) for anything that is none, or was changed.

    White space and the order of keys are not held against it; `evaluator.seal.verify` is strict about them.
    """
    try:
        document = canonical.loads(data)
    except ValueError as error:
        raise _invalid(f"this is no receipt: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise _invalid("this is no receipt: it is JSON of another kind")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(
            f"the receipt has schema version {str(document.get('schema_version'))[:20]}, and this kopt reads"
            f" version {SCHEMA_VERSION}",
            code="receipt_invalid",
            hint="Use the version of kopt that wrote it.",
        )
    try:
        return Receipt.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_context=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))[:200]
        what = first["msg"].removeprefix("Value error, ")
        raise UsageError(
            f"this receipt is not whole: {f'{where}: ' if where else ''}{what}",
            code="receipt_invalid",
            hint="It was changed after it was written, or written by hand. Use the original or measure again.",
        ) from error


def _invalid(message: str) -> UsageError:
    return UsageError(
        message, code="receipt_invalid", hint="Give the JSON file that `kopt bench` wrote: `--receipt` names it."
    )
