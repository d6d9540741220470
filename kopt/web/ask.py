"""The page of questions: an answer, and beside it the places that it cites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kopt.services.knowledge.answer_layout import lay_out
from kopt.services.knowledge.answers import Asked, ask
from kopt.web.desk import Desk

MOST = 4_000
"""Characters of a question."""


async def page(desk: Desk, request: Request) -> Response:
    """`/?q=QUESTION`, and the empty page."""
    given = request.query_params
    question, long = given.get("q", "").strip()[:MOST], bool(given.get("long"))
    gpu, dtype = given.get("gpu", "").strip()[:100], given.get("dtype", "").strip()[:40]

    def work() -> Mapping[str, Any]:
        engine = desk.engine()
        values: dict[str, Any] = {"question": question, "long": long, "gpu": gpu, "dtype": dtype}
        if not question:
            return {**values, "answer": None}
        found = ask(engine, Asked(question, (gpu,) if gpu else (), dtype))
        engine.warn(found.answer.warnings)
        return {
            **values,
            "answer": found.answer,
            "laid": lay_out(found.answer, long=long),
            "warnings": engine.warnings,
        }

    return await desk.page(request, "ask.html", work, "knowledge" if question else "files")
