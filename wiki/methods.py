"""Where methods stand: each has a page of its own, or a row of a page that says what there is to say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from kbs.evidence.table_rows import MethodRow
from wiki.library import Wiki
from wiki.page import Page, Problem

_STATED = re.compile(rb"^kind: method\b|^\|\s*method\s*\|\s*title\s*\|", re.MULTILINE | re.IGNORECASE)
"""What the file of a page that states a method has."""


class _Library(Protocol):
    """Wikis by name, whose pages are read once."""

    @property
    def all(self) -> dict[str, Wiki]: ...

    def page(self, wiki: str, path: str) -> Page | list[Problem] | None: ...


def methods_of(page: Page) -> tuple[MethodRow, ...]:
    """The methods that a page states: one by its front matter, or those of its rows."""
    meta = page.meta
    if page.method is None:
        return page.methods
    facts = (meta.features, meta.triggers, meta.conflicts, meta.complements) if page.chosen else ((), (), (), ())
    axis, priority = (meta.axis, meta.priority) if page.chosen else (None, None)
    return (
        MethodRow(page.method, meta.title, axis, priority, meta.architectures, meta.languages, *facts, 1, meta.defect),
    )


def method_pages(library: _Library) -> Iterator[Page]:
    """Every page that states a method; one of a later wiki takes the place of an earlier one's of the same path."""
    found: dict[str, Page] = {}
    for name, wiki in library.all.items():
        for file in wiki.files():
            if _STATED.search(wiki.read(file.path) or b""):
                page = library.page(name, file.path)
                if isinstance(page, Page) and methods_of(page):
                    found[file.path] = page
    yield from found.values()
