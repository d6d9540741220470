"""Rules on sources: references, footnotes, sources and their record belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kbs.evidence.checking import plain_text
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line, text_lines
from wiki.page import Page

_REFERENCE = re.compile(r"\[\^(?P<label>[^\]\s]+)\]")
_DEFINITION = re.compile(r"^\s{0,3}\[\^(?P<label>[^\]\s]+)\]:\s*(?P<source>[^\s,:;]*)")


@rule("footnote")
def footnote(view: WikiView) -> Iterator[Finding]:
    """Define every footnote once, and refer to it.

    Checks for references without a definition, and definitions without a reference. The reader reports a label that
    is defined twice.

    Why: a sentence whose footnote is missing has no source.

    Example: `… 64 warps.[^guide]` on a page without a line `[^guide]: …`.
    """
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


@rule("undefined-source")
def undefined_source(view: WikiView) -> Iterator[Finding]:
    """Begin every footnote with a source id of the front matter.

    Checks footnotes; the reader checks source cells of tables.

    Why: the id connects a sentence to the document, its kind and the date it was accessed.

    Example: `[^a]: guide, section 3` where no source has the id `guide`.
    """
    for page in view.pages:
        ids = {source.id for source in page.meta.sources}
        for label, number in page.footnotes.items():
            match = _DEFINITION.match(page.lines[number - 1])
            if match and match["source"] not in ids and match["source"].rstrip(".") not in ids:
                message = f"the footnote [^{label}] begins with {match['source']!r}, which is not a source of the page"
                yield Finding(page.path, number, message)


@rule("unused-source")
def unused_source(view: WikiView) -> Iterator[Finding]:
    """List only sources that the page uses.

    Checks that a footnote or the last cell of a table row names each source of the front matter.

    Why: an unused source suggests evidence that the page does not have.

    Example: a source `whitepaper` that no footnote mentions.
    """
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


@rule("sources-record")
def sources_record(view: WikiView) -> Iterator[Finding]:
    """Record every source of every page.

    Checks that the record of sources, where one is given, has a row for each source of each page.

    Why: the record says under which terms a source may be quoted.

    Example: a new source in the front matter, and no row in `docs/sources.md`.
    """
    if view.sources_record is None:
        return
    recorded = _rows(view.sources_record)
    for page in view.pages:
        for source in page.meta.sources:
            if (page.meta.id, source.id) not in recorded:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{view.sources_record.name} has no row for {source.id}")


def _rows(record: Path) -> set[tuple[str, str]]:
    """(page id, source id) of every table row; nothing if the file cannot be read."""
    try:
        text = record.read_text("utf-8", "replace")
    except OSError:
        return set()
    rows = (re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.splitlines() if line.startswith("|"))
    return {(plain_text(row[0]).removesuffix(".md"), plain_text(row[1])) for row in rows if len(row) > 1}
