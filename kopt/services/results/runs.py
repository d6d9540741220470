"""The JSON of `kopt run` and `kopt skill`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AliasPath, BeforeValidator, Field, ModelWrapValidatorHandler, model_validator

from kbs.common.errors import KoptError, UsageError
from kbs.common.json_model import JsonModel
from loop.gate.report import GateReport
from loop.journal.folder import RunFolder
from loop.journal.language_model import Spent
from loop.journal.record import RunRecord
from loop.journal.state import Phase, RunState
from loop.journal.version_state import Attempt
from loop.planning.frontier import frontier
from loop.planning.hints import is_preference
from loop.planning.plan import ResolvedPlan, Setting
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest
from loop.proposers.reading import RULE
from loop.run.driver import View, read_run
from loop.run.submission import PROPOSAL

Interval = tuple[float, float, float]


def _number(value: object) -> object:
    return len(value) if isinstance(value, list) else value


def _told_later(value: object) -> object:
    """An attempt has the names of its candidates, and what came of each is told by its frontier."""
    return [] if isinstance(value, tuple) else value


class CandidateData(JsonModel):
    """A candidate of an attempt, without the ids of its receipts."""

    name: str
    """`main` is the kernel itself; any other is a branch."""
    outcome: Literal["champion", "compared", "ranked", "rejected", "open"]
    why: str
    signal_us: float | None
    """Median time of its signal; null where none was taken."""
    ratio: Interval | None
    """Time of its parent over its own, by its verdict: median, lower and upper bound."""


class AttemptData(JsonModel):
    """One kernel that was tried for a version: what was submitted and what was found, in one place."""

    attempt: int = Field(validation_alias="number")
    methods: tuple[str, ...] = Field((), validation_alias=AliasPath("submitted", "methods"))
    verdict: str = Field("", validation_alias=AliasPath("evaluated", "verdict"))
    """Empty while it is not evaluated."""
    reason: str = Field("", validation_alias=AliasPath("evaluated", "reason"))
    ratio: Interval | None = Field(None, validation_alias=AliasPath("evaluated", "ratio"))
    """Time of the parent over its own: median, lower and upper bound. Of version 0, the first baseline's."""
    median_us: float | None = Field(None, validation_alias=AliasPath("evaluated", "median_us"))
    receipt: str = Field("", validation_alias=AliasPath("evaluated", "receipt"))
    """Id of its sealed receipt; empty while there is none."""
    candidates: Annotated[list[CandidateData], BeforeValidator(_told_later)] = Field(default_factory=list)
    """The champion first, then by their signals; empty while none was measured."""

    @model_validator(mode="wrap")
    @classmethod
    def _with_candidates(cls, source: object, build: ModelWrapValidatorHandler[Self]) -> Self:
        made = build(source)
        if isinstance(source, Attempt) and source.measured:
            made.candidates = [CandidateData.from_domain(one) for one in frontier(source)]
        return made


class VersionData(JsonModel):
    """A version, as far as it got: what its events say, in one place."""

    version: int = Field(validation_alias="number")
    parent: int | None
    outcome: Literal["open", "passed", "failed"] = Field("open", validation_alias=AliasPath("closed", "outcome"))
    kept: bool
    """Whether it became the best version when it was closed."""
    why: str = Field("", validation_alias=AliasPath("closed", "why"))
    masked: bool
    methods: list[str]
    bottleneck: str = Field("", validation_alias=AliasPath("profiled", "bottleneck"))
    """Empty where it was not profiled."""
    refused: Annotated[int, BeforeValidator(_number)]
    """Proposals for it that did not run."""
    attempts: list[AttemptData]
    commit: str = Field("", validation_alias=AliasPath("committed", "commit"))
    """Empty where it is not committed yet."""


class FinalData(JsonModel):
    """What was measured again at the end, without its files."""

    version: int
    agrees: bool
    ratio: Interval | None
    """Version 0's time over this one's."""
    why: str
    receipt: str


class RunData(JsonModel):
    """A run, as its journal has it: `kopt run status`, `start`, `resume`, `extend`, `mask`, `stop`, `final`."""

    run: str
    folder: str
    phase: Phase
    """What comes next; `propose`: a proposal is awaited; `finished`: nothing."""
    waiting_for: str
    """What the user or the proposer does next, as a command; empty where nothing is awaited."""
    proposer: str
    device: str
    measured: bool
    """Whether times are taken. Where not, versions are kept for being right, if --accept-unmeasured was given."""
    profile: str
    best: int | None
    iterations: int
    """Done."""
    cap: int
    """Allowed."""
    stopped: str
    """The reason; empty while it goes on."""
    stop_evidence: str
    stalls: int
    enforced: list[str]
    """Directives that the gate enforces."""
    preferred: list[str]
    """Ids of methods that are offered first."""
    passed_on: list[str]
    """Lines of HINTS.md that kopt does not understand."""
    versions: list[VersionData]
    finals: list[FinalData]
    reports: list[str]
    """Files of the report; empty before there is one."""
    spent: Spent | None
    """None for a proposer that is no language model."""

    @classmethod
    def of(cls, folder: RunFolder, record: RunRecord, state: RunState) -> Self:
        """From the run's folder and what its journal adds up to."""
        phase = state.phase(record)
        return cls(
            run=record.id,
            folder=str(folder.root),
            phase=phase,
            waiting_for=waiting_for(record, phase, folder),
            proposer=record.proposer,
            device=record.device,
            measured=record.device != "cpu",
            profile=record.profile,
            best=state.best,
            iterations=state.iterations,
            cap=state.cap(record),
            stopped=state.stopped.reason if state.stopped else "",
            stop_evidence=state.stopped.evidence if state.stopped else "",
            stalls=len(state.stalls),
            enforced=[line for line in state.directives if not is_preference(line)],
            preferred=[line.partition(":")[2].strip() for line in state.directives if is_preference(line)],
            passed_on=list(state.hints.passed_on) if state.hints else [],
            versions=[VersionData.from_domain(version) for version in state.versions],
            finals=[FinalData.from_domain(final) for final in state.finals],
            reports=sorted(state.reported.files) if state.reported else [],
            spent=state.spent if record.model else None,
        )


def unanswered(record: RunRecord, state: RunState) -> str:
    """Why the program or the model that is asked never gave a proposal; empty where it gave one, or was not asked."""
    refused = [one for version in state.versions for one in version.refused]
    tried = any(version.attempts for version in state.versions[1:])
    no_proposal = all(rule == RULE or rule.startswith(("command-", "model-")) for one in refused for rule in one.rules)
    if record.proposer == "agent" or tried or not refused or not no_proposal:
        return ""
    last = refused[-1].reasons[-1].removeprefix(f"{PROPOSAL}: ")
    return f"{record.asked} was asked {len(refused)} times and gave no proposal; the last time: {last}"


def waiting_for(record: RunRecord, phase: Phase, folder: RunFolder) -> str:
    """The command that takes a run on; empty where there is nothing to go on with."""
    if phase in (Phase.FINISHED, Phase.BASELINE_FAILED):
        return ""
    if phase is Phase.PROPOSE and record.proposer == "agent":
        return f"kopt run next --run {folder.root}"
    return f"kopt run resume --run {folder.root}"


class RunWatchData(JsonModel):
    """`kopt run watch`: how the run stood when the view ended."""

    run: RunData
    ended: bool
    """Whether the run has ended; False where only the view did."""
    trying: str
    """Version, attempt, methods and change that are being tried; empty where nothing is."""
    best_us: float | None
    """Median of the best version's own calls; None where no time was taken."""
    first_us: float | None
    """That of version 0."""
    floor_us: float | None
    """The least time that the problem takes on this GPU; None where it is not known."""
    target_us: float | None
    seconds_passed: float
    """Since the run was created."""
    seconds_left: float | None
    """None: no limit."""


class RunPlanData(JsonModel):
    """`kopt run plan`"""

    folder: str
    """Where the run would be."""
    settings: list[Setting]
    hints: list[str]
    """Each directive with its source, and what becomes of it: enforced, or passed on to the proposer."""
    not_used: list[str]
    """Other files that could have been meant, and data files, each with what it is."""
    creates: list[str]
    """What accepting the plan creates."""
    notes: list[str]
    """What the plan leaves out, and why."""
    text: str
    """The plan as a person is shown it."""

    @classmethod
    def of(cls, plan: ResolvedPlan) -> Self:
        """From the plan."""
        return cls(
            folder=str(plan.folder),
            settings=list(plan.settings),
            hints=list(plan.hints.acknowledged),
            not_used=list(plan.inventory.not_used),
            creates=list(plan.creates),
            notes=list(plan.notes),
            text="\n".join(plan.lines()),
        )


class RunStartData(JsonModel):
    """`kopt run start`"""

    plan: RunPlanData
    run: RunData | None
    """None with --dry-run, or where the plan was not accepted."""


class RunNextData(JsonModel):
    """`kopt run next`"""

    run: str
    folder: str
    phase: Phase
    why: str
    """Why nothing is wanted; empty where something is."""
    request: NextRequest | None
    """None where no proposal is wanted."""


class BrokenData(JsonModel):
    """A place where a rule of the gate is broken."""

    rule: str
    file: str
    line: Annotated[int, BeforeValidator(lambda line: line or 0)]
    """0 where it is about the file as a whole."""
    message: str
    mend: str = Field(validation_alias="fix")

    @classmethod
    def of(cls, report: GateReport) -> list[Self]:
        """Every place of a report."""
        return [
            cls(rule=result.rule, file=broken.file, line=broken.line, message=broken.message, mend=broken.fix)
            for result in report.results
            for broken in result.broken
        ]


class RunSubmitData(JsonModel):
    """`kopt run submit`"""

    version: int
    outcome: Literal["shown", "refused", "attempt_failed", "passed", "failed"]
    """`shown`: with --show, the gate lets it run. `refused`: it did not run. `attempt_failed`: it was not accepted, and
    the version has attempts left. `passed`, `failed`: how the version was closed."""
    kept: bool
    """Whether the version is the best from now on."""
    why: str
    broken: list[BrokenData]
    """Rules that were broken."""
    proposal: Proposal | None
    """As it was made from --kernel, --method and --why; None where a whole one was given."""
    run: RunData


class RuleData(JsonModel):
    """A rule of the gate, without its code."""

    rule: str = Field(validation_alias="id")
    stage: str
    title: str
    explain: str


class RunGateData(JsonModel):
    """`kopt run gate`"""

    run: str
    folder: str
    report: GateReport
    rules: list[RuleData]
    """With --explain: every rule."""


class RunApplyData(JsonModel):
    """`kopt run apply`"""

    version: int
    target: str
    diff: str
    applied: bool
    """False with --dry-run, where the answer was no, and where the file is that version already."""


class RunListItem(JsonModel):
    """A run, in a line."""

    run: str
    folder: str
    phase: str
    """`damaged` where it cannot be read; `problem` says why."""
    kernel: str = ""
    created: str = ""
    iterations: int = 0
    best: int | None = None
    problem: str = ""

    @classmethod
    def of(cls, folder: RunFolder) -> Self:
        """From its folder, whatever state that is in."""
        try:
            view = read_run(folder.root)
        except KoptError as error:
            return cls(run=folder.root.name, folder=str(folder.root), phase="damaged", problem=error.message)
        record, state = view.record, view.state
        return cls(
            run=record.id,
            folder=str(folder.root),
            phase=state.phase(record).value,
            kernel=record.kernel.origin,
            created=record.created,
            iterations=state.iterations,
            best=state.best,
        )


class RunListData(JsonModel):
    """`kopt run list`"""

    runs: list[RunListItem]


class RunShowData(JsonModel):
    """`kopt run show`"""

    run: str
    folder: str
    record: RunRecord
    version: VersionData | None
    """The one that was asked for; None where none was."""
    files: dict[str, str]
    """Files of the version, or at the top: path → SHA-256, as the journal has them."""
    journal: list[str]
    """Its events, one line each."""

    @classmethod
    def of(cls, view: View, version: int | None) -> Self:
        """Of the run, or of one of its versions. Raises UsageError `version_unknown`."""
        versions = view.state.versions
        if version is not None and version >= len(versions):
            last = f"the last one is v{len(versions) - 1}" if versions else "it has none yet"
            message = f"the run {view.record.id} has no v{version}: {last}"
            raise UsageError(message, code="version_unknown", hint="See `kopt run status`.")
        prefix = "" if version is None else f"v{version}/"
        return cls(
            run=view.record.id,
            folder=str(view.folder.root),
            record=view.record,
            version=None if version is None else VersionData.from_domain(versions[version]),
            files={path: hash for path, hash in sorted(view.state.files.items()) if path.startswith(prefix)},
            journal=_journal_lines(view.state, version),
        )


class RunReportData(JsonModel):
    """`kopt run report`"""

    run: str
    folder: str
    finished: bool
    """False: the report as it would be now."""
    markdown: str
    files: list[str]
    """Those of the report, where it was written."""

    @classmethod
    def of(cls, view: View, text: str, *, finished: bool) -> Self:
        """`text` is the report."""
        return cls(
            run=view.record.id,
            folder=str(view.folder.root),
            finished=finished,
            markdown=text,
            files=sorted(view.state.reported.files) if view.state.reported else [],
        )


def _journal_lines(state: RunState, version: int | None) -> list[str]:
    """`12 2026-11-21T07:14:00Z evaluated v1`: the journal's events, or those of one version."""
    lines = []
    for entry in state.entries:
        number = getattr(entry.event, "version", None)
        if version is None or number == version:
            about = "" if number is None else f" v{number}"
            lines.append(f"{entry.n} {entry.time} {entry.event.kind}{about}")
    return lines
