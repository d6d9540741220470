"""Rules on sources: references, footnotes, sources and their record belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kbs.evidence.checking import plain_text
from wiki.lint.rule import Finding, rule
from wiki.lint.rules.text import PLACEHOLDER
from wiki.lint.view import WikiView, front_matter_line, stands_in, text_lines
from wiki.page import Page

_REFERENCE = re.compile(r"\[\^(?P<label>[^\]\s]+)\]")
_DEFINITION = re.compile(r"^\s{0,3}\[\^(?P<label>[^\]\s]+)\]:\s*(?P<source>[^\s,:;]*)")


@rule("footnote", alone=True)
def footnote(view: WikiView) -> Iterator[Finding]:
    """Define every footnote once, and refer to it.

    Checks for references without a definition, definitions without a reference, and definitions that name a source
    and no place in it. The reader reports a label that is defined twice.

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
            if not _DEFINITION.sub("", page.lines[number - 1]).strip(" .,:;"):
                yield Finding(page.path, number, f"the footnote [^{label}] names no place in its source")


@rule("undefined-source", alone=True)
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


@rule("unused-source", alone=True)
def unused_source(view: WikiView) -> Iterator[Finding]:
    """List only sources that the page uses.

    Checks that a footnote or the last cell of a table row names each source of the front matter.

    Why: an unused source suggests evidence that the page does not have.

    Example: a source `whitepaper` that no footnote mentions.
    """
    for page in view.pages:
        cited = "\n".join(_evidence(page))
        words = set(cited.split())
        for source in page.meta.sources:
            if source.id in words or stands_in(cited, source.id):
                continue
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


_NOT_THEIRS = re.compile(
    r"https?://(?:github\.com|gitlab\.com|raw\.githubusercontent\.com)/(?!(?:nvidia|nv-|amd|rocm|gpuopen|radeonopen)[\w-]*/)",
    re.IGNORECASE,
)
"""Repositories of others than NVIDIA and AMD."""
_AT_HOME = ("vendor-doc", "vendor-repository")
_ADDRESS = re.compile(r"https?://[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#]\S*)?|(?![\w+.-]*:/|\w+//)[\w./#-]+")


@rule("source-entry", alone=True)
def source_entry(view: WikiView) -> Iterator[Finding]:
    """List each source once, with an address that can be opened and the kind that it has.

    Checks that ids are not repeated, that an address is one of the web or a path, and that a `vendor-doc` or
    `vendor-repository` on GitHub or GitLab is in a repository of NVIDIA's or AMD's own.

    Why: what is called verified rests on the kind, and the reader opens the address.

    Example: `kind: vendor-repository` for a repository of somebody else.
    """
    for page in view.pages:
        seen: set[str] = set()
        for source in page.meta.sources:
            wrong = ""
            if source.url and PLACEHOLDER not in source.url and not _ADDRESS.fullmatch(source.url):
                wrong = f"the address of {source.id} cannot be opened: {source.url[:80]}"
            elif source.kind in _AT_HOME and _NOT_THEIRS.match(source.url):
                wrong = f"{source.id} is called a {source.kind}, and lies in a repository of somebody else"
            if source.id in seen:
                wrong = f"two sources have the id {source.id}"
            seen.add(source.id)
            if wrong:
                yield Finding(page.path, front_matter_line(page, "sources", source.id), wrong)


@rule("sources-record", alone=True)
def sources_record(view: WikiView) -> Iterator[Finding]:
    """Record every source of every page.

    Checks that the record of sources, where one is given, has a row for each source of each page, with its address.

    Why: the record says under which terms a source may be quoted.

    Example: a new source in the front matter, and no row in `docs/sources.md`.
    """
    if view.sources_record is None:
        return
    recorded = _rows(_bytes(view.sources_record))
    for page in view.pages:
        for source in page.meta.sources:
            if (page.meta.id, source.id) not in recorded:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{view.sources_record.name} has no row for {source.id}")
            elif recorded[page.meta.id, source.id] not in ("", source.url):
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{view.sources_record.name} has another address of {source.id}")


def _bytes(record: Path) -> bytes:
    """What the record says; nothing if it cannot be read."""
    try:
        return record.read_bytes()
    except OSError:
        return b""


@lru_cache(maxsize=1)
def _rows(record: bytes) -> dict[tuple[str, str], str]:
    """The address by (page id, source id) of every table row."""
    text = record.decode("utf-8", "replace")
    rows = (re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.splitlines() if line.startswith("|"))
    return {
        (plain_text(row[0]).removesuffix(".md"), plain_text(row[1])): row[2].strip() if len(row) > 2 else ""
        for row in rows
        if len(row) > 1
    }
