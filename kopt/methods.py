"""Signatures of methods, as the wikis in use state them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from kbs.errors import UsageError
from kbs.records import SignatureRow
from wiki.library import Wikis
from wiki.page import Page

_KIND = b"kind: method"


@dataclass(frozen=True)
class Methods:
    """The methods that have a page, and the signatures on them."""

    ids: tuple[str, ...]
    """Every method with a page, a page without a signature too."""
    signatures: tuple[SignatureRow, ...]

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The methods that are asked about: those named, or all that have a signature.

        UsageError `method_unknown`, with the nearest known ones.
        """
        if not names:
            return sorted({row.method for row in self.signatures})
        for name in names:
            if name not in self.ids:
                near = difflib.get_close_matches(name.lower().replace("-", "_"), self.ids, n=3, cutoff=0.4)
                listed = f"The nearest known ones are {', '.join(near)}." if near else f"Known: {', '.join(self.ids)}."
                raise UsageError(f"{name!r} is no method that a wiki has a page of", code="method_unknown", hint=listed)
        return list(dict.fromkeys(names))


def read_methods(wikis: Wikis) -> Methods:
    """Read every method page; a page of a later wiki stands in place of an earlier one's of the same path."""
    pages: dict[str, Page] = {}
    for name, wiki in wikis.all.items():
        for file in wiki.files():
            if _KIND not in (wiki.read(file.path) or b""):
                continue
            page = wikis.page(name, file.path)
            if isinstance(page, Page) and page.method:
                pages[file.path] = page
    ids = sorted({page.method for page in pages.values() if page.method})
    return Methods(tuple(ids), tuple(row for page in pages.values() for row in page.signatures))
