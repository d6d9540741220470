"""Sections of the wikis that say nearly the same, by the vectors of their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbs.common.errors import ConfigurationError
from kbs.evidence.passage import Section
from kbs.index.passages import Chosen
from kbs.index.store import Store
from kopt.services.engine import Engine

_SHORTEST = 80
"""Characters of text from which a section is compared: a shorter one says too little to repeat another."""
_BLOCK = 1_024
"""Sections that are compared with all others at a time, which bounds the memory."""


@dataclass(frozen=True)
class Alike:
    """Two sections of different pages, and the cosine of their vectors."""

    cosine: float
    first: Section
    second: Section


@dataclass(frozen=True)
class AlikeSections:
    """Pairs of sections, the nearest first."""

    pairs: list[Alike]
    compared: int
    """Sections that were compared."""


def alike_sections(engine: Engine, least: float, wikis: Sequence[str]) -> AlikeSections:
    """Pairs of sections of different pages of some wikis whose vectors have at least this cosine.

    A section's vector is the mean of those of its passages. Two hardware pages are not compared: they hold the same
    tables with other values. Raises `ConfigurationError` (`no_vectors`) where the index has none.
    """
    return engine.with_store(lambda store: _pairs(store, least, wikis, engine.model_identity()), vectors=True)


def _pairs(store: Store, least: float, wikis: Sequence[str], model: str | None) -> AlikeSections:
    sections: list[Section] = []
    means: list[NDArray[np.float32]] = []
    vectors = dict(store.vectors(model)) if model is not None else {}
    if not vectors:
        raise ConfigurationError(
            "the index has no vectors to compare", code="no_vectors", hint="See `kopt doctor`, then `kopt ingest`."
        )
    for section in store.every_section(Chosen({"wiki": tuple(wikis)})):
        own = [np.frombuffer(vectors[one.id], np.float32) for one in section.passages if one.id in vectors]
        if own and sum(len(one.text) for one in section.passages) >= _SHORTEST:
            mean = np.mean(own, axis=0)
            sections.append(section)
            means.append(mean / np.linalg.norm(mean))
    table = np.array(means, np.float32)
    found: list[Alike] = []
    for start in range(0, len(table), _BLOCK):
        cosines = table[start : start + _BLOCK] @ table.T
        for row, column in np.argwhere(cosines >= least):
            one, other = sections[start + row], sections[column]
            if start + row < column and one.page_id != other.page_id and not (_hardware(one) and _hardware(other)):
                found.append(Alike(float(cosines[row, column]), one, other))
    return AlikeSections(sorted(found, key=lambda pair: -pair.cosine), len(sections))


def _hardware(section: Section) -> bool:
    return "hardware" in section.about.get("kind", ())
