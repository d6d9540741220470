"""Rules on links and names: everything a page refers to exists, and every name leads to one page."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

from kbs.evidence.checking import plain_text
from kbs.evidence.vocabulary import words
from wiki.index_page import first_sentence, is_generated, render_index
from wiki.library import INDEX_PAGE
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line, text_lines
from wiki.page import Page, once_a_page, split_lines
from wiki.reader import links

_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<title>.*?)(?:\s+#+)?\s*$")
_UNFINISHED = re.compile(r"\]\(\s*\)|\]\([^()]*$")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


@once_a_page
def _unfinished(page: Page) -> list[int]:
    """Lines with a link that has no target or is not closed."""
    return [number for number, text in text_lines(page).items() if "](" in text and _UNFINISHED.search(text)]


@once_a_page
def _names(page: Page) -> list[tuple[str, str, tuple[str, ...]]]:
    """Key, name and words of the title and each alias."""
    named = (("title", page.meta.title), *(("aliases", alias) for alias in page.meta.aliases))
    return [(key, name, tuple(words(name))) for key, name in named]


@once_a_page
def linked(page: Page) -> list[tuple[int, str]]:
    """Every link target of the page with its line."""
    return links(page)


@once_a_page
def heading_anchors(page: Page) -> dict[int, str]:
    """Line → anchor of each heading, as GitHub forms them."""
    seen: dict[str, int] = {}
    slugs: dict[int, str] = {}
    for number, line in text_lines(page).items():
        match = _HEADING.match(page.lines[number - 1]) if "#" in line else None
        if match is None:
            continue
        base = re.sub(r"[^\w\- ]", "", plain_text(match["title"]).lower()).replace(" ", "-")
        count = seen.get(base, 0)
        seen[base] = count + 1
        slugs[number] = f"{base}-{count}" if count else base
    return slugs


@rule("broken-link", of_page=(linked, _unfinished, heading_anchors))
def broken_link(view: WikiView) -> Iterator[Finding]:
    """Link only to files and headings that exist.

    Checks every relative link of a page: its file must be in the wiki and its heading on that page. A link without a
    target, and one that is not closed on its line, are told of too. Links to other sites are not followed.

    Why: a broken link sends readers and agents nowhere, and usually means that a page was renamed.

    Example: `[tiles](../technique/tiling.md#smem)` where `tiling.md` has no heading "smem".
    """
    pages = {page.path: page for page in view.pages}

    @cache
    def anchors(path: str) -> frozenset[str]:
        return frozenset(heading_anchors(pages[path]).values())

    for page in view.pages:
        for line, target in linked(page):
            if _ELSEWHERE.match(target):
                continue
            name, _, anchor = target.partition("#")
            path = target_path(page.path, name)
            if path.startswith("../") or name.startswith("/"):
                yield Finding(page.path, line, f"the link {target} leads out of the wiki")
            elif path not in view.paths and path != INDEX_PAGE and view.wiki.read(path) is None:
                yield Finding(page.path, line, f"the link {target} leads to no file")
            elif anchor and path in pages and unquote(anchor) not in anchors(path):
                yield Finding(page.path, line, f"{path} has no heading #{anchor}")
        for line in _unfinished(page):
            yield Finding(page.path, line, "this link has no target, or is not closed")


def target_path(page: str, name: str) -> str:
    """The path below the wiki's folder that a link on `page` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(name))) if name else page


@rule("orphan", of_page=(linked,))
def orphan(view: WikiView) -> Iterator[Finding]:
    """Link to every page from another page.

    Checks that at least one other page links to each page. Hardware pages need no link. This is a warning.

    Why: a page that nothing links to is found by search alone, and its subject is often explained twice.

    Example: `technique/swizzle.md`, which no kernel or bottleneck page mentions.
    """
    reached = {
        path
        for page in view.pages
        for _, target in linked(page)
        if (path := target_path(page.path, target.partition("#")[0])) != page.path
    }
    for page in view.pages:
        if page.meta.kind != "hardware" and page.path not in reached:
            yield Finding(page.path, front_matter_line(page, "id"), "no other page links to this page", error=False)


_LINK = re.compile(r"\]\((?P<target>[^)\s#]+\.md)(?:#[^)\s]*)?\)")


@rule("index-entry", of_page=(first_sentence,))
def index_entry(view: WikiView) -> Iterator[Finding]:
    """List every page, and no other, in the wiki's README.md.

    Checks that the index lists each page, names no missing file, and is as generated. `--fix` writes an index that was
    generated, or the first one; an index written by hand is left alone.

    Why: the index is the first page that people open.

    Example: `README.md` lists `kernel/old.md`, which was deleted.
    """
    text = view.texts.get(INDEX_PAGE)
    if text is None:
        if view.wiki.read(INDEX_PAGE) is not None:
            yield Finding(INDEX_PAGE, 1, "the index is too large, or not UTF-8 text")
        elif view.pages:
            yield Finding(INDEX_PAGE, 1, "the wiki has no index; `kopt wiki lint --fix` writes it")
        return
    listed = {
        target_path(INDEX_PAGE, match["target"]): number
        for number, line in enumerate(split_lines(text), start=1)
        for match in _LINK.finditer(line)
        if "://" not in match["target"]
    }
    missing = [page.path for page in view.pages if page.path not in listed]
    gone = {path: number for path, number in listed.items() if path not in view.paths and view.wiki.read(path) is None}
    for path in missing:
        yield Finding(INDEX_PAGE, 1, f"the index lacks {path}")
    for path, number in gone.items():
        yield Finding(INDEX_PAGE, number, f"the index lists {path}, which does not exist")
    expected = render_index(view.wiki.name, view.pages)
    if not missing and not gone and is_generated(text) and split_lines(text) != split_lines(expected):
        yield Finding(INDEX_PAGE, 1, "the index is out of date; `kopt wiki lint --fix` rewrites it", error=False)


@rule("duplicate", of_page=(_names,))
def duplicate(view: WikiView) -> Iterator[Finding]:
    """Give every title, alias and product to one page only.

    Checks that no two pages share a title or alias, that no product has two pages, and that no alias names another
    product.

    Why: a name in a question must lead to one page, or the answer depends on the order of files.

    Example: the alias `H100` on both `hardware/h100-sxm.md` and `hardware/h100-pcie.md`.
    """
    named: dict[tuple[str, ...], Page] = {}
    described: dict[str, Page] = {}
    for page in view.pages:
        for key, name, said in _names(page):
            first = named.setdefault(said, page)
            if first is not page:
                line = front_matter_line(page, key, name)
                yield Finding(page.path, line, f"{name!r} is a name of {first.path} too")
            known = view.vocabulary.resolve("product", name) if key == "aliases" else ()
            if others := [id for id in known if id != page.product]:
                line = front_matter_line(page, key, name)
                yield Finding(page.path, line, f"the alias {name!r} is a name of the product {', '.join(others)}")
        if page.product:
            first = described.setdefault(page.product, page)
            if first is not page:
                line = front_matter_line(page, "product" if page.meta.product else "id")
                yield Finding(page.path, line, f"the product {page.product} is described by {first.path} too")
