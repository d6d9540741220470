"""The page of questions: an answer, and beside it the places that it cites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kbs.common.errors import UsageError
from kopt.services.arguments import read_dims
from kopt.services.knowledge.answer_layout import lay_out
from kopt.services.knowledge.answers import Asked, ask
from kopt.web.desk import Desk

MOST = 4_000
"""Characters of a question."""


async def page(desk: Desk, request: Request) -> Response:
    """`/?q=QUESTION`, and the empty page."""
    given = request.query_params
    question, long = given.get("q", "").strip()[:MOST], bool(given.get("long"))
    gpu, dtype, dims = (given.get(name, "").strip()[:200] for name in ("gpu", "dtype", "dims"))

    def work() -> Mapping[str, Any]:
        engine = desk.engine()
        beside = {"gpu": gpu, "dtype": dtype, "dims": dims}
        values: dict[str, Any] = {"question": question, "beside": beside, "answer": None, "problem": None}
        values |= {"products": sorted(engine.terms.products), "dtypes": list(engine.terms.dtypes)}
        if not question:
            return values
        try:
            found = ask(engine, Asked(question, (gpu,) if gpu else (), dtype, read_dims(dims or None)))
        except UsageError as error:
            return {**values, "problem": error, "status": 400}
        engine.warn(found.answer.warnings)
        return {
            **values,
            "answer": found.answer,
            "laid": lay_out(found.answer, long=long),
            "warnings": engine.warnings,
        }

    return await desk.page(request, "ask.html", work, "knowledge" if question else "files")
