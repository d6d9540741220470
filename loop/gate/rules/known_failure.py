"""A method that failed before needs new circumstances."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.journal.state import VersionState


@rule("known-failure", "A method that did not help before, here or in the log, says what is different now.", "proposal")
def known_failure(context: GateContext) -> Iterator[Broken]:
    """A method of an earlier version that was closed as failed or was not kept, and one that the experience log shows
    as a known failure in similar circumstances, may be tried where something has changed. Say under `circumstances`
    what: another parent, another size, another cause that was found since."""
    proposal = context.proposal
    if proposal is None or len(proposal.circumstances.split()) >= 3:
        return
    found = (hit for search in context.searches for hit in search.hits)
    hits = [hit for hit in found if hit.past is not None and hit.past.advice == "known failure"]
    for name in proposal.methods:
        before = [state for state in context.state.versions[: context.version] if _failed(state, name)]
        if before:
            where = ", ".join(f"v{state.number}" for state in before)
            why = before[-1].closed.why if before[-1].closed else ""
            yield _without(context, f"{name} did not help in {where} ({why[:200]})")
        elif logged := [hit for hit in hits if hit.past and hit.past.method == name]:
            yield _without(context, f"{name} failed on similar kernels: {logged[0].reference} ({logged[0].title})")


def _without(context: GateContext, message: str) -> Broken:
    mend = "Write under `circumstances` what is different now, or choose another method."
    return Broken(file=f"{context.proposal_file}#circumstances", line=0, message=message, mend=mend)


def _failed(state: VersionState, method: str) -> bool:
    return method in state.methods and state.closed is not None and not state.closed.kept
