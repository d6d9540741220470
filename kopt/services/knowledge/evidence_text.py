"""The evidence of an answer as text, for an agent that answers in its own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kbs.answers.model import Answer
from kbs.wording.pack import Numbered, numbered, source_lines


def evidence_text(answer: Answer, not_understood: Sequence[str], warnings: Sequence[str]) -> str:
    """Claims with ids, citation lines and quoted lines; then what is missing, and the passages that were found."""
    state = f"not answered ({answer.reason})" if answer.abstained else "answered"
    out = [f"Question: {answer.question}", f"State: {state}", "", "Claims"]
    for one in numbered(answer):
        out += _claim(one)
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


def _claim(one: Numbered) -> Iterator[str]:
    claim = one.claim
    where = f", {one.section}" if one.section else ""
    yield f"  {one.id} [{claim.kind}{where}] {one.said}{f' ({claim.note})' if claim.note else ''}"
    yield from (f"    = {step.shown}" for step in claim.derivation)
    for line, citation in zip(source_lines(claim), claim.citations, strict=True):
        yield f"    {line}"
        yield from _quoted(citation.quote)
    for item in claim.evidence:
        yield f"    {item.line}"


def _quoted(text: str) -> Iterator[str]:
    return (f"    > {line.rstrip()}" for line in text.split("\n") if line.strip())
