"""Search the experience log through the one store, by words and meaning."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kbs.evidence.passage import EXPERIMENT
from kbs.experience.entry import Entry
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.index.passages import MASKED, VISIBLE
from kbs.index.search import Query, SearchResult
from kopt.services.engine import Engine
from kopt.services.experience.log import open_log

if TYPE_CHECKING:
    pass

LEAST = 0.3
"""Least cosine of a record that has no word of the text: below it, it is about something else."""
_MOST = 2000
"""Records that are looked at where a filter that the store does not have lets few through."""


def search_log(
    engine: Engine, log: ExperienceLog, text: str, wanted: Filter, limit: int
) -> tuple[list[Entry], SearchResult]:
    """(the records that fit a text best, of those that a filter lets through; the search that found them)"""
    with log.index() as index:
        count = limit
        while True:
            found = _found(engine, text, wanted, count)
            fitting = [hit for hit in found.hits if hit.words or hit.identifier or hit.cosine >= LEAST]
            ids = [hit.passage.page_id.partition("/")[2] for hit in fitting]
            entries = index.chosen(ids, wanted)[:limit]
            if len(entries) == limit or len(found.hits) < count or count >= _MOST:
                return entries, found
            count = min(_MOST, 4 * count)


def _found(engine: Engine, text: str, wanted: Filter, count: int) -> SearchResult:
    stated = {
        "operation": wanted.op,
        "language": wanted.backend,
        "product": wanted.gpu,
        "bottleneck": wanted.bottleneck,
        "dtype": wanted.dtype,
        "method": wanted.method,
        "confidence": wanted.provenance.value if wanted.provenance else "",
    }
    filters = {"kind": [EXPERIMENT], **{name: [value] for name, value in stated.items() if value}}
    filters |= {"outcome": [one.value for one in wanted.outcomes]} if wanted.outcomes else {}
    filters |= {"product": list(wanted.gpus)} if wanted.gpus else {}
    hidden: Collection[int] = {None: (VISIBLE, MASKED), True: (MASKED,), False: (VISIBLE,)}[wanted.masked]
    query = Query(filters=filters, count=count, hidden=hidden)
    return engine.with_store(lambda store: engine.search(store, text, query), vectors=True)


def searched_log(engine: Engine) -> ExperienceLog:
    """The experience log of an engine's settings, with the search that a run asks."""
    home = engine.settings.home
    return ExperienceLog(
        engine.settings.log_folder,
        home,
        lambda text, count: search_log(engine, open_log(engine.settings), text, Filter(), count)[0],
        engine.settings.base_log,
    )
