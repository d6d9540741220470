"""Takes a proposal for a version as an attempt, or refuses it with every reason. Both are kept."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.source.forms import Form
from kbs.common import canonical_json as canonical
from kbs.common.errors import NoGpuError, UsageError
from kbs.common.files import keep_only, read_if_there
from loop.gate.report import GateReport
from loop.journal.events import Files, Refused, Submitted
from loop.journal.folder import KERNELS
from loop.proposals import evidence
from loop.proposals.proposal import Proposal
from loop.proposals.request import BrokenRule
from loop.proposers.reading import Unread
from loop.run.open_run import Run

PROPOSAL = "proposal.json"
UNFIT = "kernel"
"""The rule for a kernel that the evaluator cannot run: it has no entry, two entries, or an unknown form."""


@dataclass(frozen=True)
class Submission:
    """What became of a submitted answer."""

    accepted: bool
    """Whether it became an attempt."""
    number: int
    """Number of the attempt, or of the refused submission."""
    broken: tuple[BrokenRule, ...] = ()
    """The rules that it broke."""
    report: GateReport | None = None
    """The gate's report; None if the gate did not run."""


def submit(run: Run, outcome: Proposal | Unread, data: bytes, said: str) -> Submission:
    """Take an answer for the open version, or refuse it. Raises `KoptError`."""
    if isinstance(outcome, Unread):
        broken = tuple(_broken(outcome.rule, reason, PROPOSAL, outcome.fix) for reason in outcome.reasons)
        beside = {"stderr.txt": said.encode("utf-8", "replace")} if said else {}
        return refuse(run, broken, {"answer.txt": data, **beside})
    document, version = canonical.dumps(outcome.model_dump(mode="json")), run.version
    unfit = _unfit(run, outcome)
    if unfit is not None:
        return refuse(run, (unfit,), {PROPOSAL: document})
    searches = run.put(_ask_further(run, outcome))
    report, broken = _gated(run, outcome)
    if broken:
        return refuse(run, broken, {PROPOSAL: document}, report, searches)
    number = len(version.attempts) + 1
    folder, name = run.folder.attempt(version.number, number), KERNELS[outcome.language]
    keep_only(folder, [name, PROPOSAL])
    made = run.put(run.below(folder, {name: outcome.kernel.encode("utf-8"), PROPOSAL: document}))
    keep_only(run.folder.branches(version.number, number), ())
    for branch in outcome.branches:
        below = run.folder.candidate(version.number, number, branch.name)
        made |= run.put(run.below(below, {name: branch.kernel.encode("utf-8")}))
    run.happened(
        Submitted(
            version=version.number,
            attempt=number,
            parent=outcome.parent,
            methods=outcome.methods,
            branches=tuple(outcome.candidates),
            ablations=tuple(one.method for one in outcome.ablations),
            files=made | searches,
        )
    )
    return Submission(True, number, report=report)


def check(run: Run, proposal: Proposal) -> Submission:
    """What would become of a proposal that is handed in now. Writes nothing. Raises `KoptError`."""
    version = run.version
    unfit = _unfit(run, proposal)
    if unfit is not None:
        return Submission(False, len(version.refused) + 1, (unfit,))
    searches = _ask_further(run, proposal)
    report, broken = _gated(run, proposal, searches)
    if broken:
        return Submission(False, len(version.refused) + 1, broken, report)
    return Submission(True, len(version.attempts) + 1, report=report)


def _gated(run: Run, proposal: Proposal, *unwritten: dict[str, bytes]) -> tuple[GateReport, tuple[BrokenRule, ...]]:
    """(the gate's report on a proposal, every place that breaks a rule, in the texts of its other kernels too).

    `unwritten`: files by path that are taken as if they were on the disk already.
    """
    report = run.parts.gate(run.state, run.version.number, "proposal", proposal, *unwritten)
    found = [(result.rule, one) for result in report.results for one in result.broken]
    broken = [_broken(rule, one.message, one.file, one.fix, one.line) for rule, one in found]
    name = KERNELS[proposal.language]
    for place, other in proposal.others:
        for result in run.parts.gate(run.state, run.version.number, "proposal", other, *unwritten).results:
            of_text = [one for one in result.broken if one.file == name]
            broken += [_broken(result.rule, one.message, f"{PROPOSAL}#{place}", one.fix, one.line) for one in of_text]
    return report, tuple(broken)


def refuse(
    run: Run,
    broken: tuple[BrokenRule, ...],
    files: dict[str, bytes],
    report: GateReport | None = None,
    searches: Files | None = None,
) -> Submission:
    """Keep an answer with the reasons for its refusal. It does not count as an attempt."""
    version = run.version
    number = len(version.refused) + 1
    folder = run.folder.submission(version.number, number)
    kept = {**files, "reasons.json": canonical.dumps([one.model_dump(mode="json") for one in broken])}
    keep_only(folder, kept)
    made = run.put(run.below(folder, kept))
    run.happened(
        Refused(
            version=version.number,
            submission=number,
            rules=tuple(dict.fromkeys(one.rule for one in broken)),
            reasons=tuple(f"{one.file}{f':{one.line}' if one.line else ''}: {one.message}" for one in broken),
            files=made | (searches or {}),
        )
    )
    return Submission(False, number, broken, report)


def refuse_attempt(run: Run, error: UsageError | NoGpuError) -> None:
    """Take an attempt back that the evaluator found to be nothing that it can run: none of it ran."""
    version = run.version
    folder = run.folder.attempt(version.number, version.attempts[-1].number)
    files = {PROPOSAL: read_if_there(folder / PROPOSAL) or b""}
    refuse(run, (_broken(UNFIT, error.message, run.kernel(folder).name, error.hint),), files)


def _unfit(run: Run, proposal: Proposal) -> BrokenRule | None:
    """Why a proposal cannot run at all, whatever the gate says; None if it can."""
    wanted, name = run.version.number, KERNELS[proposal.language]
    if proposal.version != wanted:
        said = f"it is for version {proposal.version}, but version {wanted} is open"
        return _broken("schema", said, PROPOSAL, f"Set version to {wanted}.")
    if not 0 <= proposal.parent < wanted or not run.state.versions[proposal.parent].passed:
        said = f"its parent, version {proposal.parent}, did not pass"
        return _broken("schema", said, PROPOSAL, f"The best version is {run.state.best}.")
    parent = run.version_kernel(proposal.parent).text
    others = ((f"{PROPOSAL}#{place}", other) for place, other in proposal.others)
    for place, one in ((name, proposal), *others):
        try:
            form = run.tools.request(one.kernel, name, parent).recognised().form
            if form is Form.SOLVE and run.record.device == "cpu":
                return _broken(UNFIT, "a .cu kernel needs a GPU, and this run has none", place, "Use Triton.")
        except (UsageError, NoGpuError) as error:
            return _broken(UNFIT, error.message, place, error.hint)
    return None


def _ask_further(run: Run, proposal: Proposal) -> dict[str, bytes]:
    """Ask a proposal's queries: the version's searches with what was found, by path."""
    path = run.folder.version(run.version.number) / evidence.NAME
    there = evidence.read(path)
    found = run.parts.look_further(run.state, proposal, there)
    return {run.folder.relative(path): evidence.render((*there, *found))}


def _broken(rule: str, message: str, file: str, fix: str, line: int = 0) -> BrokenRule:
    return BrokenRule(rule=rule, message=message, file=file, line=line or None, fix=fix)
