"""What the reader of a page reports: it is passed on under the reader's own rule ids."""

from __future__ import annotations

from collections.abc import Iterator

from wiki.lint.view import WikiView
from wiki.page import Problem

SUMMARIES = {
    "encoding": "The file is not UTF-8 text.",
    "front-matter": "The front matter is missing, is not YAML, or does not have the form of docs/wiki-format.md.",
    "markdown": "The page cannot be read as Markdown.",
    "page-size": "The file is larger than a page may be.",
    "table-row": "A row of a table that kopt reads cannot be used.",
    "unit": "A unit is not in the vocabulary or does not fit the metric.",
    "unreadable": "The file cannot be opened.",
}


def problems(view: WikiView) -> Iterator[Problem]:
    """Problems of broken pages, and of single rows of the others."""
    yield from view.broken
    for page in view.pages:
        yield from page.problems
