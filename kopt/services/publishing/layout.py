"""What stands around the text of a page: head, navigation and foot. Every text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from kopt.services.publishing.addresses import ASSETS, HOME, relative

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
"""Nothing but files of this site is fetched, and no script that stands in a page runs."""

FILES = ("site.css", "site.js", "icon.svg")
"""What every page loads; they stand in the folder `assets` beside this file."""


@dataclass(frozen=True)
class Link:
    """A link to a file of the site, perhaps to an anchor in it."""

    title: str
    file: str
    anchor: str = ""
    here: bool = False

    def html(self, start: str) -> str:
        """As it stands in the file `start`."""
        current = ' aria-current="page"' if self.here else ""
        return f'<a href="{escape(relative(start, self.file) + self.anchor)}"{current}>{escape(self.title)}</a>'


@dataclass(frozen=True)
class Frame:
    """A page of the site but for its text."""

    file: str
    title: str
    trail: Sequence[Link] = ()
    beside: Sequence[tuple[str, Sequence[Link]]] = ()
    """Heading and links of each group of the navigation."""
    contents: Sequence[tuple[str, str]] = ()
    """Title and anchor of each section."""
    cited: str = ""
    """What citations of this page begin with."""

    def html(self, body: str) -> bytes:
        """The whole file."""
        start = self.file
        assets = {name: escape(relative(start, f"{ASSETS}/{name}")) for name in FILES}
        root = escape(relative(start, HOME).removesuffix(HOME))
        trail = " <span>/</span> ".join(link.html(start) for link in (Link("kopt", HOME), *self.trail))
        groups = "".join(
            f"<details{' open' if any(link.here for link in links) else ''}><summary>{escape(title)}</summary>"
            f"<ul>{_items(link.html(start) for link in links)}</ul></details>"
            if len(links) > 1
            else f"<p>{links[0].html(start)}</p>"
            for title, links in self.beside
        )
        sections = _items(f'<a href="{escape(anchor)}">{escape(title)}</a>' for title, anchor in self.contents)
        page = f"""<!doctype html>
<html lang="en" data-root="{root}" data-cited="{escape(self.cited)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(self.title)}</title>
<link rel="stylesheet" href="{assets["site.css"]}">
<link rel="icon" href="{assets["icon.svg"]}">
<script src="{assets["site.js"]}" defer></script>
</head>
<body>
<a class="skip" href="#kopt-main">Skip to the text</a>
<header><nav class="trail">{trail}</nav>
<div role="search"><input id="kopt-search" type="search" autocomplete="off" spellcheck="false" aria-label="Search"
 placeholder="Search, or paste a citation  ( / )"><div id="kopt-found" aria-live="polite" hidden></div></div></header>
<div class="columns{"" if groups else " wide"}">
{f'<nav class="kinds" aria-label="Pages">{groups}</nav>' if groups else ""}
<main id="kopt-main">
{body}
</main>
{f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{sections}</ul></nav>' if sections else ""}
</div>
</body>
</html>
"""
        return page.encode()


def _items(links: Iterable[str]) -> str:
    return "".join(f"<li>{link}</li>" for link in links)
