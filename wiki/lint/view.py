"""A wiki as the lint rules see it: every file read once."""

from __future__ import annotations

import contextlib
import datetime
import gc
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from kbs.evidence.citation import MAX_LINE
from kbs.evidence.vocabulary import Vocabulary
from wiki.library import INDEX_PAGE, Told, Wiki, products_of
from wiki.page import MAX_PAGE_BYTES, Page, Problem, once_a_page
from wiki.reader import read_page


@dataclass(frozen=True)
class WikiView:
    """All pages of one wiki, and what they are checked against."""

    wiki: Wiki
    wiki_vocabulary: Vocabulary
    """The vocabulary that the pages were read with."""
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
    first: bool = True
    """Whether the wiki's first page is among the pages."""

    @cached_property
    def lists_asks(self) -> bool:
        """Whether a section of the wiki lists asks."""
        return any(section.asks_line for page in self.pages for section in page.sections)

    def only(self, paths: Collection[str]) -> WikiView:
        """Some pages as rules that look at one page at a time see them."""
        near = replace(
            self,
            texts={path: self.texts[path] for path in paths if path in self.texts},
            pages=tuple(page for page in self.pages if page.path in paths),
            broken=tuple(problem for problem in self.broken if problem.path in paths),
        )
        vars(near)["lists_asks"] = self.lists_asks
        return near

    def changed(self, files: Mapping[str, bytes]) -> WikiView:
        """The wiki with other contents of some files, or with further ones; the others are not read again."""
        terms = self.wiki_vocabulary
        read = _read(self.wiki.name, files, "", terms)
        pages = {page.path: page for page in self.pages if page.path not in files} | {
            page.path: page for page in read[1]
        }
        return replace(
            self,
            vocabulary=terms.with_products(products_of(pages.values(), terms)),
            texts={path: text for path, text in self.texts.items() if path not in files} | read[0],
            paths=self.paths | {path for path in files if path != INDEX_PAGE},
            pages=tuple(pages[path] for path in sorted(pages)),
            broken=(*(problem for problem in self.broken if problem.path not in files), *read[2]),
        )


_Read = tuple[dict[str, str], list[Page], list[Problem]]


def _read(
    name: str, files: Mapping[str, bytes], revision: str, vocabulary: Vocabulary, told: Told | None = None
) -> _Read:
    """Texts, pages, and why pages could not be read."""
    texts: dict[str, str] = {}
    pages: list[Page] = []
    broken: list[Problem] = []
    for number, (path, data) in enumerate(files.items()):
        if told is not None:
            told(number, len(files))
        # A larger file is read in part only: it must not be taken for the whole.
        if len(data) <= MAX_PAGE_BYTES:
            with contextlib.suppress(UnicodeDecodeError):
                texts[path] = data.decode("utf-8")
        if path == INDEX_PAGE:
            continue
        page = read_page(name, path, data, revision, vocabulary)
        if isinstance(page, Page):
            pages.append(page)
        else:
            broken += page
    return texts, pages, broken


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Look for no garbage meanwhile: pages are many small objects that stay, and it takes a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def read_wiki(
    wiki: Wiki,
    vocabulary: Vocabulary,
    today: datetime.date,
    sources_record: Path | None = None,
    told: Told | None = None,
    paths: Sequence[str] | None = None,
) -> WikiView:
    """Read every file of a wiki, or those at some paths."""
    if paths is None:
        paths = [*(file.path for file in wiki.files()), INDEX_PAGE]
    with without_collecting():
        files = {path: data for path in paths if (data := wiki.read(path)) is not None}
        texts, pages, broken = _read(wiki.name, files, "", vocabulary, told)
    paths = [path for path in paths if path != INDEX_PAGE]
    lost = "the file cannot be read; check its permissions"
    broken += [Problem(path, 1, "unreadable", lost) for path in paths if path not in files]
    known = vocabulary.with_products(products_of(pages, vocabulary))
    return WikiView(
        wiki, vocabulary, known, today, texts, frozenset(paths), tuple(pages), tuple(broken), sources_record
    )


def stands_in(text: str, name: str) -> bool:
    """Whether a text has a name by itself, and not as a part of another."""
    at = text.find(name)
    while at >= 0:
        before, after = text[max(at - 1, 0) : at], text[at + len(name) :][:1]
        if not (before.isalnum() or before in ("_", ".", "-")) and not (after.isalnum() or after in ("_", "-")):
            return True
        at = text.find(name, at + 1)
    return False


def front_matter_line(page: Page, key: str, value: str = "") -> int:
    """The line of `key` in the front matter, or below it the first line that has `value`."""
    start = 1
    for number, line in enumerate(page.lines[: page.body_start - 1], start=1):
        if line.startswith(key) and line[len(key) :].lstrip().startswith(":"):
            start = number
            break
    for number in range(start, page.body_start - 1):
        line = page.lines[number - 1]
        if number > start and re.match(r"\w+\s*:", line):
            break
        if value and stands_in(line, value):
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


@once_a_page
def _fences(page: Page) -> list[tuple[int, int, str]]:
    """(opening line, closing line, language) of every code block."""
    return list(_found_fences(page))


def _found_fences(page: Page) -> Iterator[tuple[int, int, str]]:
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


_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")


@once_a_page
def text_lines(page: Page) -> Mapping[int, str]:
    """Every line of the page's body that is not code or asks, by number: headings, prose, tables and footnotes.

    What stands between backticks is replaced by blanks. Lines longer than a citation may name are left out.
    """
    code = {number for opened, closed, _ in _fences(page) for number in range(opened, closed + 1)}
    asks = (block for block in page.blocks if block.kind == "asks")
    code |= {number for block in asks for number in range(block.line_start, block.line_end + 1)}
    return {
        number: _CODE.sub(lambda span: " " * len(span[0]), line) if "`" in line else line
        for number, line in enumerate(page.lines, start=1)
        if number >= page.body_start and number not in code and len(line) <= MAX_LINE
    }


@once_a_page
def prose_lines(page: Page) -> Mapping[int, str]:
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
