"""Where things stand on the site, and which links of a page lead anywhere."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from kbs.evidence.citation import Reference, references
from wiki.library import INDEX_PAGE
from wiki.lint.rules.links import target_path
from wiki.page import Page

PICTURES = (".svg", ".png", ".jpg", ".jpeg", ".gif", ".webp")
HOME = "index.html"
ASSETS = "_"
"""The folder of style, script and search index; no wiki can have this name."""
_OUTSIDE = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)


def file_of(wiki: str, path: str) -> str:
    """The file of a page on the site: `gpu-wiki/kernel/softmax.html`; the list of a wiki's pages is its README."""
    if path.endswith(".md") and "/" not in wiki:
        return f"{wiki}/{path.removesuffix('.md')}.html"
    return f"{wiki}/{path}.html"  # of notes, of which `a.md` and `a.txt` may stand side by side


def relative(start: str, target: str) -> str:
    """The address of the file `target`, as the file `start` names it."""
    return quote(posixpath.relpath(target, posixpath.dirname(start) or "."))


def line_of(reference: Reference) -> str:
    """The anchor of a citation's lines; a script of the site marks them all."""
    end = f"-L{reference.line_end}" if reference.line_end != reference.line_start else ""
    return f"#L{reference.line_start}{end}"


@dataclass(frozen=True)
class Addresses:
    """The links of one page."""

    page: Page
    known: Container[tuple[str, str]]
    """(wiki, path) of every page of the site."""
    pictures: Container[tuple[str, str]]
    """(wiki, path) of every picture of the site."""

    @property
    def file(self) -> str:
        """The page's own file."""
        return file_of(self.page.wiki, self.page.path)

    def link(self, target: str) -> str | None:
        """What a link of the page becomes; None if it may lead nowhere: only the web, mail and this site are led to."""
        if _OUTSIDE.fullmatch(target):
            return target
        name, _, anchor = target.partition("#")
        if ":" in name or name.startswith("/"):
            return None
        there = f"#{quote(unquote(anchor))}" if anchor else ""
        if not name:
            return there or None
        path = target_path(self.page.path, name)
        if (self.page.wiki, path) in self.known or path == INDEX_PAGE:
            return relative(self.file, file_of(self.page.wiki, path)) + there
        return self.picture(target)

    def picture(self, target: str) -> str | None:
        """The address of a picture of the page's own wiki; None if it is not on the site."""
        path = self.path_of(target)
        found = (self.page.wiki, path) in self.pictures
        return relative(self.file, f"{self.page.wiki}/{path}") if found else None

    def path_of(self, target: str) -> str:
        """The path below the wiki's folder that a link leads to."""
        return target_path(self.page.path, target)

    def cited(self, text: str) -> Iterator[tuple[int, int, str]]:
        """(start, end, address) of each citation in a text whose page is on the site."""
        for start, end, reference in references(text):
            if reference.of_lines and (reference.wiki, reference.target) in self.known:
                file = file_of(reference.wiki, reference.target)
                yield start, end, relative(self.file, file) + line_of(reference)
