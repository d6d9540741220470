"""What a proposer is told: all that it needs for the next version, as one JSON document of a published schema."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from kbs.common.canonical_json import Sha256
from kbs.common.json_model import FrozenModel
from loop.journal.record import Discipline, Grade
from loop.planning.budget import Budget
from loop.tools import DiagnosisNote, Search, Targets

SCHEMA_NAME = "run-proposal"
"""`kopt schema run-proposal` prints what an answer looks like."""


class ParentKernel(FrozenModel):
    """The version that is to be changed."""

    version: int
    path: str
    """Below the run's folder."""
    language: Literal["python", "cuda"]
    hash: Sha256
    text: str


class ProblemNote(FrozenModel):
    """What the kernel must compute, and where."""

    reference: str
    """Name of the reference in the run's folder."""
    reference_text: str
    inputs: str
    """Name of the file of inputs in the run's folder; empty where the reference makes them."""
    dims: dict[str, int]
    workloads: tuple[dict[str, int], ...]
    """Further sizes that it must be right on."""
    vary: tuple[str, ...]
    """Sizes that may be anything."""
    allow_library: bool
    device: str
    gpu: str
    """Product; empty where none is known."""


class ParentMeasured(FrozenModel):
    """What was measured of the parent."""

    receipt: Sha256
    """Cite its fields as receipt/ID#FIELD."""
    verdict: str
    improvement: str
    median_us: float | None
    """None where no time could be taken."""
    to_parent: tuple[float, float, float] | None
    """Time of what it was compared with over its own: median, lower and upper bound."""


class Fact(FrozenModel):
    """A figure of the parent's profile, or of what the user's own benchmark printed."""

    metric: str
    """Id of the vocabulary; in what a benchmark printed, its own word."""
    value: str
    """As it stands there, with its unit."""
    reference: str
    """Cite it so: profile/ID#METRIC, receipt/ID#FIELD."""


NOTHING_KNOWN = "nothing is known against it"
"""Why a method applies of which neither the user nor the experience log says anything."""


class MethodOffer(FrozenModel):
    """A method of the registry."""

    id: str
    title: str
    axis: str
    """memory, compute or latency; empty where its page does not say."""
    page: str
    """wiki/path: read it with `kopt wiki show`."""
    applies: bool
    why: str
    """Why it applies, or why not: architecture, trigger, directive, what the experience log knows of it."""
    priority: int | None
    """1 comes first on its axis; None where its page does not say."""
    tried: tuple[int, ...]
    """Versions that used it."""


class PastAttempt(FrozenModel):
    """One attempt of a past version, or of this one."""

    attempt: int
    methods: tuple[str, ...]
    single_change: str
    verdict: str
    """Empty while it is not evaluated."""
    reason: str


class PastVersion(FrozenModel):
    """What was tried, and what came of it."""

    version: int
    parent: int | None
    methods: tuple[str, ...]
    single_change: str
    expected: tuple[str, ...]
    """What its hypothesis foretold."""
    outcome: str
    """passed, failed, or open."""
    kept: bool
    """Whether it became the best version."""
    why: str
    bottleneck: str
    median_us: float | None
    ratio: tuple[float, float, float] | None
    """Time of its parent over its own: median, lower and upper bound."""
    attempts: tuple[PastAttempt, ...]


class BrokenRule(FrozenModel):
    """A rule of the gate that something broke."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    rule: str
    message: str
    file: str
    line: int | None
    fix: str = Field(validation_alias="mend", serialization_alias="mend")
    """How to fix it."""


class RefusedSubmission(FrozenModel):
    """Something that was handed in for this version and did not run."""

    submission: int
    single_change: str
    """Empty where it could not be read."""
    broken: tuple[BrokenRule, ...]


class DirectivesNote(FrozenModel):
    """What HINTS.md says."""

    enforced: tuple[str, ...]
    """The gate holds proposals to these."""
    preferred: tuple[str, ...]
    """Ids of the methods that the user wants tried first: they come first in `methods`, and nothing is enforced."""
    passed_on: tuple[str, ...]
    """kopt does not understand these; they are the user's words."""


class Left(FrozenModel):
    """What is left of the run's limits."""

    iterations: int
    """This one among them."""
    attempts: int
    """Of this version, the next one among them."""
    refusals: int | None
    """Answers that may still be refused before this version is closed as failed; None: any number."""
    seconds: float | None
    """None: no limit."""


class NextRequest(FrozenModel):
    """A proposal is wanted."""

    schema_version: Literal[1] = 1
    run: str
    """Id of the run."""
    folder: str
    """Its folder."""
    version: int = Field(ge=1)
    """The version that is wanted; the proposal must name it."""
    attempt: int = Field(ge=1)
    """Which attempt at it this will be."""
    parent: ParentKernel
    """What is to be changed; the proposal must name its version."""
    best: int
    """The best version so far."""
    target: str
    """What the user wants: `2.0x`, `90%`, or empty."""
    profile: Grade
    """How far profiles go in this run."""
    problem: ProblemNote
    measured: ParentMeasured | None
    diagnosis: DiagnosisNote | None
    """Of the parent; None where there is none."""
    facts: tuple[Fact, ...]
    """Figures of the parent's profile that may be quoted."""
    external: tuple[Fact, ...]
    """What the user's own benchmark printed of the parent: evidence that may be cited, not measured by kopt, and no
    reason to keep a version."""
    targets: Targets | None
    """What hardware and problem allow, each spec with its citation."""
    searches: tuple[Search, ...]
    """Evidence that was looked up for this version: what the experience log knows first, its best method before the
    others. Select from it, or ask further queries in the proposal."""
    directives: DirectivesNote
    methods: tuple[MethodOffer, ...]
    """The registry; those that apply first, among them those that the experience log recommends."""
    history: tuple[PastVersion, ...]
    """Past versions, the masked ones left out."""
    attempts: tuple[PastAttempt, ...]
    """Attempts at this version that failed."""
    refused: tuple[RefusedSubmission, ...]
    """Proposals for this version that the gate did not let run."""
    left: Left
    discipline: Discipline = "single"
    """`single`: one method. `budget`: several, as `budget` allows, each with an ablation."""
    budget: Budget | None = None
    """Under `budget`: where the parent's time goes, and how many methods of each axis a proposal may have."""
    branches: int = 1
    """Candidates that a proposal may have: its kernel, and `branches` with the same methods and other settings."""
    research_wanted: tuple[str, ...]
    """At a stall: what to look into before another proposal. Empty otherwise."""
    schema_name: str = SCHEMA_NAME
    """`kopt schema NAME` prints the schema of the proposal."""
    rules: tuple[str, ...]
    """What the gate asks of a proposal, a sentence each."""

    def document(self) -> bytes:
        """The request as a program gets it on its standard input."""
        return (self.model_dump_json(indent=2) + "\n").encode()
