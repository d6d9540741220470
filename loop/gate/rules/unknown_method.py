"""Declared methods are those of the registry."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.planning.methods import REWRITE


@rule("unknown-method", "Every declared method has a page in a wiki of the run.", "proposal")
def unknown_method(context: GateContext) -> Iterator[Broken]:
    """Methods are compared between versions and runs, so they have one name each: the ids of the method pages, and
    `rewrite` for a change of language. `kopt run next` lists them; a new method needs a page before the run begins."""
    proposal = context.proposal
    if proposal is None:
        return
    for name in (*proposal.methods, *(one.method for one in proposal.skipped)):
        method, file = context.methods.by_id.get(name), f"{context.proposal_file}#methods"
        if name == REWRITE:
            continue
        if method is None:
            near = context.methods.nearest(name)
            mend = f"Name one of {', '.join(near)}." if near else "Take an id from the request's list of methods."
            yield Broken(file=file, line=0, message=f"{name!r} is no method that a wiki has a page of", mend=mend)
        elif why := context.unpinned(*method.page.split("/", 1)):
            yield Broken(file=file, line=0, message=f"{name}: {why}", mend="A new run takes new pages in.")
        elif method.defect and name in proposal.methods:
            message = f"{name} is a fault of kernels, and nothing that is done to one"
            yield Broken(file=file, line=0, message=message, mend="Name the method that takes it away.")
