"""Text in a Markdown document: what somebody else wrote is shown as it is and does nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kbs.visible import visible

_SPECIAL = re.compile(r"[\\`*_\[\]<>&|~$@]")
_AT_THE_START = re.compile(r"^([#+=-]|\d{1,9}(?=[.)](?:\s|$)))")
_ADDRESS = re.compile(r"(?i)(:)(?=//)|(?<=\bwww)(\.)")


def inert(text: str) -> str:
    """The text on one line, with every character that Markdown or HTML would obey taken by its word."""
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
    return [_row(map(inert, head)), _row(rules), *(_row(map(inert, row)) for row in rows), ""]


def bullets(texts: Iterable[str]) -> list[str]:
    """A list's lines, each text made inert."""
    return [f"- {inert(text)}" for text in texts]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
