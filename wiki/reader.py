"""Reads a Markdown file into a `Page`. A broken page gives a list of problems, never an exception."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import unquote

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from pydantic import ValidationError

from kbs.common.plain_yaml import compose, plain
from kbs.evidence.checking import plain_text
from kbs.evidence.citation import NOTES, Citation, lines_hash, parse_reference
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import (
    AdviceRow,
    CostRow,
    InstructionRow,
    MeasuredRow,
    MethodRow,
    SignatureRow,
    ThresholdRow,
)
from kbs.evidence.vocabulary import Vocabulary
from wiki.asks import AsksComment, asks_comment
from wiki.page import MAX_PAGE_BYTES, Block, BlockKind, FrontMatter, Page, PageSection, Problem, split_lines
from wiki.tables import Row, read_table

# A program that logs all at DEBUG would get some thousand lines a question of it.
logging.getLogger("markdown_it").setLevel(logging.INFO)
MAX_NESTING = 40
"""Deeper nested lists and quotations are refused, so that a hostile page cannot exhaust the stack."""
ASKS = "section-asks"
"""The rule of problems with comments of asks."""
_MAX_TITLE = 200
_NOTE_ID = "note:"
"""What ids of notes begin with, and no id of a wiki's page can."""
_YAML_NODES = 5_000


@cache
def _parser() -> MarkdownIt:
    return (
        MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
        .enable("table")
        .use(front_matter_plugin)
        .use(footnote_plugin, inline=False, move_to_end=False)
        .disable("inline")  # only blocks are needed, and many open brackets would take a time quadratic in their number
    )


def read_page(wiki: str, path: str, data: bytes, revision: str, vocabulary: Vocabulary) -> Page | list[Problem]:
    """Read the bytes of `<wiki>/<path>`.

    Returns the page, with the problems that leave it usable, or the problems that do not. `revision` goes into the
    citations of its rows. A file of notes needs no front matter, and has no rows, whatever its tables say.
    """
    if len(data) > MAX_PAGE_BYTES:
        return [
            Problem(path, 1, "page-size", f"{len(data):,} bytes are more than a page may have ({MAX_PAGE_BYTES:,})")
        ]
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return [Problem(path, line, "encoding", "this is not UTF-8 text")]
    if "\x00" in text:
        return [Problem(path, text[: text.index("\x00")].count("\n") + 1, "encoding", "there is a NUL character here")]
    lines = split_lines(text)
    notes = wiki.startswith(NOTES)
    front = _notes_meta(wiki, path) if notes else _front_matter(path, lines)
    if isinstance(front, list):
        return front
    meta, body_start = front
    parsed = lines
    if notes and text.startswith("---") and not re.match(r"[\w-]+:", "".join(lines[1:2])):
        parsed = ("", *lines[1:])  # a rule, which begins no front matter
    try:
        tokens = _parser().parse("\n".join(parsed))
    except (RecursionError, ValueError, IndexError, KeyError) as error:
        return [Problem(path, body_start, "markdown", f"this cannot be read as Markdown ({type(error).__name__})")]

    def cite(line: int) -> Citation:
        quoted = lines[line - 1 : line]
        return Citation(wiki, path, line, line, revision, lines_hash(quoted), "\n".join(quoted))

    blocks, sections, footnotes, rows, problems = _blocks(path, tokens, meta, cite, vocabulary)
    blocks = [_trimmed(block, lines) for block in blocks]
    if notes:
        rows, problems = [], []
        titles = (plain_text(heading) for block in blocks for heading in block.trail)
        title = next(filter(None, titles), "")[:_MAX_TITLE] or unquote(path.rsplit("/", 1)[-1])
        meta = meta.model_copy(update={"title": title})
    return Page(
        wiki=wiki,
        path=path,
        lines=lines,
        sha256=hashlib.sha256(data).hexdigest(),
        meta=meta,
        body_start=body_start,
        blocks=tuple(blocks),
        sections=tuple(_ended(sections, blocks)),
        footnotes=footnotes,
        specs=tuple(row for row in rows if isinstance(row, Spec)),
        costs=tuple(row for row in rows if isinstance(row, CostRow)),
        advice=tuple(row for row in rows if isinstance(row, AdviceRow)),
        thresholds=tuple(row for row in rows if isinstance(row, ThresholdRow)),
        measured=tuple(row for row in rows if isinstance(row, MeasuredRow)),
        signatures=tuple(row for row in rows if isinstance(row, SignatureRow)),
        instructions=tuple(row for row in rows if isinstance(row, InstructionRow)),
        methods=tuple(row for row in rows if isinstance(row, MethodRow)),
        problems=tuple(problems),
    )


def _notes_meta(wiki: str, path: str) -> tuple[FrontMatter, int] | list[Problem]:
    """What stands in the place of the front matter that notes have not."""
    cited = parse_reference(f"{wiki}/{path}:L1")
    if cited is None or (cited.wiki, cited.target) != (wiki, path):
        return [Problem(path, 1, "name", "a file of this name cannot be cited; rename it")]
    id = f"{_NOTE_ID}{wiki.removeprefix(NOTES)}/{path}"
    return FrontMatter.model_construct(id=id, kind="note", title="", confidence="note", sources=()), 1


def _front_matter(path: str, lines: tuple[str, ...]) -> tuple[FrontMatter, int] | list[Problem]:
    if not lines or lines[0].rstrip() != "---":
        return [Problem(path, 1, "front-matter", "the page does not begin with a front matter between two --- lines")]
    end = next((i for i, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
    if end is None:
        return [Problem(path, 1, "front-matter", "the front matter has no closing --- line")]
    try:
        node = next(iter(compose("\n".join(lines[1:end]), _YAML_NODES)), None)
        raw = plain(node, _YAML_NODES) if node is not None else None
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.line + 2 if error.problem_mark else 1
        return [Problem(path, at, "front-matter", f"this is not YAML: {error.problem or error.context}")]
    except yaml.reader.ReaderError as error:
        at = "\n".join(lines[1:]).encode()[: error.position].count(b"\n") + 2
        return [Problem(path, at, "front-matter", f"this is not YAML: {error.reason}")]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return [Problem(path, 1, "front-matter", f"this is not YAML that kopt reads: {str(error)[:200]}")]
    if not isinstance(raw, dict):
        return [Problem(path, 1, "front-matter", "the front matter is not a list of `key: value` lines")]
    try:
        meta = FrontMatter.model_validate(raw)
    except ValidationError as error:
        return [_invalid(path, node, detail) for detail in error.errors()[:20]]
    if meta.id != path.rsplit(".", 1)[0]:
        return [Problem(path, 2, "front-matter", f"the id {meta.id!r} is not the path without .md")]
    return meta, end + 2


def _invalid(path: str, node: yaml.Node | None, detail: Any) -> Problem:
    """A validation error at the line of the key that it is about."""
    where = [str(part) for part in detail["loc"]]
    line = 1
    current = node
    for part in where:
        if isinstance(current, yaml.MappingNode):
            for key, value in current.value:
                if key.value == part:
                    line, current = key.start_mark.line + 2, value
                    break
            else:
                break
        elif isinstance(current, yaml.SequenceNode) and part.isdigit() and int(part) < len(current.value):
            current = current.value[int(part)]
            line = current.start_mark.line + 2
    return Problem(path, line, "front-matter", f"{'.'.join(where) or 'front matter'}: {detail['msg']}")


def _blocks(
    path: str, tokens: list[Token], meta: FrontMatter, cite: Any, vocabulary: Vocabulary
) -> tuple[list[Block], list[PageSection], dict[str, int], list[Row], list[Problem]]:
    blocks: list[Block] = []
    sections: list[PageSection] = []
    footnotes: dict[str, int] = {}
    rows: list[Row] = []
    problems: list[Problem] = []
    notes = meta.id.startswith(_NOTE_ID)
    trail: list[tuple[int, str]] = []
    begun = 0  # blocks before the section

    def add(kind: BlockKind, start: int, end: int, info: str = "") -> None:
        headings = tuple(title for _, title in trail)
        if not sections:
            sections.append(PageSection(0, headings, start, start))
        blocks.append(Block(kind, headings, start, end, info, len(sections) - 1))

    index = 0
    while index < len(tokens):
        token = tokens[index]
        end = _closing(tokens, index)
        span = (token.map[0] + 1, token.map[1]) if token.map else (0, 0)
        if token.type == "heading_open":
            level, title = int(token.tag[1]), tokens[index + 1].content.strip()
            if notes:
                title = re.sub(r"\A[^\w\n]+\n", "", title)  # reStructuredText has a rule above a heading too
            if notes and "\n" in title:  # a paragraph with a rule right below it
                add("text", span[0], span[1] - 1)
            else:
                trail = [(rank, above) for rank, above in trail if rank < level]
                trail.append((level, title))
                headings = tuple(above for _, above in trail)
                sections.append(PageSection(len(sections), headings, *span))
                begun = len(blocks)
        elif token.type == "footnote_reference_open":
            label = str(token.meta.get("label", ""))
            start = token.map[0] + 1 if token.map else _first_line(tokens[index:end])
            if label in footnotes:
                problems.append(Problem(path, start, "footnote", f"[^{label}] is defined twice"))
            footnotes.setdefault(label, start)
            add("footnote", start, max(start, _last_line(tokens[index : end + 1])))
        elif token.type == "table_open":
            add("table", *span)
            found, wrong = read_table(path, tokens[index : end + 1], blocks[-1].trail, meta, cite, vocabulary)
            rows += found
            problems += wrong
        elif token.type in ("fence", "code_block"):
            add("code", *span, info=token.info.split(" ")[0] if token.info else "")
        elif token.type == "html_block" and (comment := asks_comment(token.content)) is not None:
            if notes:  # nobody writes asks there, and a comment that is not closed is text like any other
                add("asks" if comment.closed and not comment.rest else "text", *span)
            else:
                first = len(blocks) == begun
                add("asks", *span)
                if first and comment.closed:
                    sections[-1] = replace(sections[-1], asks=comment.asks, asks_line=span[0])
                problems += _wrong_asks(path, span, comment, first)
        elif token.map and token.type not in ("front_matter", "hr"):
            add("text", *span)
        index = end + 1
    return blocks, sections, footnotes, rows, problems


def _wrong_asks(path: str, span: tuple[int, int], comment: AsksComment, first: bool) -> Iterator[Problem]:
    if not comment.closed:
        yield Problem(path, span[0], ASKS, "this comment is not closed by -->, so the rest of the page is left out")
    elif comment.rest:
        yield Problem(path, span[1], ASKS, "what stands behind --> on its line is left out; begin a line for it")
    if not first:
        yield Problem(path, span[0], ASKS, "asks are read right below the heading of their section alone")


def _ended(sections: list[PageSection], blocks: list[Block]) -> Iterator[PageSection]:
    """The sections with their last lines."""
    ends = {block.place: block.line_end for block in blocks if block.kind not in ("footnote", "asks")}
    for section in sections:
        yield replace(section, line_end=ends.get(section.place, section.line_end))


def _trimmed(block: Block, lines: tuple[str, ...]) -> Block:
    """The block without the blank lines that Markdown counts to the end of a list."""
    end = block.line_end
    while end > block.line_start and not lines[end - 1].strip():
        end -= 1
    return replace(block, line_end=end)


def _closing(tokens: list[Token], index: int) -> int:
    """Index of the token that closes the block opened at `index`; itself if nothing was opened."""
    depth = 0
    for position in range(index, len(tokens)):
        depth += tokens[position].nesting
        if depth <= 0:
            return position
    return len(tokens) - 1


def _first_line(tokens: list[Token]) -> int:
    return next((token.map[0] + 1 for token in tokens if token.map), 1)


def _last_line(tokens: list[Token]) -> int:
    return max((token.map[1] for token in tokens if token.map), default=1)


_LINK = re.compile(r"!?\[(?P<text>[^\[\]\n]*)\]\((?P<target>[^)\s]{1,500})\)")


def links(page: Page) -> list[tuple[int, str]]:
    """Every link target of the page's text with its line, code left out."""
    found: list[tuple[int, str]] = []
    for block in page.blocks:
        if block.kind in ("code", "asks"):
            continue
        for number in range(block.line_start, block.line_end + 1):
            line = page.lines[number - 1]
            plain = re.sub(r"`[^`]*`", "", line) if "`" in line else line
            if "](" in plain:
                found += [(number, match["target"]) for match in _LINK.finditer(plain)]
    return found
