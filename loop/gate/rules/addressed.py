"""The proposal is for this version."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("addressed", "The proposal is for this version, and its parent is a version that passed.", "proposal")
def addressed(context: GateContext) -> Iterator[Broken]:
    """A proposal answers a request: it names the version that was opened, and a parent that passed the gate. Take both
    numbers from `kopt run next`."""
    proposal, file = context.proposal, context.proposal_file
    if proposal is None:
        return
    if proposal.version != context.version:
        message = f"it is for version {proposal.version}, and version {context.version} is open"
        yield Broken(file=file, line=0, message=message, mend=f"Hand in a proposal with `version: {context.version}`.")
    passed = [state.number for state in context.state.versions[: context.version] if state.passed]
    if proposal.parent not in passed:
        message = f"its parent is version {proposal.parent}, which did not pass"
        mend = f"Begin from one of these: {', '.join(f'v{number}' for number in passed) or 'none has passed yet'}."
        yield Broken(file=file, line=0, message=message, mend=mend)
