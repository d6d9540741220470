"""Pages of the experience log: its records, one of them, and what to try by what was tried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import Outcome, Provenance
from kopt.services.arguments import read_dims
from kopt.services.experience.filters import read_filter
from kopt.services.experience.log import entry_of, open_log, recommended
from kopt.services.knowledge.log_search import search_log
from kopt.web.desk import Desk

PAGE = 50
"""Records of a page."""
FIELDS = ("op", "kernel", "chip", "method", "outcome", "provenance", "bottleneck", "backend", "dtype", "run")
_OTHERS = {"since": "", "until": ""}


async def overview(desk: Desk, request: Request) -> Response:
    """`/log?op=softmax&words=…&page=2`"""
    given = request.query_params

    def work() -> Mapping[str, Any]:
        asked = {name: given.get(name, "").strip()[:200] for name in FIELDS}
        words, number = given.get("words", "").strip()[:1000], _number(given)
        hidden = bool(given.get("masked"))
        outcomes = (asked["outcome"],) if asked["outcome"] else ()
        found, problem, wanted = open_log(desk.settings()), None, None
        try:
            wanted = read_filter({**asked, **_OTHERS, "outcome": outcomes}, None if hidden else False)
        except UsageError as error:
            problem = error
        with found.index() as index:
            total, all_of_it = index.count(wanted) if wanted else 0, index.count()
            last = max(1, -(-total // PAGE))
            skip = PAGE * (min(number, last) - 1)
            entries = list(index.entries(wanted, PAGE, newest=True, skip=skip)) if wanted and not words else []
        warnings: list[str] = []
        if words and wanted and total:
            engine = desk.engine()
            entries, searched = search_log(engine, found, words, wanted, PAGE)
            warnings = [*engine.warnings, *(f"degraded: {why}" for why in searched.degraded)]
        return {
            **_choices(),
            "asked": asked, "words": words, "masked": hidden, "number": min(number, last), "last": last,
            "total": total, "all": all_of_it, "entries": entries, "folder": str(found.files.root),
            "problem": problem, "status": 400 if problem else 200,
            "warnings": [*warnings, *map(str, found.problems()[:20])],
            "query": {name: value for name, value in given.items() if value and name != "page"},
        }  # fmt: skip

    return await desk.page(request, "log.html", work, "knowledge" if given.get("words") else "files")


def _number(given: QueryParams) -> int:
    text = given.get("page", "1")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text[:9]) < 10**7 else 1


def _choices() -> dict[str, Any]:
    """What the fields of the forms offer."""
    terms = vocabulary()
    return {
        "operations": sorted(terms.operations),
        "products": sorted(terms.products),
        "bottlenecks": sorted(terms.bottlenecks),
        "outcomes": [one.value for one in Outcome],
        "provenances": [one.value for one in Provenance],
    }


async def recommend(desk: Desk, request: Request) -> Response:
    """`/log/recommend?kernel=softmax&chip=h200&bottleneck=memory`"""
    given = request.query_params

    def work() -> Mapping[str, Any]:
        names = ("kernel", "backend", "chip", "bottleneck", "dims", "dtype")
        asked = {name: given.get(name, "").strip()[:200] for name in names}
        values: dict[str, Any] = {**_choices(), "asked": asked, "advice": None, "problem": None}
        if not asked["kernel"]:
            unnamed = UsageError("no kernel or operation is named", code="kernel_missing", hint="Name one: softmax.")
            return {**values, "problem": unnamed, "status": 400} if any(asked.values()) else values
        words = (asked["kernel"], asked["backend"], asked["chip"], asked["bottleneck"])
        try:
            read, advice = recommended(*words, read_dims(asked["dims"] or None), asked["dtype"], 10)
        except UsageError as error:
            return {**values, "problem": error, "status": 400}
        return {**values, "advice": advice, "read": {name: value for name, value in read.items() if value}}

    return await desk.page(request, "recommend.html", work)


async def experiment(desk: Desk, request: Request) -> Response:
    """`/log/{id}`: also by the beginning of an id."""
    id = request.path_params["id"]

    def work() -> Mapping[str, Any]:
        entry = entry_of(id)
        one = entry.experiment
        runs = desk.known_runs()
        return {"entry": entry, "one": one, "run": runs.named(one.run) if one.run else None}

    return await desk.page(request, "experiment.html", work)
