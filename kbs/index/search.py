"""Search of pages and records: words and vectors, with filters, their fusion, then a limit of passages per page.

Score = cosine + 0.2 · BM25/max + 0.3 for an exact rare identifier + a bonus for each name of the question that the page
is about. The first three weights come from a measurement on other collections (a GPU glossary, Cranfield and CoSQA):
cosine + 0.2 · BM25/max gave nDCG@10 0.814 / 0.434 / 0.596, flat between 0.1 and 0.3.

A section that lists asks has a vector of its heading and of each ask beside those of its passages. The nearest of them
lifts the passages of its section: a question against a question is what a small embedding model compares best.
`retrieve` does the work; `search` makes hits of it, and `kbs.index.sections` whole sections.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from kbs.evidence.passage import EXPERIMENT, LOG, Passage
from kbs.evidence.vocabulary import Vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Vectors
from kbs.index.passages import VISIBLE, Chosen, Spot
from kbs.index.store import Store
from kbs.index.tokens import identifiers, index_words, query_words

WORD_WEIGHT = 0.2
IDENTIFIER_BONUS = 0.3
NAME_BONUS = 0.08
"""For each operation, symptom, technique, bottleneck or product of the question that is the subject of the page."""
RARE = 0.03
"""An identifier is rare when it is in at most this share of the passages (or in three)."""
CANDIDATES = 60
ASKED_MORE = 2
"""Where there are headings and asks, so many times the candidates are looked up by vectors beside them: a section has
several."""
PER_PAGE = 2
FAR = 1500
"""So many passages the vector index is asked for, those that a filter lets through are kept, before it is given the
passages to choose from: at 50,000 passages 1,500 cost 6 ms, and a choice 14 to 32 ms."""
TOLERANCE = 0.01
"""By how much a cosine of the vector index may differ from that of the vectors themselves. A damaged file tells other
ones."""

_AT_ONCE = 4096
"""Vectors that are compared in one step."""
_MEND = "Run `kopt ingest --rebuild`."

VectorQuery = Callable[[Vectors, int, Sequence[str] | None], list[tuple[str, float]]]
"""The vector index: (vector, how many, of which passages; None: all) → (passage id, cosine), best first."""


@dataclass(frozen=True)
class Hit:
    """A passage that was found, with the score of each stage."""

    passage: Passage
    score: float
    cosine: float
    """Of its own text; where its section's heading or asks are nearer, the mean of both: see `lifted`."""
    words: float
    """BM25 as a share of the best passage's."""
    identifier: float
    names: float
    found_by: str
    """`vectors`, `words` or both."""
    asked: float = 0.0
    """The best cosine of its section's heading and asks; 0 where it has no asks."""

    @property
    def stages(self) -> dict[str, float]:
        """The score of each stage by name."""
        return {name: getattr(self, name) for name in ("cosine", "asked", "words", "identifier", "names")}


@dataclass
class SearchResult:
    """The hits, best first, and what could not be used."""

    hits: list[Hit] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    """The words that were looked for."""
    asked: list[str] = field(default_factory=list)
    """What was asked for vectors, and how."""

    @property
    def pages(self) -> list[Hit]:
        """Hits that are passages of pages."""
        return [hit for hit in self.hits if hit.passage.cited is not None]

    @property
    def records(self) -> list[Hit]:
        """Hits that are records of the experience log."""
        return [hit for hit in self.hits if hit.passage.cited is None]


@dataclass(frozen=True)
class Query:
    """What to search for. `names` are facet → ids that the question is about; pages about them are preferred."""

    text: str = ""
    vector: Vectors | None = None
    """Unit vector of the text, shape (dim,); None searches by words alone."""
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_products: frozenset[str] = frozenset()
    """Products that the question is not about: their pages are left out."""
    count: int = 8
    records: int | None = None
    """How many records of the log beside so many passages of pages; None: `count` is for both."""
    per_page: int = PER_PAGE
    hidden: Collection[int] = (VISIBLE,)
    """Which records are meant: those that count, those that are masked."""


@dataclass(frozen=True)
class Retrieved:
    """What was found, before anything is ranked. Whatever it has of ids is of the chosen pages."""

    query: Query
    chosen: Chosen
    result: SearchResult
    """Without hits."""
    spots: Mapping[str, Spot]
    """Where the candidates stand: passages found by words, identifiers or vectors, and those of the sections whose
    heading or ask was found."""
    words: Mapping[str, float]
    """BM25 of passages, those of candidates and more."""
    by_words: frozenset[str]
    """Passages that were found by words."""
    exact: frozenset[str]
    """Passages that have a rare identifier of the text."""
    near: frozenset[str]
    """Passages that were found by vectors, or whose section's heading or asks were."""
    cosines: Mapping[str, float]
    """Cosine of each candidate; where it has no vector yet, what its words say: see `_by_words_alone`."""
    asked: Mapping[tuple[int, int], float]
    """The best cosine of the heading and asks of each candidate's section that has asks."""
    asked_mean: Mapping[tuple[int, int], float]
    """The mean cosine of all of them."""
    around: Mapping[str, Spot]
    """All that stands in the sections of the candidates; nothing, where that was not needed yet."""


def search(
    store: Store, query: Query, vocabulary: Vocabulary, model: str, vector_query: VectorQuery | None
) -> SearchResult:
    """Search the store. `vector_query` is the vector index; without one, or where it fails, vectors are compared one by
    one, which gives the same hits and takes longer."""
    return ranked(store, retrieve(store, query, vocabulary, model, vector_query))


def retrieve(
    store: Store,
    query: Query,
    vocabulary: Vocabulary,
    model: str,
    vector_query: VectorQuery | None,
    *,
    wide: int = 1,
) -> Retrieved:
    """Find what may answer, by words, identifiers and vectors. `wide`: of so many times the candidates the score of
    the words is looked up, for those that vectors find."""
    result = SearchResult(terms=query_words(query.text, vocabulary))
    chosen = Chosen(query.filters, query.hidden)
    candidates = max(CANDIDATES, query.count)
    words = dict(store.match_words(result.terms, wide * candidates, chosen))
    by_words = frozenset(list(words)[:candidates])
    exact = _identifier_hits(store, query.text, chosen)
    found: dict[str, float] = {}
    questioned = store.asked_count(ASKED_MORE * candidates)
    if query.vector is not None:
        wanted = candidates + questioned
        found = _nearest(store, query.vector, chosen, wanted, model, vector_query, result)
    spots = store.spots(found.keys() | by_words | exact, chosen)
    near = {id for id in found if id in spots}
    asks: dict[tuple[int, int], list[float]] = {}
    around: dict[str, Spot] = {}
    if query.vector is not None:
        around = store.spots_of({spot.section for spot in spots.values()}) if questioned else {}
        questions = {id: spot for id, spot in around.items() if spot.asked}
        lifted = {spot.section for spot in spots.values() if spot.asked}
        lifts = {id: spot for id, spot in around.items() if spot.section in lifted}
        near |= lifts.keys()
        spots |= lifts
        found |= cosines_of(store, query.vector, (spots.keys() | questions.keys()) - found.keys(), model)
        for id in questions.keys() & found.keys():
            asks.setdefault(questions[id].section, []).append(found[id])
        if (waiting := by_words - found.keys()) and (pending := set(store.pending())):
            found |= _by_words_alone(waiting & pending, words, found)
    passages = {id: spot for id, spot in spots.items() if not spot.asked}
    return Retrieved(
        query=query,
        chosen=chosen,
        result=result,
        spots=passages,
        words=words,
        by_words=by_words,
        exact=frozenset(exact),
        near=frozenset(near & passages.keys()),
        cosines=found,
        asked={section: max(cosines) for section, cosines in asks.items()},
        asked_mean={section: sum(cosines) / len(cosines) for section, cosines in asks.items()},
        around=around,
    )


def _by_words_alone(ids: Collection[str], words: Mapping[str, float], cosines: Mapping[str, float]) -> dict[str, float]:
    """What stands for the cosine of passages without a vector: the nearest one's, by their share of the best BM25.

    Their ingest has not come to them yet. With 0 they would not be found before it has, however well their words fit.
    """
    nearest, best = max(cosines.values(), default=0.0), max(words.values(), default=0.0)
    return {id: nearest * words[id] / best for id in ids} if best else {}


def lifted(own: float | None, asked: float | None) -> float:
    """The cosine of a text, which the heading or asks of its section lift halfway to theirs where they are nearer; what
    there is of both, or 0.

    Wholly, one ask that sounds alike would win against what fits in all: see `kbs.index.sections`.
    """
    if own is None or asked is None:
        return next((one for one in (own, asked) if one is not None), 0.0)
    return max(own, (own + asked) / 2)


def ranked(store: Store, found: Retrieved) -> SearchResult:
    """The best passages of what was found."""
    query = found.query
    best_word = max(found.words.values(), default=0.0)
    facets = store.facets({spot.page_id for spot in found.spots.values()})
    passages = store.passages(found.spots, found.chosen)
    hits: list[Hit] = []
    for id, passage in passages.items():
        about = facets.get(passage.page_id, {})
        if passage.cited is not None and query.other_products.intersection(about.get("product", ())):
            continue
        own, asked = found.cosines.get(id), found.asked.get(found.spots[id].section)
        cosine = lifted(own, asked)
        by_words = id in found.by_words
        word = found.words[id] / best_word if by_words else 0.0
        identifier = IDENTIFIER_BONUS if id in found.exact else 0.0
        names = NAME_BONUS * sum(
            bool(set(wanted) & set(about.get(facet, ()))) for facet, wanted in query.names.items() if wanted
        )
        by = " and ".join(
            [*(["vectors"] if id in found.near else []), *(["words"] if by_words or id in found.exact else [])]
        )
        score = cosine + WORD_WEIGHT * word + identifier + names
        hits.append(Hit(passage, score, cosine, word, identifier, names, by, asked or 0.0))
    hits.sort(key=lambda hit: (-hit.score, hit.passage.reference))
    found.result.hits = _best(hits, query)
    return found.result


def records_with(store: Store, text: str, count: int) -> list[str]:
    """Ids of records of the log, not masked, that have all words of a text, those first that they fit best."""
    records = Chosen({"kind": [EXPERIMENT]})
    found = [id for id, _ in store.match_words(index_words(text).split(), 2 * count, records, every=True)]
    passages = store.passages(found)
    return list(dict.fromkeys(passages[id].page_id.removeprefix(f"{LOG}/") for id in found))[:count]


def _best(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """The best hits, at most so many of a page and of a kind."""
    best: list[Hit] = []
    per_page: dict[str, int] = {}
    left = {False: query.count, True: query.count if query.records is None else query.records}
    for hit in hits:
        page, record = hit.passage.page_id, hit.passage.cited is None
        if per_page.get(page, 0) < (1 if record else query.per_page) and left[record]:
            per_page[page] = per_page.get(page, 0) + 1
            best.append(hit)
            for kind in left if query.records is None else (record,):
                left[kind] -= 1
    return best


def _nearest(
    store: Store,
    vector: Vectors,
    chosen: Chosen,
    candidates: int,
    model: str,
    vector_query: VectorQuery | None,
    result: SearchResult,
) -> dict[str, float]:
    """The nearest of the passages, headings and asks of the chosen pages, `candidates` where there are as many, with
    their cosines."""
    if vector_query is not None:
        try:
            found = _asked(store, vector, chosen, candidates, vector_query, result)
            exact = cosines_of(store, vector, found, model)
            if any(abs(exact[id] - cosine) > TOLERANCE for id, cosine in found.items() if id in exact):
                raise VectorIndexError(
                    "the vector index tells other distances than its vectors have",
                    code="chroma_damaged",
                    hint=_MEND,
                )
            # What the vector index may not hold yet is compared here, so that nothing is missed while it is written.
            exact |= cosines_of(store, vector, store.vector_ids(chosen, pending=True), model, candidates)
            return dict(heapq.nlargest(candidates, exact.items(), key=lambda pair: pair[1]))
        except VectorIndexError as error:
            result.degraded.append(f"{error.message}; vectors were compared one by one. {error.hint}")
    result.asked.append("vectors compared one by one")
    ids = store.vector_ids(chosen) if chosen.filtered or store.hides() else None
    return cosines_of(store, vector, ids, model, candidates)


def _asked(
    store: Store, vector: Vectors, chosen: Chosen, candidates: int, ask: VectorQuery, result: SearchResult
) -> dict[str, float]:
    """What the vector index finds of the chosen pages, without what is pending."""
    pending = set(store.pending())
    settled = store.vector_count(settled=bool(pending))
    there = store.vector_count(chosen, settled=True) if chosen.filtered or store.hides() else settled
    wanted = min(candidates, there)
    if not wanted:
        return {}
    held = settled + len(pending)  # at most: of what is pending it holds some
    count = min(held, wanted if there == held else int(1.3 * wanted * held / there) + 1)
    while count <= FAR:
        found = dict(ask(vector, count, None))
        _check_count(found, min(count, settled))
        if not store.knows(found.keys() - pending):
            raise VectorIndexError("Chroma names vectors that are none", code="chroma_damaged", hint=_MEND)
        result.asked.append(f"Chroma, {count} nearest of {settled} vectors")
        kept = {id: found[id] for id in store.spots(found, chosen) if id not in pending}
        if len(kept) >= wanted or count >= held:
            return kept
        count = min(held, 4 * count)
    ids = store.vector_ids(chosen, pending=False)
    found = dict(ask(vector, wanted, ids))
    _check_count(found, wanted)
    result.asked.append(f"Chroma, {wanted} nearest of {len(ids)} vectors that the filters let through")
    return found


def _check_count(found: Mapping[str, float], count: int) -> None:
    if len(found) < 0.9 * count:
        raise VectorIndexError(f"Chroma finds {len(found)} of {count} vectors", code="chroma_damaged", hint=_MEND)


def cosines_of(
    store: Store, vector: Vectors, ids: Iterable[str] | None, model: str, count: int | None = None
) -> dict[str, float]:
    """Cosine of everything that has a vector of the model (or of `ids`), the best `count` of them."""
    scored = _scored(vector, store.vectors(model, ids))
    best = heapq.nlargest(count, scored) if count else scored
    return {id: cosine for cosine, id in best}


def _scored(vector: Vectors, found: Iterator[tuple[str, bytes]]) -> Iterator[tuple[float, str]]:
    """(cosine, id), many at a time: one by one, the calls cost several times what the products do."""
    fitting = (one for one in found if len(one[1]) == vector.nbytes)
    while some := list(islice(fitting, _AT_ONCE)):
        rows = np.frombuffer(b"".join(data for _, data in some), vector.dtype).reshape(len(some), -1)
        # Not `rows @ vector`: how that adds up depends on where a row stands, and equal texts would differ.
        yield from zip(np.vecdot(rows, vector).tolist(), (id for id, _ in some), strict=True)


def _identifier_hits(store: Store, text: str, chosen: Chosen) -> set[str]:
    """Passages that have a rare identifier of the text, whole."""
    names = identifiers(text)
    total = store.passage_count() if names else 0
    found: set[str] = set()
    for identifier in names:
        if 0 < store.word_frequency(identifier) <= max(3, RARE * total):
            found |= {id for id, _ in store.match_words([identifier], 20, chosen)}
    return found
