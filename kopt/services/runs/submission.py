"""What an agent's turn in a run is: what is wanted, a proposal handed in, and how the run stands after it."""

from __future__ import annotations

from typing import Literal

from kbs.common.errors import ExitCode, UsageError
from kopt.services.engine import Engine
from kopt.services.results.runs import BrokenData, RunData, RunNextData, RunSubmitData, unanswered, waiting_for
from kopt.services.runs.service import Driving, brief_of
from loop.journal.state import Phase
from loop.proposals.few_words import Words
from loop.proposals.proposal import Proposal
from loop.proposers.reading import Unread, read_proposal
from loop.run.driver import View
from loop.run.submission import Submission


def wanted(engine: Engine, view: View) -> RunNextData:
    """What the next version is written from; without a request where no proposal is wanted, and why."""
    phase = view.state.phase(view.record)
    awaited = phase is Phase.PROPOSE
    go_on = waiting_for(view.record, phase, view.folder)
    if phase is Phase.BASELINE_FAILED:
        go_on = "the kernel itself was not accepted: mend it, and begin another run"
    why = f"no proposal is wanted: the run is at `{phase.value}`" + (f"; {go_on}" if go_on else "")
    return RunNextData(
        run=view.record.id,
        folder=str(view.folder.root),
        phase=phase,
        why="" if awaited else why,
        request=brief_of(engine, view) if awaited else None,
    )


def hand_in(
    at: Driving, document: bytes, typed: tuple[Words, int | None] | None = None, *, show: bool = False
) -> tuple[RunSubmitData, list[str]]:
    """(what came of a proposal, what the user should know of). It is a JSON document, or `typed`: a few words and the
    parent. `show`: it is only checked.

    Raises `KoptError`: `not_awaited`, `schema` of a document that `show` cannot read, and what the steps raise.
    """
    at.driver.check_awaited()
    made = None if typed is None else at.propose(*typed)
    outcome = made or read_proposal(document)
    number = len(at.driver.state.versions) - 1
    if show:
        if isinstance(outcome, Unread):
            raise UsageError(f"it is no proposal: {'; '.join(outcome.reasons)}", code="schema", hint=outcome.fix)
        taken = at.driver.check(outcome)
        # What is worth a second look before it is handed in is no news once it ran.
        second = taken.report.notes if taken.report is not None else ()
        return _submitted(at, number, taken, outcome, shown=True), [*at.notes, *second]
    taken = at.driver.submit(outcome, document)
    if taken.accepted:
        at.driver.advance(at.steps)
    return _submitted(at, number, taken, made), at.notes


def _submitted(
    at: Driving, number: int, taken: Submission, made: Proposal | None, *, shown: bool = False
) -> RunSubmitData:
    """What came of a proposal for a version; `shown`: it was only checked."""
    version = at.driver.state.versions[number]
    closed = version.closed
    outcome: Literal["shown", "refused", "attempt_failed", "passed", "failed"]
    kept, broken = False, list[BrokenData]()
    if not taken.accepted:
        outcome, why = "refused", "the gate refuses it; nothing ran, and it is no attempt"
        broken = [BrokenData.from_domain(one) for one in taken.broken]
    elif shown:
        outcome, why = "shown", "the gate lets it run; nothing was submitted"
    elif closed is None:
        done = version.attempts[-1].evaluated
        outcome, why = "attempt_failed", "it is not evaluated yet: `kopt run resume`"
        if done:
            why = f"{done.verdict.value}: {done.reason}"
    else:
        outcome, why, kept = closed.outcome, closed.why, closed.kept
        more = f"`kopt run gate v{number} --explain` says more."
        broken = [
            BrokenData(rule=rule, file=f"v{number}", line=0, message="", mend=more)
            for rule in (version.gated.rules if version.gated else ())
        ]
    run = RunData.of(at.driver.folder, at.driver.record, at.driver.state)
    return RunSubmitData(version=number, outcome=outcome, kept=kept, why=why, broken=broken, proposal=made, run=run)


def standing(at: Driving, *, idle: bool = False) -> tuple[RunData, ExitCode, list[dict[str, str]]]:
    """(how the run stands, the exit code of that, errors) after something was done; `idle`: nothing was."""
    data = RunData.of(at.driver.folder, at.driver.record, at.driver.state)
    rejected = at.driver.rejected
    silent = "" if idle else unanswered(at.driver.record, at.driver.state)
    broken = [] if rejected is None else BrokenData.of(rejected)
    code = ExitCode.ABSTAINED if idle else ExitCode.OK
    if silent:
        code = ExitCode.FAILURE
    if data.phase is Phase.BASELINE_FAILED or broken:
        code = ExitCode.REJECTED
    errors = [{"code": b.rule, "message": f"{b.file}:{b.line}: {b.message}", "hint": b.mend} for b in broken]
    if silent:
        hint = "v1/refused/ of the run's folder has what it wrote each time; correct it, and start a new run."
        errors.append({"code": "no_proposal", "message": silent, "hint": hint})
    return data, code, errors
