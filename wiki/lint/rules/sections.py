"""Rules on sections: a heading that says what is answered, asks, a source, and no more than is read at once.

A wiki in which no section lists asks gets one warning in place of a finding for each of its sections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from kbs.evidence.checking import plain_text
from kbs.evidence.citation import find_citations
from kbs.evidence.passage import names_subject, standing_alone
from wiki.asks import ASK_WRITTEN, parts_of
from wiki.lint.rule import Finding, rule
from wiki.lint.rules.text import PLACEHOLDER
from wiki.lint.view import WikiView, is_derived, prose_lines, text_lines
from wiki.page import Page, PageSection, once_a_page
from wiki.reader import ASKS
from wiki.tables import DISAGREEMENT, read_by_row

LEAST_ASKS, MOST_ASKS = 3, 8
MOST_SENTENCES = 10
_COMMENT_LINES = 40
"""Lines below a heading in which its comment of asks is looked for."""
_NAMED = ("specifications", "cost", "measured", "what to try")
"""Headings of sections whose table is read by row: the whole wiki names them alike."""
_OF_HARDWARE = (DISAGREEMENT, "not published")
"""Headings of hardware pages that stand as they are."""
_REFERENCE = re.compile(r"\[\^[^\]\s]+\]")
_SOURCES = re.compile(r"\|\s*source\s*\|?\s*$", re.IGNORECASE)
_NO_BLANK = re.compile(r"\s{0,3}#{1,6}[^#\s]")
_NEXT = re.compile(r"[a-z)]\.(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)(?:\[\^[^\]]+\])* +[A-Z]")
_SENTENCE = 60
"""Characters from which on a sentence says enough to be repeated."""
_WORD = re.compile(r"[^\W_]+")


@once_a_page
def prose_sections(page: Page) -> list[PageSection]:
    """Its sections of prose: not those without text, nor those of tables that are read by row, nor those of hardware
    pages that tell what is disputed or not known."""
    found = []
    for section in page.sections:
        blocks = [b for b in page.blocks if b.place == section.place and b.kind not in ("asks", "footnote")]
        rows = [b.kind == "table" and read_by_row(page.lines[b.line_start - 1]) for b in blocks]
        heading = section.heading.lower()
        data = all(rows) or (heading in _NAMED and any(rows))
        if not data and not (page.meta.kind == "hardware" and heading in _OF_HARDWARE):
            found.append(section)
    return found


def _judged(view: WikiView) -> Iterator[tuple[Page, PageSection]]:
    """Every section of prose of a wiki that lists asks."""
    if view.lists_asks:
        for page in view.pages:
            for section in prose_sections(page):
                yield page, section


@rule("heading-answers-nothing", alone=True)
def heading_answers_nothing(view: WikiView) -> Iterator[Finding]:
    """Say in a heading what its section answers, and name the subject.

    Checks headings of prose: one that consists of words such as "when", "it", "applies", "notes", "limits" and "works"
    alone names no subject. Not checked: the title; sections of tables that are read by row, which all pages name alike
    ("Specifications", "Cost", "Measured", "What to try"); "Where sources disagree" and "Not published" on hardware
    pages.

    Why: a question is compared with headings, and an answer shows them without their page.

    Example: `## When it applies`; write `## When does an L2 swizzle pay?`.
    """
    for page, section in _judged(view):
        if section.place and not names_subject(section.heading):
            message = f"“{section.heading}” names no subject; say what the section answers"
            yield Finding(page.path, section.line_start, message)


@rule(ASKS, alone=True)
def section_asks(view: WikiView) -> Iterator[Finding]:
    """List three to eight asks below the heading of each section.

    Checks sections of prose, the lead too: the comment `<!-- asks: … · … -->` right below the heading has three to
    eight asks of at most 120 characters. Asks elsewhere, a comment that is not closed and text behind it are told of as
    well. Not checked: sections of tables that are read by row, and "Where sources disagree" and "Not published" on
    hardware pages. An empty or repeated ask is told of too. A wiki without asks gets one warning.

    Why: people put one question in many ways, and each ask is compared with theirs.

    Example: a section with `<!-- asks: bank conflicts -->`, which is one ask.
    """
    sections = list(_judged(view))
    if not sections and view.first and view.pages:
        message = "no section of this wiki lists asks; docs/wiki-format.md says how questions find sections by them"
        yield Finding(view.pages[0].path, view.pages[0].body_start, message, error=False)
    for page, section in sections:
        line = section.asks_line or section.line_start
        count = len(section.asks)
        if not LEAST_ASKS <= count <= MOST_ASKS:
            yield Finding(page.path, line, f"this section lists {count or 'no'} asks; list three to eight")
        comment = "\n".join(page.lines[section.asks_line - 1 : section.line_start + _COMMENT_LINES])
        written = [" ".join(ask.split()).casefold() for ask in parts_of(comment)] if section.asks_line else []
        if count and not all(written):
            yield Finding(page.path, line, "there is nothing between two of the dots")
        if twice := next((ask for ask in written if ask and written.count(ask) > 1), ""):
            yield Finding(page.path, line, f"this section is asked “{twice}” twice")
        for ask in section.asks:
            if len(ask) > ASK_WRITTEN:
                yield Finding(page.path, line, f"this ask has more than {ASK_WRITTEN} characters: {ask}")


@rule("section-source", alone=True)
def section_source(view: WikiView) -> Iterator[Finding]:
    """Give every section a source.

    Checks sections of prose for a footnote reference, a citation, a line that begins with `Derived:`, or a table that
    is read by row or whose last column is `source`.

    Why: an answer prints a section whole, and what has no source cannot be checked.

    Example: a section of three sentences, none with `[^guide]`.
    """
    for page, section in _judged(view):
        texts = text_lines(page)
        sourced = any(
            ("[^" in line and _REFERENCE.search(line))
            or is_derived(line)
            or next(find_citations(page.lines[n - 1]), None)
            for n in range(section.line_start, section.line_end + 1)
            if (line := texts.get(n))
        )
        tables = (b for b in page.blocks if b.kind == "table" and b.place == section.place)
        heads = (page.lines[block.line_start - 1] for block in tables)
        if not sourced and not any(read_by_row(head) or _SOURCES.search(head) for head in heads):
            yield Finding(page.path, section.line_start, "nothing in this section has a source")


@once_a_page
def _asked(page: Page) -> list[tuple[PageSection, list[tuple[str, tuple[str, ...]]]]]:
    """Each section that has asks, and its heading and asks with their words."""
    return [
        (
            section,
            [
                (ask, tuple(sorted(_WORD.findall(plain_text(ask).casefold()))))
                for ask in (standing_alone(section.heading, page.meta.title), *section.asks)
            ],
        )
        for section in page.sections
        if section.asks
    ]


@rule("ask-twice", of_page=(_asked,))
def ask_twice(view: WikiView) -> Iterator[Finding]:
    """Let each ask be answered by one section.

    Checks the asks of all pages, and the headings of sections that have asks, by their words: case, marks and the order
    of the words do not count.

    Why: a question that two sections claim is answered by either, as chance has it.

    Example: `why pad a tile` below two headings, or below one where another heading is "Why pad a tile?".
    """
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    for page in view.pages:
        for section, asks in _asked(page):
            mine: set[tuple[str, ...]] = set()
            for ask, key in asks:
                path, line = first.setdefault(key, (page.path, section.line_start))
                if key in mine or not key:
                    continue
                mine.add(key)
                if (path, line) != (page.path, section.line_start):
                    at = f"{path}:{line}" if path != page.path else f"line {line}"
                    yield Finding(page.path, section.asks_line, f"the section at {at} is asked “{ask}” too")


@rule("section-length", alone=True)
def section_length(view: WikiView) -> Iterator[Finding]:
    """Split a section of more than ten sentences by what its parts answer.

    Checks lines of prose; a longer section is a warning.

    Why: an answer prints a section whole, and says more than was asked where it is long.

    Example: one section of fourteen sentences on when a technique pays and how to write it.
    """
    for page, section in _judged(view):
        prose = prose_lines(page)
        count = sum(number in prose for number in range(section.line_start, section.line_end + 1))
        if count > MOST_SENTENCES:
            message = f"this section has {count} sentences; split it by what it answers"
            yield Finding(page.path, section.line_start, message, error=False)


@rule("section-text", alone=True)
def section_text(view: WikiView) -> Iterator[Finding]:
    """Write something below each heading.

    Checks that a heading is followed by text or by a heading below it, that the first heading of a page is its title
    (`# ...`), and that no line begins with marks of a heading and no blank.

    Why: a heading without text is offered as an answer, and there is none.

    Example: `## Why does it stall?` right above `## What to try`.
    """
    for page in view.pages:
        if page.sections and page.sections[0].place == 0 and not page.sections[0].trail:
            yield Finding(page.path, page.sections[0].line_start, "a page begins with its title", error=False)
        told = {block.place for block in page.blocks if block.kind not in ("asks", "footnote")}
        for section, after in zip_longest(page.sections, page.sections[1:]):
            deeper = after is not None and after.trail[: len(section.trail)] == section.trail
            if section.place not in told and not (deeper and section.place):
                yield Finding(page.path, section.line_start, "nothing stands below this heading")
        for number, line in text_lines(page).items():
            if _NO_BLANK.match(line):
                yield Finding(page.path, number, "this is a heading once a blank stands behind its marks")


@rule("sentence-line", alone=True)
def sentence_line(view: WikiView) -> Iterator[Finding]:
    """Begin a line with each sentence.

    Checks lines of prose for a full stop with another sentence behind it. Lists are not checked. This is a warning.

    Why: a citation names lines, so each should say one thing.

    Example: `A warp waits. Another runs.` on one line.
    """
    for page in view.pages:
        for number, line in prose_lines(page).items():
            if line[0] not in "-*>|" and not line[0].isdigit() and _NEXT.search(line):
                yield Finding(page.path, number, "a second sentence stands on this line", error=False)


@once_a_page
def sentences(page: Page) -> list[tuple[str, int]]:
    """What each longer line of prose says, and the line."""
    said = (
        (" ".join(plain_text(_REFERENCE.sub("", page.lines[number - 1])).casefold().split()), number)
        for number, line in prose_lines(page).items()
        if len(line) >= _SENTENCE and line[0] not in "-*>|" and PLACEHOLDER not in line
    )
    return [(words, number) for words, number in said if len(words) >= _SENTENCE]


@rule("repeated-sentence", of_page=(sentences,))
def repeated_sentence(view: WikiView) -> Iterator[Finding]:
    """Say each thing on one page, and link to it.

    Checks sentences of at least 60 characters that another line says in the same words: case and footnotes do not
    count. Lines that begin with `Derived:` are compared within a page. Not checked: lists and quotations.

    Why: of two copies one is corrected, and a question finds the other.

    Example: the same sentence on the pages of a technique and of its method.
    """
    first: dict[str, tuple[str, int]] = {}
    for page in view.pages:
        derived: dict[str, int] = {}
        for said, number in sentences(page):
            if said.startswith("derived:"):
                if (above := derived.setdefault(said, number)) != number:
                    yield Finding(page.path, number, f"line {above} says the same in the same words")
                continue
            path, line = first.setdefault(said, (page.path, number))
            if (path, line) != (page.path, number):
                at = f"{path}:{line}" if path != page.path else f"line {line}"
                yield Finding(page.path, number, f"{at} says the same in the same words")
