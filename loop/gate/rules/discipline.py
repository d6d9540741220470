"""The change is what the run's discipline allows."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.planning.methods import REWRITE


@rule("discipline", "A version makes exactly one change, and a change of language is the method `rewrite`.", "proposal")
def discipline(context: GateContext) -> Iterator[Broken]:
    """Of two changes at once nobody knows which one helped. Under `single` a version declares one method; keep the
    other for the next version. A kernel that goes to another language declares `rewrite`, and nothing else does."""
    proposal = context.proposal
    if proposal is None:
        return
    file = f"{context.proposal_file}#methods"
    if context.record.discipline == "single" and len(proposal.methods) != 1:
        message = f"{len(proposal.methods)} methods are declared under `single`: {', '.join(proposal.methods)}"
        yield Broken(file=file, line=0, message=message, mend="Keep one of them, and undo what belongs to the others.")
    before = context.kernel_name(proposal.parent)
    moved = before is not None and before.endswith(".cu") != (proposal.language == "cuda")
    if moved and REWRITE not in proposal.methods:
        message = f"the language changes from {before} to {proposal.language}, which is the method `rewrite`"
        yield Broken(
            file=file, line=0, message=message, mend="Declare `rewrite`, and change nothing else in this version."
        )
    if not moved and REWRITE in proposal.methods:
        message = "`rewrite` is declared, and the language stays the same"
        yield Broken(file=file, line=0, message=message, mend="Declare the method that the change really is.")
