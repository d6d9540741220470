"""Pages of the wikis as HTML, and the list of all pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kbs.evidence.checking import plain_text
from kopt.services.engine import Engine
from kopt.services.knowledge.citations import nearest_pages
from kopt.services.publishing.addresses import PICTURES, Addresses, file_of
from kopt.services.publishing.page_html import PageHtml, line
from kopt.services.publishing.pictures import read_picture, svg_size
from wiki.index_page import HEADINGS
from wiki.library import Wiki, Wikis
from wiki.page import Page
from wiki.reader import links


@dataclass(frozen=True)
class Listed:
    """A page in the list."""

    wiki: str
    path: str
    title: str
    confidence: str


@dataclass(frozen=True)
class Cited:
    """A source of a page."""

    id: str
    title: str
    kind: str
    accessed: str
    url: str
    """Empty where it may lead nowhere."""


@dataclass(frozen=True)
class Rendered:
    """A page. `body` and `rest` are HTML in which nothing of the page has any effect."""

    wiki: str
    path: str
    title: str
    kind: str
    about: tuple[str, ...]
    """What is said of it: confidence, date of review."""
    body: str
    rest: str
    """Lines that the body does not show."""
    contents: tuple[tuple[int, str], ...]
    """(line, heading) of its sections."""
    sources: tuple[Cited, ...] = ()
    problems: tuple[str, ...] = ()
    """Why kopt does not use it; empty where it does."""


def listed(engine: Engine) -> Mapping[str, Mapping[str, list[Listed]]]:
    """Wiki → kind of page → its pages, by title. Pages that cannot be read are left out."""
    rows = engine.with_store(lambda store: store.titles(), vectors=False)
    found: dict[str, dict[str, list[Listed]]] = {wiki.name: {} for wiki in engine.wikis}
    for kind in (*HEADINGS, "note"):
        for wiki, path, of, title, confidence in rows:
            if of == kind and wiki in found:
                name = HEADINGS.get(kind, "Notes")
                found[wiki].setdefault(name, []).append(Listed(wiki, path, visible(title), confidence))
    for kinds in found.values():
        for pages in kinds.values():
            pages.sort(key=lambda page: (page.title.casefold(), page.path))
    return found


def rendered(engine: Engine, name: str) -> Rendered:
    """The page that `name` is the address of, without its ending. Raises `UsageError` (`not_found`)."""
    files = {
        file_of(wiki.name, file.path).removesuffix(".html"): (wiki, file.path)
        for wiki in engine.wikis
        for file in wiki.files()
    }
    if name not in files:
        near = nearest_pages(Wikis(engine.wikis), name)
        hint = f"Did you mean {', '.join(f'{one}.md:L1' for one in near)}?" if near else "The list has every page."
        raise UsageError(f"no page {visible(name)[:200]}", code="not_found", hint=hint)
    wiki, path = files[name]
    page = engine.library.page(wiki.name, path)
    if not isinstance(page, Page):
        return _plain(engine, wiki, path, [] if page is None else [f"line {p.line}: {p.message}" for p in page])
    known = {(other.name, file) for other, file in files.values()}
    pictures = _pictures(wiki, page)
    sizes = {place: size for place, size in pictures.items() if size is not None}
    made = PageHtml(page, Addresses(page, known, pictures), sizes)
    body = made.body()
    if "<h1" not in body:
        body = f"<h1>{escape(visible(page.meta.title))}</h1>{body}"
    body = re.sub(r'<pre>|<div class="table">', lambda found: found[0][:-1] + ' tabindex="0">', body)
    reviewed = getattr(page.meta, "reviewed", None)
    about = [str(page.meta.confidence), *([f"reviewed {reviewed}"] if reviewed else [])]
    contents = [
        (section.line_start, plain_text(visible(section.heading)))
        for section in page.sections
        if section.place and section.heading != page.meta.title
    ]
    sources = [
        Cited(one.id, visible(one.title), one.kind, str(one.accessed), made.urls.get(one.id) or "")
        for one in page.meta.sources
    ]
    kind = HEADINGS.get(page.meta.kind, "Notes")
    return Rendered(
        wiki.name,
        path,
        visible(page.meta.title),
        kind,
        tuple(about),
        body,
        made.rest(),
        tuple(contents),
        tuple(sources),
    )


def _plain(engine: Engine, wiki: Wiki, path: str, problems: list[str]) -> Rendered:
    """A page that kopt does not read, line by line."""
    lines = engine.library.lines(wiki.name, path)
    if lines is None:
        raise UsageError(f"{wiki.name}/{path} cannot be read", code="not_found", hint="Check its permissions.")
    shown = "\n".join(
        line(n, escape(text if text.isprintable() else visible(text))) for n, text in enumerate(lines, start=1)
    )
    body = f'<h1>{escape(visible(path))}</h1><pre class="plain" tabindex="0">{shown}</pre>'
    return Rendered(wiki.name, path, visible(path), "", (), body, "", (), (), tuple(map(visible, problems)))


def _pictures(wiki: Wiki, page: Page) -> dict[tuple[str, str], tuple[int, int] | None]:
    """(wiki, path) of each picture that the page shows → its size; None where it does not state one."""
    addresses = Addresses(page, (), ())
    found: dict[tuple[str, str], tuple[int, int] | None] = {}
    for _, target in links(page):
        if target.lower().endswith(PICTURES) and ":" not in target and not target.startswith("/"):
            path = addresses.path_of(target)
            data = read_picture(wiki, path) if not path.startswith("../") else ""
            if isinstance(data, bytes):
                found[wiki.name, path] = svg_size(data) if path.endswith(".svg") else None
    return found
