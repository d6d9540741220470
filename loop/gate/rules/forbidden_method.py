"""HINTS.md forbids methods."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("forbidden-method", "No method is used that HINTS.md forbids.", "proposal")
def forbidden_method(context: GateContext) -> Iterator[Broken]:
    """The user's word on methods binds: a directive `forbid: ID` in HINTS.md, as it was read last. Choose another
    method, or have the user change HINTS.md."""
    forbidden = {one.value: one for one in context.hints.directives if one.kind == "forbid"}
    for name in context.proposal.methods if context.proposal is not None else ():
        if name in forbidden:
            message = f"{name} is forbidden by HINTS.md ({forbidden[name].canonical})"
            mend = "Choose another method; `kopt run status` shows the directives."
            yield Broken(file=f"{context.proposal_file}#methods", line=0, message=message, mend=mend)
