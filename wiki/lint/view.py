"""A wiki as the lint rules see it: every file read once."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kbs.evidence.citation import MAX_LINE
from kbs.evidence.vocabulary import Vocabulary
from wiki.library import INDEX_PAGE, Wiki, products_of
from wiki.page import Page, Problem
from wiki.reader import MAX_PAGE_BYTES, read_page


@dataclass(frozen=True)
class WikiView:
    """All pages of one wiki, and what they are checked against."""

    wiki: Wiki
    vocabulary: Vocabulary
    """The vocabulary, with the products that the wiki's own hardware pages declare."""
    today: datetime.date
    texts: dict[str, str]
    """Every file that is UTF-8 text of a page's size, as it is on disk, by path; the index page is among them."""
    paths: frozenset[str]
    """Every page file, a broken one too."""
    pages: tuple[Page, ...]
    broken: tuple[Problem, ...]
    """Why pages could not be read."""
    sources_record: Path | None


def read_wiki(wiki: Wiki, vocabulary: Vocabulary, today: datetime.date, sources_record: Path | None = None) -> WikiView:
    """Read every file of a wiki."""
    texts: dict[str, str] = {}
    pages: list[Page] = []
    broken: list[Problem] = []
    paths = [file.path for file in wiki.files()]
    revision = wiki.revision
    for path in (*paths, INDEX_PAGE):
        data = wiki.read(path)
        if data is None:
            if path != INDEX_PAGE:
                broken.append(Problem(path, 1, "unreadable", "the file cannot be read; check its permissions"))
            continue
        # A larger file is read in part only: it must not be taken for the whole.
        if len(data) <= MAX_PAGE_BYTES:
            with contextlib.suppress(UnicodeDecodeError):
                texts[path] = data.decode("utf-8")
        if path == INDEX_PAGE:
            continue
        page = read_page(wiki.name, path, data, revision, vocabulary)
        if isinstance(page, Page):
            pages.append(page)
        else:
            broken += page
    known = vocabulary.with_products(products_of(pages, vocabulary))
    return WikiView(wiki, known, today, texts, frozenset(paths), tuple(pages), tuple(broken), sources_record)


def front_matter_line(page: Page, key: str, value: str = "") -> int:
    """The line of `key` in the front matter, or below it the first line that has `value`."""
    start = 1
    for number, line in enumerate(page.lines[: page.body_start - 1], start=1):
        if re.match(rf"{re.escape(key)}\s*:", line):
            start = number
            break
    listed = re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w-])")
    for number in range(start, page.body_start - 1):
        line = page.lines[number - 1]
        if number > start and re.match(r"\w+\s*:", line):
            break
        if value and listed.search(line):
            return number
    return start


_FENCE = re.compile(
    r"^(?P<marks>(?:\s|>|[-*+]\s|\d{1,9}[.)]\s)*)(?P<fence>`{3,}|~{3,})\s*+(?P<info>[^\s`]*)(?:\s[^`]*)?$"
)


@dataclass(frozen=True)
class CodeBlock:
    """A fenced or indented code block, in a list too."""

    info: str
    """Its language as written; empty for none."""
    line_start: int
    """The line of its first line of code."""
    code: tuple[str, ...]


def _fences(page: Page) -> Iterator[tuple[int, int, str]]:
    """(opening line, closing line, language) of every code block."""
    for block in page.blocks:
        if block.kind == "table":
            continue
        if block.kind == "code" and not _FENCE.match(page.lines[block.line_start - 1]):
            yield block.line_start - 1, block.line_end + 1, ""
            continue
        opened, fence, info = 0, "", ""
        for number in range(block.line_start, block.line_end + 1):
            line = page.lines[number - 1]
            match = _FENCE.match(line)
            if not fence and match:
                opened, fence, info = number, match["fence"], match["info"]
            elif fence and match and match["fence"].startswith(fence) and not match["info"]:
                yield opened, number, info
                fence = ""
        if fence:
            yield opened, block.line_end + 1, info


def code_blocks(page: Page) -> Iterator[CodeBlock]:
    """Every code block of the page."""
    for opened, closed, info in _fences(page):
        yield CodeBlock(info, opened + 1, tuple(page.text(opened + 1, closed - 1)))


def text_lines(page: Page) -> dict[int, str]:
    """Every line of the page's body that is not code, by number: headings, prose, tables and footnotes.

    What stands between backticks is replaced by blanks. Lines longer than a citation may name are left out.
    """
    code = {number for opened, closed, _ in _fences(page) for number in range(opened, closed + 1)}
    return {
        number: re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", lambda span: " " * len(span[0]), line)
        for number, line in enumerate(page.lines, start=1)
        if number >= page.body_start and number not in code and len(line) <= MAX_LINE
    }


def prose_lines(page: Page) -> dict[int, str]:
    """The lines of `text_lines` that are sentences: no headings, tables or footnote definitions."""
    prose = {n for block in page.blocks if block.kind == "text" for n in range(block.line_start, block.line_end + 1)}
    return {
        number: line
        for number, line in text_lines(page).items()
        if number in prose and line.strip() and not line.lstrip().startswith(("|", "<!--"))
    }


_MARKERS = re.compile(r"^(?:\s|>|[-*+]\s|\d{1,3}[.)]\s)*[*_]{0,2}")


def is_derived(line: str) -> bool:
    """Whether a line shows how its numbers were calculated."""
    return _MARKERS.sub("", line).startswith("Derived:")
