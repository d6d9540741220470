"""The steps of a run. Each writes its files and then its event.

A step that was interrupted is repeated: it writes the same files, does not repeat an evaluation that has a receipt, and
makes no commit twice.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from evaluator.receipt.plan import SeedSchedule, utc_now
from evaluator.receipt.receipt import Receipt, parse, render
from evaluator.receipt.verdict import Verdict
from evaluator.request import Request
from kbs.common import canonical_json as canonical
from kbs.common.errors import NoGpuError, UsageError
from kbs.common.files import keep_only, read_if_there
from loop.journal import events, seeds
from loop.journal.events import Files
from loop.journal.folder import MAIN
from loop.journal.state import Phase
from loop.journal.version_state import REFUSALS, Attempt, VersionState
from loop.pages.artifacts import VersionFiles
from loop.planning import decisions, frontier
from loop.planning.outcomes import MethodOutcome, not_accepted
from loop.proposals import evidence
from loop.run import ending, memory
from loop.run.ablation import ablate
from loop.run.evaluation import measured
from loop.run.messages import commit_message
from loop.run.open_run import Kernel, Run, missing
from loop.run.submission import refuse_attempt


def prepare(run: Run) -> None:
    """Do step 0: environment, specs and targets."""
    run.happened(events.Prepared(files=run.put(run.parts.step0())))


def open_next(run: Run) -> None:
    """Stop the run, or open the next version; record a stall first."""
    state = run.state
    if state.current is not None:
        group = decisions.stalled(state, run.record)
        if group:
            tried = tuple(dict.fromkeys(method for version in group for method in version.methods))
            masked = decisions.to_mask(state) if run.record.partial_restart else ()
            untried = run.parts.untried(state)
            run.happened(events.Stalled(version=group[-1].number, tried=tried, untried=untried, masked=masked))
        best = run.receipt(state.best) if state.best is not None else None
        found = decisions.stop(state, run.record, utc_now(), best, run.targets())
        if found is not None:
            run.happened(events.Stopped(reason=found.reason, evidence=found.evidence))
            return
    number, parent = len(state.versions), state.best
    run.put({run.folder.relative(run.folder.current): f"{number}\n".encode()})
    searches: Files = {}
    if parent is not None:
        found_lines = evidence.render(run.parts.look_up(state, parent))
        searches = run.put(run.below(run.folder.version(number), {evidence.NAME: found_lines}))
    run.happened(events.Opened(version=number, parent=parent, searches=searches))


def signal(run: Run) -> None:
    """Measure the next candidate quickly and alone, to rank it; where there are several devices, all are begun."""
    attempt = _attempt(run)
    pending = attempt.pending("signal")
    if len(pending) > 1:
        run.tools.ahead([_asked(run, attempt, "signal", name)[1:] for name in pending])
    _measure(run, attempt, "signal", pending[0])


def evaluate(run: Run) -> None:
    """Compare the next of the best candidates with the parent; after the last one, choose the champion."""
    attempt = _attempt(run)
    pending = attempt.pending("verdict")
    if pending:
        _measure(run, attempt, "verdict", pending[0])
        return
    found = _champion(run, attempt)
    number, folder = run.version.number, run.folder.attempt(run.version.number, attempt.number)
    data = read_if_there(_place(run, attempt, found.what, found.name) / "receipt.json")
    if data is None:
        raise missing(_place(run, attempt, found.what, found.name) / "receipt.json")
    receipt = parse(data)
    files = {"receipt.json": data, **run.parts.of_attempt(receipt)}
    files |= {run.version_kernel(0).name: run.version_kernel(0).data} if number == 0 else {}
    listed = frontier.document(number, attempt, found.name)
    made = run.put(run.below(folder, files) | run.below(run.folder.branches(number, attempt.number), listed))
    run.happened(
        events.Evaluated(
            version=number,
            attempt=attempt.number,
            receipt=receipt.id,
            verdict=receipt.verdict,
            improvement=receipt.improvement,
            reason=receipt.reason,
            ratio=decisions.ratio_of(receipt),
            median_us=decisions.median_of(receipt),
            branch=found.name,
            files=made,
        )
    )


def _attempt(run: Run) -> Attempt:
    """The attempt that is measured: the last one, or the first of version 0."""
    return run.version.attempts[-1] if run.version.attempts else Attempt(1, None)


def _champion(run: Run, attempt: Attempt) -> events.Measured:
    """The best candidate by its verdict; where none is accepted, the first one that there is a receipt of."""
    judged = [found for name in attempt.finalists if (found := attempt.found("verdict", name)) is not None]
    accepted = [one for one in judged if one.verdict is Verdict.ACCEPTED]
    if not accepted:
        return next(one for one in (*judged, *attempt.signals) if one.receipt is not None)
    standings = []
    for place, one in enumerate(accepted):
        receipt = parse(read_if_there(_place(run, attempt, "verdict", one.name) / "receipt.json") or b"")
        times, size = decisions.summary_of(receipt), len(_candidate(run, attempt, one.name).data)
        p80, std = (times.p80_us, times.std_us) if times else (None, None)
        standings.append(decisions.Standing(place, one.ratio, p80, std, size))
    return accepted[decisions.champion(standings)]


def _candidate(run: Run, attempt: Attempt, name: str) -> Kernel:
    """The kernel of a candidate."""
    number = run.version.number
    return run.version_kernel(0) if number == 0 else run.kernel(run.folder.candidate(number, attempt.number, name))


def _place(run: Run, attempt: Attempt, what: str, name: str) -> Path:
    """Where the receipt of a candidate's measurement is kept."""
    return run.folder.branch(run.version.number, attempt.number, name) / what


def _measure(run: Run, attempt: Attempt, what: Literal["signal", "verdict"], name: str) -> None:
    """Measure a candidate, and keep a copy of its kernel. If the evaluator can take none of them, take the attempt
    back: nothing ran."""
    version, folder = run.version, _place(run, attempt, what, name)
    kernel, request, schedule = _asked(run, attempt, what, name)
    suffix = "" if name == MAIN else f"-{name}"
    copy = run.folder.trajectory / f"v{version.number}-a{attempt.number}{suffix}.{kernel.name.rpartition('.')[2]}"
    kept = {run.folder.relative(copy): kernel.data}
    try:
        receipt, made = measured(run, run.folder.relative(folder), kernel, request, schedule)
    except (UsageError, NoGpuError) as error:
        others = any(one.what == what and one.receipt is not None for one in attempt.measured)
        if version.number == 0:
            raise
        if not others and attempt.pending(what) == (name,):
            refuse_attempt(run, error)
        else:
            run.happened(_not_taken(version.number, attempt.number, what, name, error.message))
        return
    run.happened(_found(version.number, attempt.number, what, name, receipt, made | run.put(kept)))


def _asked(run: Run, attempt: Attempt, what: str, name: str) -> tuple[Kernel, Request, SeedSchedule]:
    """The kernel of a candidate, how it is measured, and the seeds."""
    version, kernel = run.version, _candidate(run, attempt, name)
    parent = None if version.parent is None or what == "signal" else run.version_kernel(version.parent).text
    request = run.tools.request(kernel.text, kernel.name, parent).model_copy(update={"plan": what})
    schedule = seeds.schedule(run.master, version.number, attempt.number, _purpose(what, name, version.taken_back))
    return kernel, request, schedule


def _purpose(what: str, name: str, taken_back: int) -> str:
    """What a schedule of seeds is for: another one for each candidate, and after an attempt was taken back."""
    said = what if what == "verdict" and name == MAIN else f"{what} {name}"
    return f"{said} again {taken_back}" if taken_back else said


def _found(
    version: int, attempt: int, what: Literal["signal", "verdict"], name: str, receipt: Receipt,
    files: Files,
) -> events.Measured:  # fmt: skip
    return events.Measured(
        version=version,
        attempt=attempt,
        what=what,
        name=name,
        receipt=receipt.id,
        verdict=receipt.verdict,
        improvement=receipt.improvement,
        reason=receipt.reason,
        ratio=decisions.ratio_of(receipt),
        median_us=decisions.median_of(receipt),
        seconds=receipt.seconds,
        files=files,
    )


def _not_taken(version: int, attempt: int, what: Literal["signal", "verdict"], name: str, why: str) -> events.Measured:
    return events.Measured(
        version=version,
        attempt=attempt,
        what=what,
        name=name,
        receipt=None,
        verdict=None,
        improvement=None,
        reason=why,
        ratio=None,
        median_us=None,
        seconds=0.0,
        files={},
    )


def profile(run: Run) -> None:
    """Copy the accepted attempt into the version's folder, profile and diagnose it."""
    version = run.version
    attempt, folder = version.attempts[-1].number, run.folder.version(version.number)
    tried, done = run.folder.attempt(version.number, attempt), version.result
    assert done is not None  # the phase comes after an accepted attempt
    kernel = _candidate(run, version.attempts[-1], done.branch)
    files = {kernel.name: kernel.data}
    for name in ("receipt.json", *([] if version.number == 0 else ["proposal.json"])):
        data = read_if_there(tried / name)
        if data is None:
            raise missing(tried / name)
        files[name] = data
    receipt = parse(files["receipt.json"])
    parent = None if version.parent is None else run.version_kernel(version.parent).text
    taken = run.tools.profile(run.tools.request(kernel.text, kernel.name, parent))
    external = run.tools.benchmark(kernel.text, kernel.name)
    note = run.tools.diagnose(taken.csv, receipt, kernel.name)
    machine = run.tools.machine_code(kernel.text, kernel.name, version.methods)
    files["diagnosis.json"] = canonical.dumps(note.model_dump(mode="json"))
    files["machine.json"] = canonical.dumps(machine.model_dump(mode="json"))
    if taken.csv:
        files["profile.csv"] = taken.csv.encode("utf-8")
    made = run.put(run.below(folder, files))
    if external is not None:
        made |= run.put({run.folder.relative(run.folder.external(version.number)): render(external)})
    if taken.report is not None:
        made |= run.put({f"profiles/v{version.number}.ncu-rep": taken.report})
    run.happened(
        events.Profiled(
            version=version.number, grade=taken.grade, bottleneck=note.bottleneck, why=taken.why, files=made
        )
    )  # fmt: skip


def gate(run: Run) -> None:
    """Render the version's files, and let the gate check the whole version."""
    number = run.version.number
    run.put(run.below(run.folder.version(number), run.parts.of_version(number)))
    report = run.parts.gate(run.state, number, "version")
    run.happened(
        events.Gated(
            version=number, passed=report.passed, rules=report.rules, lapsed=report.lapsed, checked=report.checked
        )
    )


def close(run: Run) -> None:
    """Close the version, and decide whether it is kept."""
    version = run.version
    outcome: Literal["passed", "failed"]
    if version.gated is not None and version.gated.passed:
        outcome, decided = "passed", decisions.decide(run.state, run.record, version)
    else:
        outcome, decided = "failed", decisions.Decision(False, _why_failed(run, version))
    closing = events.Closed(version=version.number, outcome=outcome, kept=decided.kept, why=decided.why, files={})
    left = memory.remember(run.record.id, run.state, version, run.proposal(version), closing, _outcomes(run, version))
    files = run.put(run.below(run.folder.version(version.number), {memory.NAME: left.document()}))
    if closing.kept:
        kernel = run.version_kernel(version.number)
        files |= run.put(run.below(run.folder.best, {kernel.name: kernel.data}))
        keep_only(run.folder.best, [kernel.name])
    run.happened(closing.model_copy(update={"files": files}))


def _outcomes(run: Run, version: VersionState) -> tuple[MethodOutcome, ...]:
    """What came of the methods of the version's last attempt. What the gate rejects says nothing of a method."""
    last = version.last_result
    if last is None or (version.gated is not None and not version.gated.passed):
        return ()
    if version.accepted is None:
        return tuple(not_accepted(method, last.verdict, last.reason) for method in version.methods)
    return VersionFiles(run.folder, run.record, version.number).outcomes


def _why_failed(run: Run, version: VersionState) -> str:
    if version.gated is not None:
        return f"the gate: {', '.join(version.gated.rules)} (`kopt run gate v{version.number}` says where)"
    tried = [found.evaluated for found in version.attempts if found.evaluated is not None]
    if version.number == 0:
        what = run.record.first.words if run.record.first else "the user's kernel"
        return f"version 0, {what}, is {tried[0].verdict}: {tried[0].reason}"
    said = "; ".join(f"a{found.attempt} {found.verdict}: {found.reason}" for found in tried)
    if len(tried) >= run.record.attempts:
        return f"{len(tried)} attempts, none accepted: {said}"
    if version.refused_in_row >= REFUSALS and run.record.proposer != "agent":
        rules = dict.fromkeys(rule for one in version.refused[-REFUSALS:] for rule in one.rules)
        return "; ".join(filter(None, (f"{REFUSALS} answers in a row were refused: {', '.join(rules)}", said)))
    return "; ".join(filter(None, ("the run was stopped before a proposal was accepted", said)))


def record(run: Run) -> None:
    """Record the version in the experience log."""
    run.happened(run.parts.log_version(run.version.number))


def commit(run: Run) -> None:
    """Render the run's pages again, and commit everything."""
    version = run.version
    run.put(run.parts.of_run(run.state))
    assert version.closed is not None
    if version.number == 0:
        subject = f"[baseline] {run.record.kernel.origin}"
    else:
        proposal = run.proposal(version)
        change = proposal.hypothesis.single_change if proposal else "no proposal"
        failed = "failed: " if version.closed.outcome == "failed" else ""
        subject = f"[iter {version.number}] {failed}{change}"
    made = run.repository.commit(version.commit_name, commit_message(subject, version.closed.why), again=run.again)
    run.again = False
    run.happened(events.Committed(what=version.commit_name, commit=made))


STEPS: dict[Phase, Callable[[Run], None]] = {
    Phase.PREPARE: prepare,
    Phase.OPEN: open_next,
    Phase.SIGNAL: signal,
    Phase.EVALUATE: evaluate,
    Phase.ABLATE: ablate,
    Phase.PROFILE: profile,
    Phase.GATE: gate,
    Phase.CLOSE: close,
    Phase.RECORD: record,
    Phase.COMMIT: commit,
    Phase.RESTORE: ending.restore,
    Phase.REPORT: ending.report,
}
"""The step of each phase; the other phases wait for a proposal or have ended."""
