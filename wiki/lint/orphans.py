"""A page can be reached from another page."""

from __future__ import annotations

from collections.abc import Iterator

from wiki.lint.anchors import target_path
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line
from wiki.reader import links


@rule("orphan", "No other page links to the page (hardware pages need no link).")
def orphan(view: WikiView) -> Iterator[Finding]:
    """Every page that nothing leads to, as a warning."""
    reached = {
        path
        for page in view.pages
        for _, target in links(page)
        if (path := target_path(page.path, target.partition("#")[0])) != page.path
    }
    for page in view.pages:
        if page.meta.kind != "hardware" and page.path not in reached:
            yield Finding(page.path, front_matter_line(page, "id"), "no other page links to this page", error=False)
