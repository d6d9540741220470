"""What a search finds: a passage of a wiki page, a whole section, a record of the log; and the facets for filters.

A section that lists asks is found by its heading and its asks too: each is an `AskedAs` in the index, with a
vector of its own, and points at the passages.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kbs.evidence.checking import plain_text
from kbs.evidence.citation import Citation, lines_hash

LOG = "log"
"""What stands in the place of a wiki's name for a record of the experience log."""
EXPERIMENT = "experiment"
"""The kind of such a record."""


_ASKED = "\0asked\0"
"""Tells the id of a heading or ask from that of a passage that reads the same."""
_MAX_HEADING = 200


@dataclass(frozen=True)
class Passage:
    """Some lines of a page that belong together, with what is searched for them."""

    id: str
    """Content address: the same words under the same headings of the same page keep it when lines move."""
    page_id: str
    """Id of the page, e.g. kernel/softmax; `log/<id>` for a record of the experience log."""
    title: str
    trail: tuple[str, ...]
    """Headings above it, outermost first."""
    text: str
    """The lines as they are in the file."""
    embedded: str
    """What is embedded: title, headings and the words, without marks."""
    cited: Citation | None
    """Its lines; None for a record of the experience log, which is cited by its id."""
    place: int = 0
    """The place of its section in the page."""
    asks: tuple[str, ...] = ()
    """Other ways in which people put what its section answers."""
    gap: str = ""
    """Lines between it and the passage before it in its section, where they are not all blank: definitions of
    footnotes."""

    @property
    def heading(self) -> str:
        """The heading of its section; the page's title for what stands above the first."""
        return self.trail[-1] if self.trail else self.title

    @property
    def citation(self) -> Citation:
        """The lines of a page that it is. A record has none: raises ValueError."""
        if self.cited is None:
            raise ValueError(f"{self.page_id} is a record of the log, and has no lines")
        return self.cited

    @property
    def reference(self) -> str:
        """What cites it: `gpu-wiki/kernel/softmax.md:L23-L30`, or `log/<id>`."""
        return self.cited.reference if self.cited is not None else self.page_id

    @property
    def embedding_key(self) -> str:
        """SHA-256 of the embedded text: passages that read the same share a vector."""
        return hashlib.sha256(self.embedded.encode()).hexdigest()


def passage_id(wiki: str, path: str, embedded: str, repeat: int) -> str:
    """Id of a passage; `repeat` tells apart passages of a page that read the same."""
    return hashlib.sha256(f"{wiki}\0{path}\0{embedded}\0{repeat}".encode()).hexdigest()[:32]


@dataclass(frozen=True)
class AskedAs:
    """A heading, or an ask, by which a section is found."""

    id: str
    place: int
    """The place of the section in its page."""
    text: str
    """What is embedded: the words alone; of a heading that names no subject, with the page's title."""

    @property
    def embedding_key(self) -> str:
        """SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def asked_as(passages: Iterable[Passage]) -> list[AskedAs]:
    """The headings and asks of the passages of a page, of its sections that have asks alone."""
    found: dict[tuple[int, str], None] = {}
    made: list[AskedAs] = []
    repeats: Counter[str] = Counter()
    for passage in passages:
        if not passage.asks or passage.cited is None:
            continue
        heading = standing_alone(passage.heading, passage.title)[:_MAX_HEADING]
        for text in filter(None, (heading, *passage.asks)):
            if (passage.place, text) not in found:
                found[passage.place, text] = None
                cited = passage.cited
                id = passage_id(cited.wiki, cited.path, f"{_ASKED}{text}", repeats[text])
                made.append(AskedAs(id, passage.place, text))
                repeats[text] += 1
    return made


@dataclass(frozen=True)
class PageEntry:
    """What the index keeps of a page beside its passages."""

    wiki: str
    path: str
    page_id: str
    kind: str
    title: str
    confidence: str
    size: int
    mtime_ns: int
    sha256: str
    facets: Mapping[str, tuple[str, ...]]
    """What it can be chosen by, as `kind`, `operation` or `product` → its values."""
    masked: bool = False
    """Whether it is a record of the log that is masked: it is found only where masked ones are asked for."""


_HEADING_WORD = re.compile(r"[^\W_]+")
_GENERAL = """
    a about above additional advanced advice after all also an and answer answers any applies apply are as at
    background basic basics be before below best but by can cases caveats check checking checks common comparison
    conclusion cons considerations core cost costs could data definition description detail details disagree
    discussion do does effect effects else example examples explained explanation facts faq find first for from
    further gains general get good gotchas guidance guide guidelines have here hints history how i idea ideas if
    implementation important in information intro introduction is issues it its key know known learn limit limitations
    limits list look main make matter matters mean means measured measurements misc miscellaneous more motivation my
    need next not note notes of on one or other our out over overview page part pays performance picture pitfalls
    point points practice principle principles problem problems profile pros published purpose question questions
    quick reading real reason reasons recommendation recommendations reference references related remarks result
    results rule rules see should signs some something source sources specification specifications start steps
    strategy summary symptoms take technique technology terminology that the theory there these they thing things this
    those tips to topic topics traps trick tricks troubleshooting try typical under understanding unpublished usage
    use used useful uses using values verify want warnings watch way ways we well what when where whether which who
    why will with without work works you your
"""
_SAY_NOTHING = frozenset(_GENERAL.split())


def names_subject(heading: str) -> bool:
    """Whether a heading says something without its page: "When it applies" and "Measured" do not."""
    return not _SAY_NOTHING.issuperset(_HEADING_WORD.findall(plain_text(heading).lower()))


def standing_alone(heading: str, title: str) -> str:
    """The words of a heading, with the title of its page before them where it names no subject."""
    words = " ".join(plain_text(heading).split())
    return words if names_subject(heading) or heading == title else f"{title}: {words}"


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
