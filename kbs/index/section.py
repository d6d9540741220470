"""A section of a page: its heading and all that stands below it until the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kbs.evidence.citation import Citation, lines_hash
from kbs.evidence.passage import Passage


@dataclass(frozen=True)
class Section:
    """A section of a page, whole. A record of the experience log is one too."""

    page_id: str
    title: str
    """The title of the page."""
    place: int
    """Its place in the page; page and place name it."""
    trail: tuple[str, ...]
    """Headings above it and its own, outermost first, without the title of the page."""
    asks: tuple[str, ...]
    """Other ways in which people put what it answers."""
    passages: tuple[Passage, ...]
    """All of it, in its order; at least one."""
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """facet → values of the page, in their order."""

    @property
    def heading(self) -> str:
        """Its own heading; the page's title for what stands above the first, and for a record."""
        return self.trail[-1] if self.trail else self.title

    @property
    def cited(self) -> Citation | None:
        """Its lines, from the first to the last of its text; None for a record."""
        first, last = self.passages[0].cited, self.passages[-1].cited
        if first is None or last is None:
            return None
        lines = first.quote.split("\n")
        for passage in self.passages[1:]:
            missing = passage.citation.line_start - first.line_start - len(lines)
            lines += passage.gap.split("\n") if passage.gap else [""] * missing
            lines += passage.text.split("\n")
        return Citation(
            *(first.wiki, first.path, first.line_start, last.line_end, first.revision),
            *(lines_hash(lines), "\n".join(lines)),
        )

    @property
    def citation(self) -> Citation:
        """Its lines. A record has none: raises ValueError."""
        cited = self.cited
        if cited is None:
            raise ValueError(f"{self.page_id} is a record of the log, and has no lines")
        return cited

    @property
    def reference(self) -> str:
        """What cites it: `gpu-wiki/kernel/softmax.md:L23-L30`, or `log/<id>`."""
        cited = self.cited
        return cited.reference if cited is not None else self.page_id
