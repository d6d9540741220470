"""The knowledge base and the experience log were asked."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.proposals.evidence import MANDATORY


@rule("evidence-queries", "Queries about the kernel, the bottleneck and past experience were put.", "proposal")
def evidence_queries(context: GateContext) -> Iterator[Broken]:
    """A change begins with what is known: one query at least about the kernel, one about the bottleneck, and one to the
    experience log, which may have nothing similar. The request's own are kept in searches.jsonl of the version; where
    one is missing, the proposal asks it under `evidence.queries`."""
    if context.version == 0:
        return
    asked = {search.about for search in context.searches}
    for about in MANDATORY:
        if about not in asked:
            message = f"no query about {about if about == 'experience' else f'the {about}'} stands there"
            mend = f"Add a query with `about: {about}` under evidence.queries."
            yield Broken(file=context.in_version("searches.jsonl"), line=0, message=message, mend=mend)
