"""References, footnotes and sources belong together: each is defined, and each is used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line, text_lines
from wiki.page import Page

_REFERENCE = re.compile(r"\[\^(?P<label>[^\]\s]+)\]")
_DEFINITION = re.compile(r"^\s{0,3}\[\^(?P<label>[^\]\s]+)\]:\s*(?P<source>[^\s,:;]*)")


@rule("footnote", "A footnote is referred to and not defined, defined and not referred to, or defined twice.")
def footnote(view: WikiView) -> Iterator[Finding]:
    """Every label that has only one of the two."""
    for page in view.pages:
        used: set[str] = set()
        for number, line in text_lines(page).items():
            for match in _REFERENCE.finditer(_DEFINITION.sub("", line)):
                used.add(match["label"])
                if match["label"] not in page.footnotes:
                    yield Finding(page.path, number, f"the footnote [^{match['label']}] is not defined")
        for label, number in page.footnotes.items():
            if label not in used:
                yield Finding(page.path, number, f"nothing refers to the footnote [^{label}]")


@rule("undefined-source", "A footnote or a source cell begins with no source id of the front matter.")
def undefined_source(view: WikiView) -> Iterator[Finding]:
    """Every footnote that names no source of its page; cells are reported by the reader."""
    for page in view.pages:
        ids = {source.id for source in page.meta.sources}
        for label, number in page.footnotes.items():
            match = _DEFINITION.match(page.lines[number - 1])
            if match and match["source"] not in ids and match["source"].rstrip(".") not in ids:
                message = f"the footnote [^{label}] begins with {match['source']!r}, which is no source of the page"
                yield Finding(page.path, number, message)


@rule("unused-source", "A source of the front matter is used by no footnote and no table.")
def unused_source(view: WikiView) -> Iterator[Finding]:
    """Every source that nothing on its page is taken from."""
    for page in view.pages:
        cited = "\n".join(_evidence(page))
        for source in page.meta.sources:
            if not re.search(rf"(?<![\w.-]){re.escape(source.id)}(?![\w-])", cited):
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"nothing on the page refers to the source {source.id}")


def _evidence(page: Page) -> Iterator[str]:
    """Footnotes, and the last cells of table rows."""
    for block in page.blocks:
        for line in page.text(block.line_start, block.line_end):
            if block.kind == "footnote":
                yield line
            elif block.kind == "table":
                yield line.rstrip().removesuffix("|").rpartition("|")[2]
