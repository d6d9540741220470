"""Writes Markdown in which text from others is shown as it is and has no effect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kbs.common.visible_text import visible

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|~$@]")
_AT_THE_START = re.compile(r"^([#+=-]|\d{1,9}(?=[.)](?:\s|$)))")
_ADDRESS = re.compile(r"(?i)(:)(?=//)|(?<=\bwww)(\.)")
_TICKS = re.compile(r"`+")
_QUOTED = re.compile(r"(?<![\\`])(`+) .*? \1(?!`)")


class Markdown(str):
    """A line that is Markdown already: tables and lists take it as it is."""

    __slots__ = ()


def quoted(text: str) -> Markdown:
    """Somebody's words as data, in a code span on one line: what they say is shown, and said by nobody here.

    `without_quoted` takes them out again.
    """
    shown = visible(text).strip()
    longest = max((len(ticks) for ticks in _TICKS.findall(shown)), default=0)
    fence = "`" * (longest + 1)
    return Markdown(f"{fence} {shown} {fence}" if shown else "")


def without_quoted(markdown: str) -> str:
    """What a document says itself: the same lines, without the words that `quoted` made data of."""
    return "\n".join(_QUOTED.sub(" ", line) for line in markdown.split("\n"))


def inert(text: str) -> str:
    """The text on one line, with every character that Markdown or HTML would obey taken by its word."""
    if isinstance(text, Markdown):
        return text
    shown = _SPECIAL.sub(r"\\\g<0>", visible(text).strip())
    shown = _ADDRESS.sub(r"\\\g<0>", shown)  # else readers make links of them
    start = _AT_THE_START.match(shown)
    if start is None:
        return shown
    if start.group().isdigit():
        return f"{start.group()}\\{shown[start.end() :]}"
    return f"\\{shown}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: int = 0) -> list[str]:
    """A table's lines; all cells are made inert. The last `right` columns are aligned to the right."""
    rules = ["---"] * (len(head) - right) + ["---:"] * right
    return [_row(map(_cell, head)), _row(rules), *(_row(map(_cell, row)) for row in rows), ""]


def bullets(texts: Iterable[str]) -> list[str]:
    """A list's lines, each text made inert."""
    return [f"- {inert(text)}" for text in texts]


def _cell(text: str) -> str:
    """In a table a bar ends the cell, in a code span too."""
    return text.replace("|", "\\|") if isinstance(text, Markdown) else inert(text)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
