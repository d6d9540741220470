"""Pages of the wikis: the list, a search, a page on which every line can be cited, a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kopt.services.engine import Engine
from kopt.services.knowledge.answers import search
from kopt.services.knowledge.citations import find_page
from kopt.services.publishing.addresses import PICTURES
from kopt.services.publishing.pictures import read_picture
from kopt.services.viewing.wikis import Listed, listed, rendered
from kopt.web.desk import Desk
from kopt.web.linking import address_of, page_address

TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
         ".gif": "image/gif", ".webp": "image/webp"}  # fmt: skip
MOST = 12
"""Passages that a search shows."""


async def overview(desk: Desk, request: Request) -> Response:
    """`/wiki`, and `/wiki?q=WORDS` with what was found."""
    words = request.query_params.get("q", "").strip()[:1000]

    def work() -> Mapping[str, Any]:
        engine = desk.engine(results=MOST)
        found = search(engine, words, {}) if words else None
        values = {"words": words, "found": found, "wikis": listed(engine)}
        return {**values, "warnings": [*engine.warnings, *(found.degraded if found else ())]}

    return await desk.page(request, "wiki.html", work, "knowledge")


async def page(desk: Desk, request: Request) -> Response:
    """`/wiki/gpu-wiki/kernel/softmax.html`, and pictures beside it."""
    path = request.path_params["path"]
    if PurePosixPath(path).suffix.lower() in PICTURES:
        return await desk.run("files", lambda: _picture(desk.engine(), path))
    if PurePosixPath(path).name == "README.html":  # a wiki's own list of its pages
        return RedirectResponse("/wiki", 302)
    if not path.endswith(".html"):
        place = await desk.run("files", lambda: _place(desk.engine(), path))
        return RedirectResponse(place or f"{request.url.path.rstrip('/')}.html", 302)

    def work() -> Mapping[str, Any]:
        engine = desk.engine()
        wikis = listed(engine)
        found = rendered(engine, path.removesuffix(".html"))
        return {"page": found, "body": Markup(found.body), "rest": Markup(found.rest), "wikis": wikis,
                "beside": _beside(wikis, found.wiki, found.path)}  # fmt: skip

    return await desk.page(request, "page.html", work)


def _place(engine: Engine, path: str) -> str:
    """Where a citation leads that stands in the address, or the name of a page or of a folder; empty where nothing is
    so called."""
    if cited := address_of(path):
        return cited
    try:
        return page_address(*find_page(engine.library, path)) if path else "/wiki"
    except UsageError as error:
        return "/wiki" if error.code == "page_ambiguous" else ""


def _beside(wikis: Mapping[str, Mapping[str, list[Listed]]], wiki: str, path: str) -> list[Listed]:
    """The pages of the same kind."""
    for pages in wikis.get(wiki, {}).values():
        if any(one.path == path for one in pages):
            return pages
    return []


def _picture(engine: Engine, path: str) -> Response:
    """A picture of a wiki, if it draws and does nothing else. Raises `UsageError` (`not_found`)."""
    for wiki in engine.wikis:
        below = path.removeprefix(f"{wiki.name}/")
        if below != path and ".." not in PurePosixPath(below).parts:
            data = read_picture(wiki, below)
            if isinstance(data, bytes):
                kind = TYPES[PurePosixPath(path).suffix.lower()]
                policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
                return Response(data, media_type=kind, headers=policy)
    raise UsageError(f"no picture {visible(path)[:200]}", code="not_found", hint="It was moved, or does not only draw.")
