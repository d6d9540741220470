"""Gathers the request to a proposer from a run's folder and state. Writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evaluator.external.record import parse_external
from evaluator.profiling.profile import read_profile
from evaluator.receipt.receipt import parse
from kbs.common.errors import KoptError, UsageError
from kbs.evidence.vocabulary import Vocabulary
from kbs.hardware.profile_metrics import profile_metrics
from loop.journal.folder import KERNELS, RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import Phase, RunState
from loop.journal.version_state import REFUSALS, Attempt, VersionState
from loop.planning.budget import Budget, budget_of
from loop.planning.hints import is_preference
from loop.planning.methods import Method, Methods
from loop.planning.step0 import ROOFLINE
from loop.proposals import evidence, request
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote, FoundPassage, Search, Targets

_M = TypeVar("_M", bound=BaseModel)
_BROKEN = TypeAdapter(list[request.BrokenRule])
_LANGUAGES = {name: language for language, name in KERNELS.items()}
"""kernel.py, kernel.cu → what a proposal calls its language."""
FIGURES = 40
"""Of the user's own benchmark, those that a request has."""
LAST = 99
"""The rank of methods whose page gives no priority."""
_CHANGE = {
    "single": "Change one thing: one method of the registry for each version; `rewrite` is a change of language.",
    "budget": "Change as many things as `budget` allows: methods of the registry, at most so many of each axis. With"
    " several, `ablations` has the whole kernel without each of them, and there are no `branches`.",
}
_RULES = (
    "The machine code must show the declared method, where its page has a signature for this GPU: the kernel is"
    " compiled before anything runs, and a method that is absent is refused.",
    "Hand in the whole file. What it computes, its entry and its arguments stay as they are.",
    "`searches` begins with what the experience log knows of such kernels: the method that did best first, then known"
    " failures. It is what happened elsewhere, and no proof that it happens here.",
    "Select at least one piece of evidence from `searches`, `facts` or `measured`, by the reference given there; a"
    " quote must stand word for word in the cited lines.",
    "Every number with a unit that you write outside `hypothesis.expected` must stand in the cited lines, in the"
    " parent's profile or in a receipt, or be computed in the sentence: `a op b = c`.",
    "A hardware figure stands in a citation line, `<gpu> <metric>: <value> <unit> <- <wiki>/<path>:L<line>`, in"
    " comments of the kernel too; write no figure where you have no source, and no constant of the hardware's into the"
    " kernel (`NUM_SMS = 132`): ask the device.",
    "Name under `skipped`, with the reason, each method that applies, was not tried, and comes before yours on the same"
    " axis: `priority` 1 before 2.",
    "Say what the change should do to which metric, and on which figures it will be kept.",
    "A method that failed here before, or that `searches` show as a known failure, needs `circumstances`: what is"
    " different now.",
    "Directives of HINTS.md bind; `preferred` ones are wishes: their methods come first in `methods`.",
)


def brief(
    folder: RunFolder, record: RunRecord, state: RunState, methods: Methods, terms: Vocabulary, now: str
) -> request.NextRequest:
    """The request to a proposer. `now` is the time in UTC, as in events.

    Raises UsageError `not_awaited` if the run waits for no proposal, KoptError `run_damaged` if a file of the parent is
    missing.
    """
    version = state.current
    if version is None or state.phase(record) is not Phase.PROPOSE:
        raise UsageError(
            f"the run {record.id} is not waiting for a proposal",
            code="not_awaited",
            hint="`kopt run status` shows what comes next.",
        )
    parent = version.opened.parent or 0
    searches = evidence.read(folder.version(version.number) / evidence.NAME)
    language = _LANGUAGES[_kernel_name(folder, parent)]
    return request.NextRequest(
        run=record.id,
        folder=str(folder.root),
        version=version.number,
        attempt=len(version.attempts) + 1,
        parent=_kernel(folder, parent),
        best=state.best or 0,
        target=record.target,
        profile=record.profile,
        problem=_problem(folder, record),
        measured=_measured(folder, state.versions[parent]),
        diagnosis=_model(folder.version(parent) / "diagnosis.json", DiagnosisNote),
        facts=tuple(_facts(folder.version(parent) / "profile.csv")),
        external=tuple(_printed(folder.external(parent))),
        targets=_model(folder.root / ROOFLINE, Targets),
        searches=searches,
        directives=request.DirectivesNote(
            enforced=tuple(line for line in state.directives if not is_preference(line)),
            preferred=tuple(sorted(_preferred(state))),
            passed_on=state.hints.passed_on if state.hints else (),
        ),
        methods=_offers(record, state, methods, terms, language, _past_methods(searches)),
        history=tuple(_past(folder, v) for v in state.versions[: version.number] if not v.masked),
        attempts=tuple(_attempt(folder, version.number, attempt) for attempt in version.attempts),
        refused=tuple(_refused(folder, version)),
        left=_left(record, state, version, now),
        discipline=record.discipline,
        budget=_budget(folder, state.versions[parent]) if record.discipline == "budget" else None,
        branches=record.branches or 1,
        research_wanted=tuple(_research(state, version)),
        rules=(_CHANGE[record.discipline], *_RULES, *_rules_of(record)),
    )


def _rules_of(record: RunRecord) -> Iterator[str]:
    """What this run asks of a proposal, besides the rules of all runs."""
    others = (record.branches or 1) - 1
    if others and record.discipline == "single":
        yield (
            f"Up to {others} further candidates may stand under `branches`: the same method with other tiles, stages,"
            " warps or variants. All are ranked by a quick measurement, and the best becomes the version."
        )


def _kernel_name(folder: RunFolder, version: int) -> str:
    for name in KERNELS.values():
        if (folder.version(version) / name).is_file():
            return name
    raise _damaged(folder, f"v{version}/kernel.py")


def _kernel(folder: RunFolder, version: int) -> request.ParentKernel:
    name = _kernel_name(folder, version)
    data = _bytes(folder, folder.version(version) / name)
    return request.ParentKernel(
        version=version,
        path=f"v{version}/{name}",
        language="cuda" if name == KERNELS["cuda"] else "python",
        hash=hashlib.sha256(data).hexdigest(),
        text=data.decode("utf-8", "replace"),
    )


def _problem(folder: RunFolder, record: RunRecord) -> request.ProblemNote:
    asked = record.problem
    return request.ProblemNote(
        reference=record.reference.name,
        reference_text=_bytes(folder, folder.root / record.reference.name).decode("utf-8", "replace"),
        inputs=record.inputs.name if record.inputs else "",
        dims=asked.dims,
        workloads=asked.workloads,
        vary=asked.vary,
        allow_library=asked.allow_library,
        device=record.device,
        gpu=record.gpu,
    )


def _measured(folder: RunFolder, parent: VersionState) -> request.ParentMeasured | None:
    done = parent.result
    if done is None:
        return None
    try:
        receipt = parse(_bytes(folder, folder.version(parent.number) / "receipt.json"))
    except UsageError as error:
        raise _damaged(folder, f"v{parent.number}/receipt.json") from error
    return request.ParentMeasured(
        receipt=receipt.id,
        verdict=receipt.verdict.value,
        improvement=receipt.improvement.value,
        median_us=done.median_us,
        to_parent=done.ratio,
    )


def _budget(folder: RunFolder, parent: VersionState) -> Budget:
    """Where the parent's time goes."""
    moved = None
    try:
        data = (folder.version(parent.number) / "profile.csv").read_bytes()
        counted = read_profile(data, "profile.csv").choose().launch.dram_bytes
        moved = None if counted is None else int(counted)
    except (OSError, KoptError):  # there is none, or it cannot be used: the diagnosis says so
        pass
    done = parent.result
    return budget_of(parent.number, done.median_us if done else None, _model(folder.root / ROOFLINE, Targets), moved)


def _facts(csv: Path) -> Iterator[request.Fact]:
    """The values in the parent's profile that may be quoted."""
    try:
        data = csv.read_bytes()
        launch = read_profile(data, csv.name).choose().launch
    except (OSError, KoptError):  # there is none, or it cannot be used: the diagnosis says so
        return
    digest = hashlib.sha256(data).hexdigest()[:16]
    for id in profile_metrics().all:
        counter = launch.metric(id)
        if counter is not None:
            yield request.Fact(metric=id, value=counter.shown, reference=f"profile/{digest}#{id}")


def _printed(record: Path) -> Iterator[request.Fact]:
    """The figures of the user's own benchmark."""
    try:
        found = parse_external(record.read_bytes())
    except (OSError, KoptError):  # there is none, or the gate says what is wrong with it
        return
    for number, figure in enumerate(found.figures[:FIGURES]):
        value = f"{figure.value:g} {figure.unit}".strip()
        yield request.Fact(metric=figure.name, value=value, reference=f"receipt/{found.id}#figures[{number}].value")


def _past_methods(searches: tuple[Search, ...]) -> dict[str, FoundPassage]:
    """Method → its first hit in the experience log; the most successful method comes first."""
    found: dict[str, FoundPassage] = {}
    for search in searches:
        for hit in search.hits:
            if hit.past is not None:
                found.setdefault(hit.past.method, hit)
    return found


def _offers(
    record: RunRecord,
    state: RunState,
    methods: Methods,
    terms: Vocabulary,
    language: str,
    known: dict[str, FoundPassage],
) -> tuple[request.MethodOffer, ...]:
    product = terms.products.get(record.gpu)
    architecture = product.architecture if product else ""
    forbidden = {line.partition(":")[2].strip() for line in state.directives if line.startswith("forbid:")}
    preferred = _preferred(state)
    spoken = record.problem.backend or ("cuda" if language == "cuda" else "triton")

    def offer(method: Method) -> request.MethodOffer:
        against = ""
        if method.id in forbidden:
            against = "HINTS.md forbids it"
        elif not method.runs_on(architecture):
            against = f"needs {', '.join(method.architectures)}; this GPU is {architecture}"
        elif method.languages and spoken not in method.languages:
            against = f"is written in {', '.join(method.languages)}; the kernel is in {spoken}"
        past = known.get(method.id)
        speaks = "HINTS.md prefers it" if method.id in preferred else request.NOTHING_KNOWN
        if past is not None:
            speaks = f"{past.title} ({past.reference})"
        return request.MethodOffer(
            id=method.id,
            title=method.title,
            axis=method.axis or "",
            page=method.page,
            applies=not against,
            why=against or speaks,
            priority=method.priority,
            tried=tuple(v.number for v in state.versions if not v.masked and method.id in v.methods),
        )

    helped = [id for id, hit in known.items() if hit.past and hit.past.advice == "recommended"]
    rank = {id: place for place, id in enumerate(helped)}

    def place(one: request.MethodOffer) -> tuple[bool, bool, int, int, str]:
        return not one.applies, one.id not in preferred, rank.get(one.id, len(rank)), one.priority or LAST, one.id

    return tuple(sorted((offer(method) for method in methods.offered), key=place))


def _preferred(state: RunState) -> set[str]:
    return {line.partition(":")[2].strip() for line in state.directives if is_preference(line)}


def _past(folder: RunFolder, version: VersionState) -> request.PastVersion:
    proposal = None
    if version.attempts:
        proposal = _model(folder.attempt(version.number, version.attempts[-1].number) / "proposal.json", Proposal)
    done = version.last_result
    return request.PastVersion(
        version=version.number,
        parent=version.parent,
        methods=version.methods,
        single_change=proposal.hypothesis.single_change if proposal else "",
        expected=tuple(f"{e.metric} {e.direction}: {e.size}" for e in proposal.hypothesis.expected) if proposal else (),
        outcome=version.closed.outcome if version.closed else "open",
        kept=version.kept,
        why=version.closed.why if version.closed else "",
        bottleneck=version.profiled.bottleneck if version.profiled else "",
        median_us=done.median_us if done else None,
        ratio=done.ratio if done else None,
        attempts=tuple(_attempt(folder, version.number, attempt) for attempt in version.attempts),
    )


def _attempt(folder: RunFolder, version: int, attempt: Attempt) -> request.PastAttempt:
    proposal = _model(folder.attempt(version, attempt.number) / "proposal.json", Proposal)
    done = attempt.evaluated
    return request.PastAttempt(
        attempt=attempt.number,
        methods=attempt.submitted.methods if attempt.submitted else (),
        single_change=proposal.hypothesis.single_change if proposal else "",
        verdict=done.verdict.value if done else "",
        reason=done.reason if done else "",
    )


def _refused(folder: RunFolder, version: VersionState) -> Iterator[request.RefusedSubmission]:
    for refused in version.refused:
        place = folder.submission(version.number, refused.submission)
        proposal = _model(place / "proposal.json", Proposal)
        yield request.RefusedSubmission(
            submission=refused.submission,
            single_change=proposal.hypothesis.single_change if proposal else "",
            broken=_reasons(place / "reasons.json"),
        )


def _reasons(path: Path) -> tuple[request.BrokenRule, ...]:
    try:
        return tuple(_BROKEN.validate_json(path.read_bytes()))
    except (OSError, ValidationError):
        return ()


def _left(record: RunRecord, state: RunState, version: VersionState, now: str) -> request.Left:
    seconds = None
    if record.seconds is not None:
        passed = (datetime.fromisoformat(now) - datetime.fromisoformat(state.clock_from)).total_seconds()
        seconds = max(0.0, record.seconds - passed)
    return request.Left(
        iterations=state.cap(record) - state.iterations,
        attempts=record.attempts - len(version.attempts),
        refusals=REFUSALS - version.refused_in_row if record.proposer != "agent" else None,
        seconds=seconds,
    )


def _research(state: RunState, version: VersionState) -> Iterator[str]:
    """What to look into, if the run stalled just before this version."""
    stall = state.stalls[-1] if state.stalls else None
    if stall is None or stall.version != version.number - 1:
        return
    yield "the last iterations brought little: what does the parent's profile show that was not acted on?"
    yield f"methods that were tried: {', '.join(stall.tried) or 'none'}"
    yield f"methods that apply and were not tried: {', '.join(stall.untried) or 'none'}"
    yield "ask the knowledge base anew (`kopt ask`, `kopt search`), on an axis that was not tried, and select from that"


def _model(path: Path, kind: type[_M]) -> _M | None:
    """A document of the run; None if it is missing or cannot be read, which the gate reports."""
    try:
        return kind.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _bytes(folder: RunFolder, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(folder, folder.relative(path)) from error


def _damaged(folder: RunFolder, path: str) -> KoptError:
    return KoptError(
        f"{path} is missing in {folder.root}, or cannot be read",
        code="run_damaged",
        hint=f"Git has it: `git -C {folder.root} checkout -- {path}`.",
    )
