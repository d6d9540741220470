"""An answer in the parts that a door lays out itself: lines with the numbers of their sources, and the sources."""

from __future__ import annotations

from dataclasses import dataclass

from kbs.answers.model import Answer, Claim
from kbs.wording.pack import said
from kopt.services.knowledge.answer_text import MARKS, Sources, shortened


@dataclass(frozen=True)
class Line:
    """A claim."""

    text: str
    note: str
    """How far it can be trusted; empty where nothing is to be said."""
    kind: str
    sources: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Lines under a heading; the direct answer has none."""

    title: str
    lines: tuple[Line, ...]

    @property
    def ordered(self) -> bool:
        """Whether the order of the lines says something: what to try first."""
        return self.title == "What to try"


@dataclass(frozen=True)
class Source:
    """A place that lines cite."""

    number: int
    reference: str
    line: str
    """What is stated there and the reference, as `kopt cite` checks it."""
    quote: str
    """The cited lines; empty where the source is no page."""


@dataclass(frozen=True)
class AnswerLayout:
    """All of it."""

    parts: tuple[Part, ...]
    sources: tuple[Source, ...]
    hidden: int
    """Lines that are left out; `long` shows them."""


def lay_out(answer: Answer, *, long: bool = False) -> AnswerLayout:
    """The answer as `answer_text` prints it, in parts. `long`: all lines and all their sources."""
    sources = Sources(most=None if long else MARKS)
    shown = answer.sections if long else shortened(answer.sections)
    quotes: dict[str, str] = {}

    def line(claim: Claim) -> Line:
        quotes.update((one.reference, one.quote) for one in claim.citations)
        return Line(said(claim), claim.note, claim.kind.value, tuple(sources.numbers(claim)))

    parts = tuple(Part(section.title, tuple(map(line, section.claims))) for section in shown)
    listed = tuple(Source(number, key, text, quotes.get(key, "")) for number, key, text in sources.listed())
    return AnswerLayout(parts, listed, len(answer.claims) - sum(len(part.lines) for part in parts))
