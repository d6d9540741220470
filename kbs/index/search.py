"""Search: filters, then words and vectors, then their fusion, then a limit of passages per page.

Score = cosine + 0.2 · BM25/max + 0.3 for an exact rare identifier + a bonus for each name of the question that the page
is about. The first three weights come from a measurement on other collections (a GPU glossary, Cranfield and CoSQA):
cosine + 0.2 · BM25/max gave nDCG@10 0.814 / 0.434 / 0.596, flat between 0.1 and 0.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kbs.evidence.passage import Passage
from kbs.evidence.vocabulary import Vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Vectors
from kbs.index.store import Store
from kbs.index.tokens import identifiers, query_words

WORD_WEIGHT = 0.2
IDENTIFIER_BONUS = 0.3
NAME_BONUS = 0.08
"""For each operation, symptom, technique, bottleneck or product of the question that is the subject of the page."""
RARE = 0.03
"""An identifier is rare when it is in at most this share of the passages (or in three)."""
CANDIDATES = 60
PER_PAGE = 2

VectorQuery = Callable[[Vectors, int], list[tuple[str, float]]]
"""The vector index: (vector, how many) → (passage id, cosine), best first."""


@dataclass(frozen=True)
class Hit:
    """A passage that was found, with the score of each stage."""

    passage: Passage
    score: float
    cosine: float
    words: float
    """BM25 as a share of the best passage's."""
    identifier: float
    names: float

    @property
    def stages(self) -> dict[str, float]:
        """The score of each stage by name."""
        return {name: getattr(self, name) for name in ("cosine", "words", "identifier", "names")}


@dataclass
class SearchResult:
    """The hits, best first, and what could not be used."""

    hits: list[Hit] = field(default_factory=list)
    degraded: list[str] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    """The words that were looked for."""


@dataclass(frozen=True)
class Query:
    """What to search for. `names` are facet → ids that the question is about; pages about them are preferred."""

    text: str
    vector: Vectors | None = None
    """Unit vector of the text, shape (dim,); None searches by words alone."""
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    other_products: frozenset[str] = frozenset()
    """Products that the question is not about: their pages are left out."""
    count: int = 8
    per_page: int = PER_PAGE


def search(
    store: Store, query: Query, vocabulary: Vocabulary, model: str, vector_query: VectorQuery | None
) -> SearchResult:
    """Search the passages of the store. `vector_query` is the vector index; without one, or where it fails, vectors are
    compared one by one, which gives the same hits."""
    result = SearchResult(terms=query_words(query.text, vocabulary))
    rows = store.page_rows(query.filters)
    if rows is not None and not rows:
        return result
    by_words = dict(store.match_words(result.terms, CANDIDATES, rows))
    best_word = max(by_words.values(), default=0.0)
    cosines: dict[str, float] = {}
    if query.vector is not None:
        cosines = _nearest(store, query.vector, rows, model, vector_query, result)
        without = [id for id in by_words if id not in cosines]
        cosines |= _cosines(store, query.vector, without, model)
    exact = _identifier_hits(store, query.text, rows)
    passages = store.passages(list(cosines.keys() | by_words.keys() | exact))
    facets: dict[str, dict[str, list[str]]] = {}
    hits: list[Hit] = []
    for id, passage in passages.items():
        if passage.page_id not in facets:
            facets[passage.page_id] = store.facet_values(passage.page_id)
        about = facets[passage.page_id]
        if query.other_products.intersection(about.get("product", ())):
            continue
        cosine = cosines.get(id, 0.0)
        word = by_words.get(id, 0.0) / best_word if best_word else 0.0
        identifier = IDENTIFIER_BONUS if id in exact else 0.0
        names = NAME_BONUS * sum(
            bool(set(wanted) & set(about.get(facet, ()))) for facet, wanted in query.names.items() if wanted
        )
        hits.append(Hit(passage, cosine + WORD_WEIGHT * word + identifier + names, cosine, word, identifier, names))
    hits.sort(key=lambda hit: (-hit.score, hit.passage.citation.reference))
    per_page: dict[str, int] = {}
    for hit in hits:
        page = hit.passage.page_id
        if per_page.get(page, 0) < query.per_page and len(result.hits) < query.count:
            per_page[page] = per_page.get(page, 0) + 1
            result.hits.append(hit)
    return result


def _nearest(
    store: Store,
    vector: Vectors,
    rows: Sequence[int] | None,
    model: str,
    vector_query: VectorQuery | None,
    result: SearchResult,
) -> dict[str, float]:
    # A filter that has picked the rows makes an exact scan of them faster than a filtered query of the vector index.
    if rows is not None:
        return _cosines(store, vector, store.passage_ids(rows), model, CANDIDATES)
    if vector_query is not None:
        before = store.generation
        try:
            found = dict(vector_query(vector, CANDIDATES))
            if store.generation == before:
                return found
        except VectorIndexError as error:
            result.degraded.append(f"{error.message}; vectors were compared one by one. {error.hint}")
    return _cosines(store, vector, None, model, CANDIDATES)


def _cosines(
    store: Store, vector: Vectors, ids: Sequence[str] | None, model: str, count: int | None = None
) -> dict[str, float]:
    """Cosine of every passage (or of `ids`), the best `count` of them."""
    if ids is not None and not ids:
        return {}
    scored = (
        (float(np.frombuffer(data, np.float32) @ vector), id)
        for id, data in store.vectors(model, ids)
        if len(data) == vector.nbytes
    )
    chosen = heapq.nlargest(count, scored) if count else list(scored)
    return {id: cosine for cosine, id in chosen}


def _identifier_hits(store: Store, text: str, rows: Sequence[int] | None) -> set[str]:
    """Passages that have a rare identifier of the text, whole."""
    total = max(store.counts()["passages"], 1)
    found: set[str] = set()
    for identifier in identifiers(text):
        if 0 < store.word_frequency(identifier) <= max(3, RARE * total):
            found |= {id for id, _ in store.match_words([identifier], 20, rows)}
    return found
