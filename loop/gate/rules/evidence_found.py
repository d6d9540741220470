"""Selected evidence comes from a query that found it."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.citation import EvidenceKind, find_citations, parse_reference
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule

_LOOKED_UP = (EvidenceKind.WIKI, EvidenceKind.LOG)


@rule("evidence-found", "Selected wiki lines and records of the log were found by a query of this version.", "proposal")
def evidence_found(context: GateContext) -> Iterator[Broken]:
    """A query that returned nothing supports nothing, and a page or a record that no query returned was not looked up
    for this change. Pages that the run's README.md cites count as found. Ask for it under `evidence.queries`."""
    proposal = context.proposal
    if proposal is None:
        return
    found = {
        (r.wiki, r.target)
        for search in context.searches
        for hit in search.hits
        if (r := parse_reference(hit.reference))
    }
    readme = context.text("README.md") or ""
    found |= {(cited.reference.wiki, cited.reference.target) for cited in find_citations(readme)}
    empty = [search.text for search in context.searches if not search.hits]
    for number, one in enumerate(proposal.evidence.selected):
        reference = parse_reference(one.reference)
        if reference is None or reference.kind not in _LOOKED_UP or (reference.wiki, reference.target) in found:
            continue
        nothing = f"; these queries found nothing: {', '.join(repr(text) for text in empty[:3])}" if empty else ""
        message = f"no query of v{context.version} found {reference.wiki or 'log'}/{reference.target}{nothing}"
        mend = "Put a query under evidence.queries that finds it, or select evidence that was found."
        yield Broken(file=f"{context.proposal_file}#evidence.selected[{number}]", line=0, message=message, mend=mend)
