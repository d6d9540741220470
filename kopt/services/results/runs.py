"""The JSON of `kopt run` and `kopt skill`."""

from __future__ import annotations

from typing import Literal, Self

from kbs.common.errors import KoptError
from kbs.common.json_model import JsonModel
from loop.gate.report import GateReport
from loop.journal.folder import RunFolder
from loop.journal.language_model import Spent
from loop.journal.record import RunRecord
from loop.journal.state import Attempt, Phase, RunState, VersionState
from loop.proposals.request import NextRequest
from loop.run.driver import read_run

Interval = tuple[float, float, float]


class AttemptData(JsonModel):
    """One kernel that was tried for a version."""

    attempt: int
    methods: list[str]
    verdict: str
    """Empty while it is not evaluated."""
    reason: str
    ratio: Interval | None
    """Time of the parent over its own: median, lower and upper bound. Of version 0, the first baseline's."""
    median_us: float | None
    receipt: str
    """Id of its sealed receipt; empty while there is none."""

    @classmethod
    def of(cls, attempt: Attempt) -> Self:
        """From the state."""
        done = attempt.evaluated
        return cls(
            attempt=attempt.number,
            methods=list(attempt.submitted.methods) if attempt.submitted else [],
            verdict=done.verdict.value if done else "",
            reason=done.reason if done else "",
            ratio=done.ratio if done else None,
            median_us=done.median_us if done else None,
            receipt=done.receipt if done else "",
        )


class VersionData(JsonModel):
    """A version, as far as it got."""

    version: int
    parent: int | None
    outcome: Literal["open", "passed", "failed"]
    kept: bool
    """Whether it became the best version when it was closed."""
    why: str
    masked: bool
    methods: list[str]
    bottleneck: str
    """Empty where it was not profiled."""
    refused: int
    """Proposals for it that did not run."""
    attempts: list[AttemptData]
    commit: str
    """Empty where it is not committed yet."""

    @classmethod
    def of(cls, version: VersionState) -> Self:
        """From the state."""
        closed = version.closed
        return cls(
            version=version.number,
            parent=version.parent,
            outcome=closed.outcome if closed else "open",
            kept=version.kept,
            why=closed.why if closed else "",
            masked=version.masked,
            methods=list(version.methods),
            bottleneck=version.profiled.bottleneck if version.profiled else "",
            refused=len(version.refused),
            attempts=[AttemptData.of(attempt) for attempt in version.attempts],
            commit=version.committed.commit if version.committed else "",
        )


class FinalData(JsonModel):
    """What was measured again at the end."""

    version: int
    agrees: bool
    ratio: Interval | None
    """Version 0's time over this one's."""
    why: str
    receipt: str


class SpentData(JsonModel):
    """What asking a language model used in a run."""

    calls: int
    input_tokens: int
    """Of its prompts."""
    output_tokens: int
    """Of its answers."""
    unreported: int
    """Calls of which the service did not say it: the tokens counted for them are an upper bound."""
    cost: str | None
    """US dollars, a decimal; None where a price is not set."""
    words: str
    """All of it in words."""


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
    passed_on: list[str]
    """Lines of HINTS.md that kopt does not understand."""
    versions: list[VersionData]
    finals: list[FinalData]
    reports: list[str]
    """Files of the report; empty before there is one."""
    spent: SpentData | None
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
            enforced=list(state.hints.directives) if state.hints else [],
            passed_on=list(state.hints.passed_on) if state.hints else [],
            versions=[VersionData.of(version) for version in state.versions],
            finals=[
                FinalData(version=f.version, agrees=f.agrees, ratio=f.ratio, why=f.why, receipt=f.receipt)
                for f in state.finals
            ],
            reports=sorted(state.reported.files) if state.reported else [],
            spent=_spent(state.spent) if record.model else None,
        )


def _spent(spent: Spent) -> SpentData:
    return SpentData(
        calls=spent.calls,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        unreported=spent.unreported,
        cost=None if spent.cost is None else str(spent.cost),
        words=spent.words(),
    )


def waiting_for(record: RunRecord, phase: Phase, folder: RunFolder) -> str:
    """The command that takes a run on; empty where there is nothing to go on with."""
    if phase in (Phase.FINISHED, Phase.BASELINE_FAILED):
        return ""
    if phase is Phase.PROPOSE and record.proposer == "agent":
        return f"kopt run next --run {folder.root}"
    return f"kopt run resume --run {folder.root}"


class PlanLineData(JsonModel):
    """Something that the plan fixes."""

    name: str
    value: str
    source: str
    """Why it is so: a flag, what was found, or the default."""


class RunPlanData(JsonModel):
    """`kopt run plan`"""

    folder: str
    """Where the run would be."""
    settings: list[PlanLineData]
    hints: list[str]
    """Each directive with its source, and what becomes of it: enforced, or passed on to the proposer."""
    not_used: list[str]
    """Other files that could have been meant."""
    creates: list[str]
    """What accepting the plan creates."""
    notes: list[str]
    """What the plan leaves out, and why."""
    text: str
    """The plan as a person is shown it."""


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
    line: int
    """0 where it is about the file as a whole."""
    message: str
    mend: str

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
    outcome: Literal["refused", "attempt_failed", "passed", "failed"]
    """`refused`: it did not run. `attempt_failed`: it was not accepted, and the version has attempts left. `passed`,
    `failed`: how the version was closed."""
    kept: bool
    """Whether the version is the best from now on."""
    why: str
    broken: list[BrokenData]
    """Rules that were broken."""
    run: RunData


class RuleData(JsonModel):
    """A rule of the gate."""

    rule: str
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
    kernel: str
    created: str
    iterations: int
    best: int | None
    problem: str

    @classmethod
    def of(cls, folder: RunFolder) -> Self:
        """From its folder, whatever state that is in."""
        try:
            view = read_run(folder.root)
        except KoptError as error:
            return cls(
                run=folder.root.name, folder=str(folder.root), phase="damaged", kernel="", created="", iterations=0,
                best=None, problem=error.message,
            )  # fmt: skip
        record, state = view.record, view.state
        return cls(
            run=record.id,
            folder=str(folder.root),
            phase=state.phase(record).value,
            kernel=record.kernel.origin,
            created=record.created,
            iterations=state.iterations,
            best=state.best,
            problem="",
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


class RunReportData(JsonModel):
    """`kopt run report`"""

    run: str
    folder: str
    finished: bool
    """False: the report as it would be now."""
    markdown: str
    files: list[str]
    """Those of the report, where it was written."""


def journal_lines(state: RunState, version: int | None) -> list[str]:
    """`12 2026-11-21T07:14:00Z evaluated v1`: the journal's events, or those of one version."""
    lines = []
    for entry in state.entries:
        number = getattr(entry.event, "version", None)
        if version is None or number == version:
            about = "" if number is None else f" v{number}"
            lines.append(f"{entry.n} {entry.time} {entry.event.kind}{about}")
    return lines
