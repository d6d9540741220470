"""Search of whole sections, of pages and records: what `kbs.index.search` retrieves, as the sections that it stands in.

Score = dense + 0.65 · words. Dense is half the cosine of its best passage, a quarter that of the nearest of its heading
and asks, and a quarter the mean of all these: one ask that sounds alike does not win against what fits in all. Words is
BM25 of its best passage as a share of what the words of the question could score at most, so that scores compare across
questions.

docs/decisions/0047-sections-first.md has the measurement: 401 development questions, 2,684 sections. `kopt eval`
measures it against the search without each of its stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kbs.evidence.passage import Passage, Section
from kbs.evidence.vocabulary import Vocabulary
from kbs.index.passages import Spot
from kbs.index.search import Query, Retrieved, SearchResult, VectorQuery, cosines_of, ranked, retrieve
from kbs.index.store import Store

__all__ = ["SECTION_WORDS", "Section", "SectionHit", "SectionResult", "find_sections"]

SECTION_WORDS = 0.65
WIDE = 10
"""The words of so many times the candidates are scored: sections that vectors find get what theirs are worth."""


@dataclass(frozen=True)
class SectionHit:
    """A section that was found, with the score of each stage."""

    section: Section
    score: float
    dense: float
    """Half `text`, a quarter `asked`, a quarter the mean of heading and asks; `text` alone where there are none."""
    words: float
    """BM25 of its best passage, as a share of the most that the question's words could score."""
    asked: float
    """The best cosine of its heading and asks; 0 where it has no asks."""
    text: float
    """The best cosine of its passages."""
    best: Passage
    """The passage that fits best: a section of notes without headings may be long."""


@dataclass
class SectionResult:
    """Sections, best first, and the passages that the same search found."""

    hits: list[SectionHit] = field(default_factory=list)
    passages: SearchResult = field(default_factory=SearchResult)

    @property
    def degraded(self) -> list[str]:
        """What could not be used."""
        return self.passages.degraded

    @property
    def terms(self) -> list[str]:
        """The words that were looked for."""
        return self.passages.terms

    @property
    def asked(self) -> list[str]:
        """What was asked for vectors, and how."""
        return self.passages.asked

    @property
    def pages(self) -> list[SectionHit]:
        """Sections of pages."""
        return [hit for hit in self.hits if hit.section.passages[0].cited is not None]

    @property
    def records(self) -> list[SectionHit]:
        """Records of the experience log."""
        return [hit for hit in self.hits if hit.section.passages[0].cited is None]


@dataclass
class _Scored:
    """A section before it is read."""

    spot: Spot
    asked: float | None
    asked_mean: float | None
    text: float | None
    words: float
    best: str
    """Id of its best passage."""

    @property
    def dense(self) -> float:
        if self.asked is None or self.asked_mean is None:
            return self.text or 0.0
        of_asks = (self.asked + self.asked_mean) / 2
        return of_asks if self.text is None else (self.text + of_asks) / 2

    @property
    def score(self) -> float:
        return self.dense + SECTION_WORDS * self.words


def find_sections(
    store: Store, query: Query, vocabulary: Vocabulary, model: str, vector_query: VectorQuery | None, count: int
) -> SectionResult:
    """The `count` sections that fit the query best, any number of them of one page.

    `query.count`, `per_page` and `names` are for the passages that come with them; `query.records` says how many
    records there may be beside the sections of pages. Without a vector index the sections are the same.
    """
    found = retrieve(store, query, vocabulary, model, vector_query, wide=WIDE)
    passages = ranked(store, found)
    scored = _scored(store, found, model, store.ideal_words(passages.terms))
    scored.sort(key=lambda one: (-one.score, one.spot.page_id, one.spot.place))
    best = list(_allowed(store, scored, query, count))
    whole = store.sections_at((one.spot for one in best), found.chosen)
    hits = []
    for one in best:
        section = whole[one.spot.page_id, one.spot.place]
        passage = next(passage for passage in section.passages if passage.id == one.best)
        hits.append(SectionHit(section, one.score, one.dense, one.words, one.asked or 0.0, one.text or 0.0, passage))
    return SectionResult(hits, passages)


def _scored(store: Store, found: Retrieved, model: str, ideal: float) -> list[_Scored]:
    """The sections of all candidates."""
    spots = found.around or store.spots_of({spot.section for spot in found.spots.values()})
    of_section: dict[tuple[int, int], list[str]] = {}
    for id, spot in spots.items():
        if not spot.asked:
            of_section.setdefault(spot.section, []).append(id)
    cosines = dict(found.cosines)
    if found.query.vector is not None:
        missing = [id for ids in of_section.values() for id in ids if id not in cosines]
        cosines |= cosines_of(store, found.query.vector, missing, model)
    scored = []
    for key, ids in of_section.items():
        words = {id: found.words.get(id, 0.0) / ideal if ideal else 0.0 for id in ids}
        text = max((cosines[id] for id in ids if id in cosines), default=None)
        best = max(ids, key=lambda id: cosines.get(id, 0.0) + SECTION_WORDS * words[id])
        scored.append(
            _Scored(spots[best], found.asked.get(key), found.asked_mean.get(key), text, max(words.values()), best)
        )
    return scored


def _allowed(store: Store, scored: Sequence[_Scored], query: Query, count: int) -> Iterator[_Scored]:
    """The first of them, without pages of other products, at most so many of a kind."""
    about = store.facets({one.spot.page_id for one in scored})
    left = {False: count, True: count if query.records is None else query.records}
    for one in scored:
        record = one.spot.record
        products = about.get(one.spot.page_id, {}).get("product", ())
        if not left[record] or (not record and query.other_products.intersection(products)):
            continue
        yield one
        for kind in left if query.records is None else (record,):
            left[kind] -= 1
