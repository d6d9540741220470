"""Answers and passages as text for a person."""

from __future__ import annotations

from kbs.answers.model import Answer, Claim, ClaimKind
from kbs.common.visible_text import visible
from kbs.evidence.citation import Citation
from kbs.evidence.file_evidence import FileEvidence
from kbs.index.search import Hit

_ROWS = 6
"""Rows of a count that a source line has; `--json` has all."""


def answer_text(answer: Answer) -> str:
    """The answer, its direct claim first, with numbered sources: one number for each cited place."""
    numbers: dict[str, int] = {}
    lines: dict[str, str] = {}
    out: list[str] = []
    for section in answer.sections:
        if section.title:
            out += ["", section.title]
        for position, claim in enumerate(section.claims, start=1):
            for first, citation in zip([True] + [False] * len(claim.citations), claim.citations, strict=False):
                numbers.setdefault(citation.reference, len(numbers) + 1)
                stated = _source_line(claim, citation, first)
                # A line that says what stands there is worth more than a bare place.
                if citation.reference not in lines or len(stated) > len(lines[citation.reference]):
                    lines[citation.reference] = stated
            for item in claim.evidence:
                key = _own_key(item)
                numbers.setdefault(key, len(numbers) + 1)
                lines.setdefault(key, item.line)
            keys = [*(c.reference for c in claim.citations), *(_own_key(item) for item in claim.evidence)]
            marks = "".join(f"[{numbers[key]}]" for key in dict.fromkeys(keys))
            lead = "" if not section.title else (f"  {position}. " if section.title == "What to try" else "  - ")
            note = f" ({claim.note})" if claim.note else ""
            text = (
                claim.text.replace(" · ", ", ").replace(", <, ", " < ").replace(", >, ", " > ")
                if claim.kind is ClaimKind.RECORD
                else claim.text.replace(" | ", ": ")
            )
            out.append(f"{lead}{text}{note}{' ' + marks if marks else ''}")
    if answer.taken:
        out += ["", "Taken from your files", *(f"  - {one}" for one in answer.taken)]
    if answer.gaps:
        out += ["", "Not known", *(f"  - {gap}" for gap in answer.gaps)]
    if answer.dropped:
        out += ["", f"{answer.dropped} claims failed their check and were left out."]
    lines |= _counts(answer)
    if numbers:
        out += ["", "Sources", *(f"  [{number}] {lines[reference]}" for reference, number in numbers.items())]
    return "\n".join(out)


def _own_key(item: FileEvidence) -> str:
    """What has a number of its own among the sources: a figure of a profile; all rows of one count together."""
    return f"{item.file} {item.hash}" if item.kind == "count" else item.reference


def _counts(answer: Answer) -> dict[str, str]:
    """A line for each count of a reference."""
    rows: dict[str, dict[FileEvidence, None]] = {}
    for claim in answer.claims:
        for item in claim.evidence:
            if item.kind == "count":
                rows.setdefault(_own_key(item), {})[item] = None
    made = {}
    for key, found in rows.items():
        first = [f"{one.place}: {one.states}" for one in list(found)[:_ROWS]]
        more = f"; {len(found) - _ROWS} more" if len(found) > _ROWS else ""
        one = next(iter(found))
        made[key] = visible(f"count of {one.file} (SHA-256 {one.hash[:16]}): {'; '.join(first)}{more}")
    return made


def _source_line(claim: Claim, citation: Citation, first: bool) -> str:
    """A source as a citation line that `kopt cite` can check: the spec, the quoted sentence, or the bare reference."""
    if claim.kind is ClaimKind.SPEC and first:
        return f"{claim.text} <- {citation.reference}"
    if claim.kind is ClaimKind.STATEMENT and first:
        return f'"{claim.text}" <- {citation.reference}'
    return citation.reference


def score_stages(hit: Hit) -> str:
    """The score of each stage of the search, for `--explain`."""
    return f"cosine {hit.cosine:.3f}, words {hit.words:.3f}, identifier {hit.identifier}, names {hit.names:.2f}"
