"""The kernel is the proposed one."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("proposal-recorded", "Kernel and proposal are those that were handed in for the accepted attempt.", "version")
def proposal_recorded(context: GateContext) -> Iterator[Broken]:
    """What is kept is what was proposed: kernel file and proposal.json are equal to those of the attempt, and the
    kernel is the proposal's text. Restore the file from the attempt's folder."""
    state, proposal = context.opened, context.proposal
    if state is None or not state.attempts or context.version == 0:
        return
    attempt = f"v{context.version}/attempts/a{state.attempts[-1].number}"
    name = context.kernel_name(context.version)
    for file in ("proposal.json", *([name] if name else [])):
        path = context.in_version(file)
        if context.hash(path) is not None and context.hash(path) != context.hash(f"{attempt}/{file}"):
            message = f"it is not {attempt}/{file}"
            yield Broken(file=path, line=0, message=message, mend=f"Restore it from {attempt}/{file}.")
    if proposal is not None and name is not None and context.text(context.in_version(name)) != proposal.kernel:
        message = "it is not the kernel that the proposal holds"
        yield Broken(file=context.in_version(name), line=0, message=message, mend="Restore both from git.")
