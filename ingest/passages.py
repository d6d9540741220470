"""Cuts a page into passages by section, with exact lines; tables and code blocks stay whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kbs.evidence.checking import plain_text
from kbs.evidence.citation import Citation, lines_hash
from kbs.evidence.passage import Passage, passage_id
from wiki.page import Block, Page

MAX_WORDS = 180
"""Words and marks of a passage; the default model reads 256 word pieces, title and headings included."""


def passages_of(page: Page, revision: str) -> list[Passage]:
    """The passages of a page, in its order."""
    repeats: Counter[str] = Counter()
    made: list[Passage] = []
    for place, start, end in _spans(page):
        lines = page.text(start, end)
        text = "\n".join(lines)
        section = page.sections[place]
        headings = tuple(h for h in section.trail if h != page.meta.title)
        embedded = "\n".join(filter(None, [" > ".join([page.meta.title, *headings]), plain_text(text)]))
        id = passage_id(page.wiki, page.path, embedded, repeats[embedded])
        repeats[embedded] += 1
        citation = Citation(page.wiki, page.path, start, end, revision, lines_hash(lines), text)
        before = made[-1] if made and made[-1].place == place else None
        gap = _gap(page, before.citation.line_end + 1, start - 1) if before else ""
        made.append(
            Passage(
                *(id, page.meta.id, page.meta.title, headings, text, embedded, citation),
                *(place, section.asks, gap),
            )
        )
    return made


def _gap(page: Page, start: int, end: int) -> str:
    lines = page.text(start, end)
    return "\n".join(lines) if any(line.strip() for line in lines) else ""


def _spans(page: Page) -> Iterator[tuple[int, int, int]]:
    """(place of the section, first line, last line) of every passage: whole blocks of a section, up to `MAX_WORDS`,
    with nothing but blank lines between them."""
    place = start = end = count = 0
    for block in page.blocks:
        if block.kind in ("footnote", "asks"):
            if start:
                yield place, start, end
            start = count = 0
            continue
        for first, last in _pieces(page, block):
            size = _size(page, first, last)
            if start and (block.place != place or count + size > MAX_WORDS):
                yield place, start, end
                start = count = 0
            if not start:
                start, place = first, block.place
            end, count = last, count + size
    if start:
        yield place, start, end


def _pieces(page: Page, block: Block) -> Iterator[tuple[int, int]]:
    """A block, or its parts where it is prose that is too long: cut between lines."""
    if block.kind != "text" or _size(page, block.line_start, block.line_end) <= MAX_WORDS:
        yield block.line_start, block.line_end
        return
    for line in range(block.line_start, block.line_end + 1):
        yield line, line


def _size(page: Page, first: int, last: int) -> int:
    return len(re.findall(r"\w+|[^\w\s]", plain_text("\n".join(page.text(first, last)))))
