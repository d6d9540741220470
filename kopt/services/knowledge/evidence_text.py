"""The evidence of an answer as text, for an agent that answers in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbs.answers.model import Answer
from kbs.wording.pack import Numbered, numbered, source_lines

MOST = 12
"""Claims of a section, steps of a claim and sources of a claim that are told; of a question on every GPU there are
hundreds."""


def evidence_text(answer: Answer, not_understood: Sequence[str], warnings: Sequence[str], *, long: bool = False) -> str:
    """Claims with ids, citation lines and quoted lines; then what is missing, and the passages that were found.

    Of more than `MOST` the first are told, and how many more there are; `long`: all.
    """
    state = f"not answered ({answer.reason})" if answer.abstained else "answered"
    out = [f"Question: {answer.question}", f"State: {state}", "", "Claims"]
    sections: dict[str, int] = {}
    for one in numbered(answer):
        sections[one.section] = sections.get(one.section, 0) + 1
        if long or sections[one.section] <= MOST:
            out += _claim(one, None if long else MOST)
    for title, count in sections.items():
        if not long and count > MOST:
            out.append(f"  {count - MOST} more claims{f' of {title}' if title else ''}: --long")
    if not answer.claims:
        out.append("  none")
    for title, lines in (
        ("Not known", answer.gaps),
        ("Not understood", not_understood),
        ("Warnings", warnings),
        ("Taken from your files", answer.taken),
    ):
        if lines:
            out += ["", title, *(f"  - {line}" for line in lines)]
    if answer.hits:
        out += ["", "Passages found"]
    for hit in answer.hits:
        passage = hit.passage
        out += [f"  {passage.reference}  {' > '.join([passage.title, *passage.trail])}", *_quoted(passage.text)]
    return "\n".join(out)


def _claim(one: Numbered, most: int | None) -> Iterator[str]:
    claim = one.claim
    where = f", {one.section}" if one.section else ""
    yield f"  {one.id} [{claim.kind}{where}] {one.said}{f' ({claim.note})' if claim.note else ''}"
    yield from (f"    = {step.shown}" for step in claim.derivation[:most])
    for line, citation in list(zip(source_lines(claim), claim.citations, strict=True))[:most]:
        yield f"    {line}"
        yield from _quoted(citation.quote)
    counts = {"steps": len(claim.derivation), "sources": len(claim.citations)}
    if most is not None and max(counts.values()) > most:
        left = [f"{count - most} more {what}" for what, count in counts.items() if count > most]
        yield f"    {' and '.join(left)}: --long"
    for item in claim.evidence:
        yield f"    {item.line}"


def _quoted(text: str) -> Iterator[str]:
    return (f"    > {line.rstrip()}" for line in text.split("\n") if line.strip())
