"""Links between pages lead to files and headings that exist."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cache
from urllib.parse import unquote

from kbs.evidence.checking import plain_text
from wiki.library import INDEX_PAGE
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, text_lines
from wiki.page import Page
from wiki.reader import links

_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(?P<title>.*?)(?:\s+#+)?\s*$")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


@rule("broken-link", "A link leads to no file of the wiki, or to no heading of its page.")
def broken_link(view: WikiView) -> Iterator[Finding]:
    """Every relative link that leads nowhere; links to other sites are not followed."""
    pages = {page.path: page for page in view.pages}

    @cache
    def anchors(path: str) -> frozenset[str]:
        return heading_slugs(pages[path])

    for page in view.pages:
        for line, target in links(page):
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


def target_path(page: str, name: str) -> str:
    """The path below the wiki's folder that a link on `page` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(name))) if name else page


def heading_slugs(page: Page) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub forms them."""
    seen: dict[str, int] = {}
    slugs: set[str] = set()
    for number in text_lines(page):
        match = _HEADING.match(page.lines[number - 1])
        if match is None:
            continue
        base = re.sub(r"[^\w\- ]", "", plain_text(match["title"]).lower()).replace(" ", "-")
        count = seen.get(base, 0)
        seen[base] = count + 1
        slugs.add(f"{base}-{count}" if count else base)
    return frozenset(slugs)
