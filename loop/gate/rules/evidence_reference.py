"""Selected evidence resolves."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.checking import Status
from kbs.evidence.citation import find_citations, parse_reference
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.sources import check_citation
from loop.gate.texts import selected_line


@rule(
    "evidence-reference",
    "Selected evidence cites lines, receipts, profiles or records that exist and say what is quoted.",
    "proposal",
)
def evidence_reference(context: GateContext) -> Iterator[Broken]:
    """Each `evidence.selected` has a reference that can be looked up: wiki/path:L12, receipt/ID#FIELD of this run,
    profile/SHA-256 of profile.csv#METRIC, or log/ID of a record that a query of this run found. Its quote is words of
    those lines, a spec as they state it, or empty."""
    proposal = context.proposal
    for number, one in enumerate(proposal.evidence.selected if proposal is not None else ()):
        file = f"{context.proposal_file}#evidence.selected[{number}]"
        if parse_reference(one.reference) is None:
            message = f"{one.reference!r} is no reference"
            mend = "Write wiki/path:L12, wiki/path:L12-L14, receipt/ID#FIELD, profile/HASH#METRIC or log/ID."
            yield Broken(file=file, line=0, message=message, mend=mend)
            continue
        for cited in find_citations(selected_line(one.quote, one.reference)):
            checked = check_citation(cited, context)
            if checked.result.status in (Status.NOT_FOUND, Status.MISMATCH) and not checked.unpinned:
                says = f" The lines say: {checked.result.says[:200]}" if checked.result.says else ""
                mend = f"Cite the line that says it, or quote what it says.{says}"
                yield Broken(file=file, line=0, message=f"{one.reference}: {checked.result.detail}", mend=mend)
