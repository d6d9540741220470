"""Text for notebooks, as Markdown and as HTML.

What is shown may come from a page, a log or a kernel that anybody wrote. So all text is inert: no tag, link, picture,
formula or control character of it has any effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from kbs.common.visible_text import visible, visible_lines

_MARKS = re.compile(r"[`*_{}\[\]<>&#|!~$\\]|:(?=//)|^[-+=]|^\d+[.)]")
"""What Markdown may read as a mark: some characters anywhere, others where a line or an address begins."""
_FORMULA = re.compile(r"[$\\]")
"""What begins or ends a formula for MathJax. It looks through the page as it is shown, and a tag between stops it."""


_COLUMN = 60
"""Characters to which cells of a table of plain text are filled up at most."""


@dataclass(frozen=True)
class Paragraph:
    """A line of text."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Items:
    """A list."""

    lines: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Rows of cells, below a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Verbatim:
    """Lines as they are."""

    text: str


Block = Paragraph | Items | Table | Verbatim


def html(blocks: Iterable[Block]) -> str:
    """The blocks as HTML without styles, scripts and links."""
    return f'<div class="kopt mathjax_ignore tex2jax_ignore">{"".join(map(_html, blocks))}</div>'


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown with tables."""
    return "\n\n".join(map(_markdown, blocks)) + "\n"


def plain(blocks: Iterable[Block]) -> str:
    """The blocks as text."""
    return "\n".join(map(_plain, blocks))


def _html(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"<p><strong>{_inert(block.text)}</strong></p>" if block.strong else f"<p>{_inert(block.text)}</p>"
    if isinstance(block, Items):
        return f"<ul>{''.join(f'<li>{_inert(line)}</li>' for line in block.lines)}</ul>"
    if isinstance(block, Verbatim):
        return f"<pre>{escape(visible_lines(block.text))}</pre>"
    head = "".join(f"<th>{_inert(cell)}</th>" for cell in block.head)
    rows = ("".join(f"<td>{_inert(cell)}</td>" for cell in row) for row in block.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _inert(text: str) -> str:
    return _FORMULA.sub(lambda mark: f"<span>{mark[0]}</span>", escape(visible(text)))


def _markdown(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"**{_unmarked(block.text)}**" if block.strong else _unmarked(block.text)
    if isinstance(block, Items):
        return "\n".join(f"- {_unmarked(line)}" for line in block.lines)
    if isinstance(block, Verbatim):
        text = visible_lines(block.text)
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        return f"{fence}text\n{text}\n{fence}"
    rows = [block.head, ["---"] * len(block.head), *block.rows]
    cells = [[cell if row is rows[1] else _unmarked(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _unmarked(text: str) -> str:
    """A line in which nothing is a mark of Markdown."""
    return _MARKS.sub(_written_out, visible(text).strip())


def _written_out(mark: re.Match[str]) -> str:
    if mark[0] in "$\\":
        return f"<span>&#{ord(mark[0])};</span>"
    return f"{mark[0][:-1]}\\{mark[0][-1]}"


def _plain(block: Block) -> str:
    if isinstance(block, Paragraph):
        return visible(block.text)
    if isinstance(block, Items):
        return "\n".join(f"  - {visible(line)}" for line in block.lines)
    if isinstance(block, Verbatim):
        return visible_lines(block.text)
    rows = [[visible(cell) for cell in row] for row in (block.head, *block.rows)]
    widths = [min(_COLUMN, max(map(len, column))) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)
