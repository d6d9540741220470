"""Where the gold section stands among the sections that a search finds, with all stages of it and without some.

A search without a stage is the same code on an index that lacks something: vectors of headings, of asks, of text, or
words. So the comparison stays true when the search changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kbs.common.json_model import JsonDataclass
from kbs.evidence.passage import Passage
from kbs.index.passages import ALL, Chosen, Spot
from kbs.index.search import Query
from kbs.index.sections import SectionResult
from kbs.index.store import Store
from kbs.questions.question import understand
from kopt.services.engine import Engine
from kopt.services.evaluation.questions import Question

T = TypeVar("T")
DEPTH = 20
"""Sections that are looked at; a gold section beyond them counts as not found."""
ENGINE = "sections"
PASSAGES = "passages"
STAGES = ("asks", "headings", "text", "words")
"""Vectors of asks, of headings and of text, and words."""
LACKING: Mapping[str, frozenset[str]] = {
    "words alone": frozenset(STAGES) - {"words"},
    "text vectors alone": frozenset(STAGES) - {"text"},
    **{f"without {stage}": frozenset({stage}) for stage in STAGES},
}
"""Searches to compare with, and the stages that they lack."""


@dataclass(frozen=True)
class Found(JsonDataclass):
    """What searching for a question found."""

    id: str
    ranks: dict[str, int]
    """Search → rank of the best gold section, from 1; 0 where none was found, or none is gold."""
    nearest: tuple[str, ...]
    """The first three sections."""
    scores: tuple[float, ...]
    """Theirs."""


def search_all(engine: Engine, questions: Sequence[Question], done: Callable[[int], None]) -> list[Found]:
    """Search for each question; where it has gold sections, also without each stage. `done` is told how many are."""

    def look(store: Store) -> list[Found]:
        kinds = _kinds(store)
        vectors = dict(store.vectors(store.meta("vector_model")))
        read: dict[str, dict[str, Any]] = {}
        lacking = {name: _Lacking.of(store, stages, kinds, vectors, read) for name, stages in LACKING.items()}
        found: list[Found] = []
        for number, one in enumerate(questions, start=1):
            result = _sections(engine, store, one.question)
            ranks = {}
            if one.gold:
                ranks = {ENGINE: rank(_names(result), one.gold), PASSAGES: rank(_of_passages(result), one.gold)}
                for name, view in lacking.items():
                    ranks[name] = rank(_names(_sections(engine, view, one.question)), one.gold)
            best = result.pages[:3]
            scores = tuple(round(hit.score, 4) for hit in best)
            found.append(Found(one.id, ranks, tuple(_names(result)[:3]), scores))
            done(number)
        return found

    return engine.with_store(look, vectors=True)


def rank(names: Sequence[str], gold: Collection[str]) -> int:
    """The place of the first gold one, from 1; 0 where there is none."""
    return next((place for place, name in enumerate(names, start=1) if name in gold), 0)


def _sections(engine: Engine, store: Store, text: str) -> SectionResult:
    return engine.find_sections(store, understand(text, engine.terms), Query(count=DEPTH, records=0), DEPTH)


def _names(result: SectionResult) -> list[str]:
    return [f"{hit.section.page_id}#{hit.section.heading}" for hit in result.pages]


def _of_passages(result: SectionResult) -> list[str]:
    """The sections of the passages that a search of passages finds, in their order."""
    return list(dict.fromkeys(f"{hit.passage.page_id}#{hit.passage.heading}" for hit in result.passages.pages))


def _kinds(store: Store) -> dict[str, str]:
    """Id of everything that has a vector → the stage that it belongs to."""
    spots = store.spots(store.vector_ids())
    kinds: dict[str, str] = {}
    headed: set[tuple[int, int]] = set()
    for id, spot in store.spots_of({spot.section for spot in spots.values()}).items():
        if not spot.asked:
            kinds[id] = "text"
        else:  # the heading stands before the asks
            kinds[id] = "asks" if spot.section in headed else "headings"
            headed.add(spot.section)
    return kinds


class _Lacking(Store):
    """An index as it is, without some stages. All its vectors are compared, one by one; rows are read once."""

    words: bool
    kept: Mapping[str, bytes]
    read: dict[str, dict[str, Any]]
    """Method → id → what it says of it. Searches of all views have the same filters."""

    @classmethod
    def of(
        cls,
        store: Store,
        stages: Collection[str],
        kinds: Mapping[str, str],
        vectors: Mapping[str, bytes],
        read: dict[str, dict[str, Any]],
    ) -> Store:
        """A view of an open index; the index stays its owner's. Views share what they have `read`."""
        view = cls.__new__(cls)
        view.__dict__ |= vars(store)
        view.read = read
        view.words = "words" not in stages
        view.kept = {id: vector for id, vector in vectors.items() if kinds.get(id, "text") not in stages}
        return view

    def meta(self, key: str, default: str = "") -> str:
        """Without the name of the vector index, and of the model where no vector is left."""
        left_out = key == "collection" or (key == "vector_model" and not self.kept)
        return "" if left_out else super().meta(key, default)

    def vectors(self, model: str, ids: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """Those that are left."""
        del model
        yield from self.kept.items() if ids is None else ((id, self.kept[id]) for id in ids if id in self.kept)

    def facets(self, page_ids: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """As the index has them."""
        return self._once("facets", page_ids, super().facets)

    def passages(self, ids: Iterable[str], chosen: Chosen = ALL) -> dict[str, Passage]:
        """As the index has them."""
        return self._once("passages", ids, lambda some: super(_Lacking, self).passages(some, chosen))

    def spots(self, ids: Iterable[str], chosen: Chosen = ALL) -> dict[str, Spot]:
        """As the index has them."""
        return self._once("spots", ids, lambda some: super(_Lacking, self).spots(some, chosen))

    def _once(self, method: str, ids: Iterable[str], load: Callable[[list[str]], dict[str, T]]) -> dict[str, T]:
        known, wanted = self.read.setdefault(method, {}), list(ids)
        missing = [id for id in wanted if id not in known]
        known |= dict.fromkeys(missing) | load(missing)
        return {id: known[id] for id in wanted if known[id] is not None}

    def match_words(
        self, terms: Sequence[str], limit: int, chosen: Chosen = ALL, *, every: bool = False
    ) -> list[tuple[str, float]]:
        """None, without words."""
        return super().match_words(terms, limit, chosen, every=every) if self.words else []

    def word_frequency(self, term: str, chosen: Chosen = ALL) -> int:
        """0, without words."""
        return super().word_frequency(term, chosen) if self.words else 0

    def ideal_words(self, terms: Sequence[str]) -> float:
        """0, without words."""
        return super().ideal_words(terms) if self.words else 0.0
