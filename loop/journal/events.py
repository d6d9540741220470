"""What can happen in a run: each event is a line of its journal, and the run's state is what the lines add up to."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Literal

from pydantic import Field

from evaluator.receipt.verdict import Improvement, Verdict
from kbs.common.canonical_json import Sha256
from kbs.common.json_model import FrozenModel
from kbs.common.ulid import PATTERN as ULID
from loop.journal.folder import MAIN
from loop.journal.language_model import ModelCall

Files = dict[str, Sha256]
"""Path below the run's folder → SHA-256 of the file's bytes."""
Interval = tuple[float, float, float]
"""Median, lower and upper bound."""
StopReason = Literal["cap", "time", "floor", "directions_exhausted", "target_reached", "budget", "user"]


class Created(FrozenModel):
    """The plan was accepted: run.json and the first files stand."""

    kind: Literal["created"] = "created"
    record: Sha256
    """Of run.json."""
    files: Files


class Prepared(FrozenModel):
    """Step 0 is done: the environment, the specs with their sources, what the hardware and the problem allow."""

    kind: Literal["prepared"] = "prepared"
    files: Files


class HintsRead(FrozenModel):
    """HINTS.md was read: at the start, at a resume, or because it changed."""

    kind: Literal["hints_read"] = "hints_read"
    file: Sha256 | None
    """None where there is no such file."""
    directives: tuple[str, ...]
    """Those that kopt understands and the gate enforces, in its own words."""
    passed_on: tuple[str, ...]
    """Those that it does not: for the proposer alone."""


class Opened(FrozenModel):
    """A version is begun, and a proposal for it is wanted. Version 0 is the user's kernel and needs none."""

    kind: Literal["opened"] = "opened"
    version: int = Field(ge=0)
    parent: int | None
    """None for version 0."""
    searches: Files = Field(default_factory=dict)
    """The evidence that was looked up for it."""


class Asked(FrozenModel):
    """A language model was asked for a proposal: what that used. Its answer is what was handed in next."""

    kind: Literal["asked"] = "asked"
    version: int
    call: ModelCall


class Refused(FrozenModel):
    """What was handed in was no proposal, or was rejected before anything ran. It is no attempt.

    After `submitted` without `evaluated`: the evaluator could not take it, and that attempt was none.
    """

    kind: Literal["refused"] = "refused"
    version: int
    submission: int
    """Which one for this version, from 1."""
    rules: tuple[str, ...]
    """Ids of the rules that it broke; `schema` where it could not be read."""
    reasons: tuple[str, ...]
    files: Files
    """What was handed in, kept."""


class Submitted(FrozenModel):
    """A proposal that the gate lets run: an attempt."""

    kind: Literal["submitted"] = "submitted"
    version: int
    attempt: int = Field(ge=1)
    parent: int
    methods: tuple[str, ...]
    branches: tuple[str, ...] = (MAIN,)
    """The candidates; `main` is the proposal's own kernel."""
    ablations: tuple[str, ...] = ()
    """The methods that it is also handed in without."""
    files: Files


class Measured(FrozenModel):
    """One of an attempt's candidates was measured, or the accepted one without a method."""

    kind: Literal["measured"] = "measured"
    version: int
    attempt: int
    what: Literal["signal", "verdict", "ablation"]
    """`signal`: quick and alone, to rank it. `verdict`: against the parent. `ablation`: the accepted kernel without one
    of its methods, against that kernel."""
    name: str
    """The candidate; of an ablation, the method that is left out."""
    receipt: Sha256 | None
    """Id of the sealed receipt; None if the evaluator could not take the kernel."""
    verdict: Verdict | None
    improvement: Improvement | None
    reason: str
    ratio: Interval | None
    """Median, lower and upper bound of the time of what it was compared with over its own; None for a signal."""
    median_us: float | None
    seconds: float
    """How long the evaluation took."""
    files: Files


class Evaluated(FrozenModel):
    """An attempt was held against the reference and timed: its champion stands for it."""

    kind: Literal["evaluated"] = "evaluated"
    version: int
    attempt: int
    receipt: Sha256
    """Id of the sealed receipt."""
    verdict: Verdict
    improvement: Improvement
    reason: str
    ratio: Interval | None
    """Median, lower and upper bound of parent time over this kernel's; for version 0, of the first baseline's."""
    median_us: float | None
    branch: str = MAIN
    """The champion: the candidate that the attempt stands for."""
    files: Files


class Profiled(FrozenModel):
    """A correct version was profiled and diagnosed, as far as the run's profile grade goes."""

    kind: Literal["profiled"] = "profiled"
    version: int
    grade: Literal["full", "degraded", "none"]
    bottleneck: str
    """A class of the vocabulary, or `unknown`."""
    why: str
    """Why the grade is not full; empty where it is."""
    files: Files


class Gated(FrozenModel):
    """The gate looked at a whole version."""

    kind: Literal["gated"] = "gated"
    version: int
    passed: bool
    rules: tuple[str, ...]
    """Ids of the rules that are broken."""
    lapsed: tuple[str, ...]
    """Ids of the rules that this run's profile grade or device leaves out."""
    checked: Files
    """Every file that was looked at."""


class Closed(FrozenModel):
    """A version is ended. Both outcomes permit the next one; only a passed version can be a parent."""

    kind: Literal["closed"] = "closed"
    version: int
    outcome: Literal["passed", "failed"]
    kept: bool
    """Whether it is the best version from now on."""
    why: str
    files: Files
    """memory.json and what else was written with it."""


class Recorded(FrozenModel):
    """What came of the version stands in the experience log. Version 0 has nothing to record."""

    kind: Literal["recorded"] = "recorded"
    version: int = Field(ge=1)
    record: str = Field(pattern=f"{ULID}|^$")
    """Id, cited as log/ID; empty where nothing was tried."""
    outcome: str
    """As the record has it; empty where there is none."""
    why: str
    """Why there is no record, or what of it could not be read; empty where nothing was amiss."""


class Committed(FrozenModel):
    """Git has it."""

    kind: Literal["committed"] = "committed"
    what: str
    """`baseline` or `iter 3`. The commit of the end holds the whole journal, and so has no line in it."""
    commit: str = Field(pattern=r"^[0-9a-f]{40,64}$")


class Stalled(FrozenModel):
    """Several iterations brought less than the stall's threshold: directions are looked at again."""

    kind: Literal["stalled"] = "stalled"
    version: int
    """The last one."""
    tried: tuple[str, ...]
    """Methods that were tried."""
    untried: tuple[str, ...]
    """Methods of the registry that apply and were not."""
    masked: tuple[int, ...] = ()
    """Versions that the partial restart masks."""


class Masked(FrozenModel):
    """A version's record is left out of what proposers see."""

    kind: Literal["masked"] = "masked"
    version: int
    masked: bool
    why: str


class Extended(FrozenModel):
    """More iterations were allowed."""

    kind: Literal["extended"] = "extended"
    iterations: int = Field(ge=1)
    """How many more."""


class Stopped(FrozenModel):
    """No further version is begun."""

    kind: Literal["stopped"] = "stopped"
    reason: StopReason
    evidence: str
    """What the reason rests on, with its figures."""


class FinalMeasured(FrozenModel):
    """The best version was restored and measured again, against version 0."""

    kind: Literal["final_measured"] = "final_measured"
    version: int
    receipt: Sha256
    agrees: bool
    """Whether this measurement and the version's own say the same."""
    ratio: Interval | None
    """Version 0's time over this one's; None where none was taken, or it is version 0."""
    why: str
    files: Files


class Reported(FrozenModel):
    """final_report.md and its pictures stand."""

    kind: Literal["reported"] = "reported"
    files: Files


class Applied(FrozenModel):
    """The best version was copied over the user's kernel."""

    kind: Literal["applied"] = "applied"
    version: int
    target: str
    before: Sha256
    after: Sha256


def replaced(number: int, target: str) -> str:
    """Path of the copy of a file that was replaced; `number` counts the `applied` events, from 1."""
    return f"replaced/a{number}-{PurePath(target).name}"


Event = Annotated[
    Created
    | Prepared
    | HintsRead
    | Opened
    | Asked
    | Refused
    | Submitted
    | Measured
    | Evaluated
    | Profiled
    | Gated
    | Closed
    | Recorded
    | Committed
    | Stalled
    | Masked
    | Extended
    | Stopped
    | FinalMeasured
    | Reported
    | Applied,
    Field(discriminator="kind"),
]
"""Any of them."""
