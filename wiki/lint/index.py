"""The index lists every page, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wiki.index_page import is_generated, render_index
from wiki.library import INDEX_PAGE
from wiki.lint.anchors import target_path
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView
from wiki.reader import split_lines

_LINK = re.compile(r"\]\((?P<target>[^)\s#]+\.md)(?:#[^)\s]*)?\)")


@rule("index-entry", "The wiki's README.md lacks a page, lists one that does not exist, or is not as generated.")
def index_entry(view: WikiView) -> Iterator[Finding]:
    """Every difference between the index and the wiki; `--fix` writes an index that was generated, or none yet."""
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
        yield Finding(INDEX_PAGE, 1, "the index is out of date; `kopt wiki lint --fix` writes it anew", error=False)
