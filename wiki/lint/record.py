"""The record of sources has a row for each source of each page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kbs.evidence.checking import plain_text
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line


@rule("sources-record", "A source of a page has no row in the record of sources.")
def sources_record(view: WikiView) -> Iterator[Finding]:
    """Every source that is not recorded, where a record is given."""
    if view.sources_record is None:
        return
    recorded = _rows(view.sources_record)
    for page in view.pages:
        for source in page.meta.sources:
            if (page.meta.id, source.id) not in recorded:
                line = front_matter_line(page, "sources", source.id)
                yield Finding(page.path, line, f"{view.sources_record.name} has no row for {source.id}")


def _rows(record: Path) -> set[tuple[str, str]]:
    """(page id, source id) of every table row; nothing where the file cannot be read."""
    try:
        text = record.read_text("utf-8", "replace")
    except OSError:
        return set()
    rows = (re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.splitlines() if line.startswith("|"))
    return {(plain_text(row[0]).removesuffix(".md"), plain_text(row[1])) for row in rows if len(row) > 1}
