"""The knowledge base was asked."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("evidence-queries", "At least one query about the kernel and one about the bottleneck were put.", "proposal")
def evidence_queries(context: GateContext) -> Iterator[Broken]:
    """A change begins with what is known. The request's own queries are kept in searches.jsonl of the version;
    where one is missing, `kopt run next` looks it up again, or the proposal asks it under `evidence.queries`."""
    if context.version == 0:
        return
    asked = {search.about for search in context.searches}
    for about in ("kernel", "bottleneck"):
        if about not in asked:
            message = f"no query about the {about} stands there"
            mend = f"Add a query with `about: {about}` under evidence.queries."
            yield Broken(file=context.in_version("searches.jsonl"), line=0, message=message, mend=mend)
