"""The application: which address is which page."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from kbs.common.errors import KoptError
from kopt.web import ask, bench, doctor, log, runs, wiki
from kopt.web.desk import Desk
from kopt.web.guard import Guard

_log = logging.getLogger(__name__)
Handler = Callable[[Desk, Request], Awaitable[Response]]
PAGES: tuple[tuple[str, Handler], ...] = (
    ("/", ask.page),
    ("/wiki", wiki.overview),
    ("/wiki/{path:path}", wiki.page),
    ("/log", log.overview),
    ("/log/recommend", log.recommend),
    ("/log/{id}", log.experiment),
    ("/runs", runs.overview),
    ("/runs/mark", runs.mark),
    ("/runs/{key}", runs.run),
    ("/runs/{key}/mark", runs.mark),
    ("/runs/{key}/compare", runs.compare),
    ("/runs/{key}/report", runs.report),
    ("/runs/{key}/v{number:int}", runs.version),
    ("/bench", bench.overview),
    ("/bench/{id}", bench.receipt),
    ("/doctor", doctor.page),
)


OTHERWISE = {"/ask": "/", "/search": "/wiki", "/receipts": "/bench", "/experiments": "/log"}
"""Addresses that people type by what a page is about, and the page."""


def make_app(desk: Desk, port: int, token: str) -> ASGIApp:
    """The application behind its guard, for a port of this machine."""

    async def wrong(request: Request, error: Exception) -> Response:
        assert isinstance(error, KoptError)
        return desk.error(request, error)

    async def missing(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return desk.refusal(request, error.status_code, "There is no such page.", "The pages are named above.")

    async def failed(request: Request, error: Exception) -> Response:
        _log.error("%s", request.url.path, exc_info=error)
        return desk.refusal(
            request, 500, f"{type(error).__name__}: {error}", "This is a fault of kopt: report what its log has of it."
        )

    async def icon(request: Request) -> Response:
        """Where browsers look before they have read a page."""
        del request
        return RedirectResponse("/static/icon.svg")

    async def elsewhere(request: Request) -> Response:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"{OTHERWISE[request.url.path]}{query}", 302)

    static = StaticFiles(directory=str(Path(str(resources.files("kopt.web"))) / "static"))
    routes = [Route(path, functools.partial(_handled, handler, desk), methods=["GET"]) for path, handler in PAGES]
    app = Starlette(
        routes=[
            *routes,
            *(Route(path, elsewhere) for path in OTHERWISE),
            Route("/favicon.ico", icon),
            Mount("/static", static),
        ],
        exception_handlers={KoptError: wrong, HTTPException: missing, Exception: failed},
    )
    return Guard(app, port, token, desk.refusal)


async def _handled(handler: Handler, desk: Desk, request: Request) -> Response:
    return await handler(desk, request)
