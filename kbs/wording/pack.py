"""The claims of an answer with ids that a model or an agent can name: c1, c2 … in the order of the answer."""

from __future__ import annotations

from dataclasses import dataclass

from kbs.answers.model import Answer, Claim, ClaimKind


@dataclass(frozen=True)
class Numbered:
    """A claim, its id, and the heading that it stands under."""

    id: str
    claim: Claim
    section: str
    """Empty for the direct answer."""
    said: str
    """The claim as a person reads it."""


def said(claim: Claim) -> str:
    """A claim's text as a person reads it: the cells of a row are parts of one line."""
    if claim.kind is ClaimKind.RECORD:
        return claim.text.replace(" · ", ", ").replace(", <, ", " < ").replace(", >, ", " > ")
    return claim.text.replace(" | ", ": ")


def numbered(answer: Answer) -> list[Numbered]:
    """All claims of the answer; ids do not change while the answer does not."""
    placed = [(section.title, claim) for section in answer.sections for claim in section.claims]
    return [Numbered(f"c{n}", claim, title, said(claim)) for n, (title, claim) in enumerate(placed, start=1)]


def source_lines(claim: Claim) -> list[str]:
    """A citation line for each citation of a claim, as `kopt cite` checks it: the spec or the quoted sentence with the
    first, then bare references."""
    lines = [citation.reference for citation in claim.citations]
    if lines and claim.kind is ClaimKind.SPEC:
        lines[0] = f"{claim.text} <- {lines[0]}"
    elif lines and claim.kind is ClaimKind.STATEMENT:
        lines[0] = f'"{claim.text}" <- {lines[0]}'
    return lines
