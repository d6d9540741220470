"""Reads the asks of a section: the other ways in which people put what it answers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kbs.common.visible_text import visible
from kbs.evidence.checking import plain_text

MAX_ASKS = 32
"""Further asks of a section are left out: each costs a vector, and a page may be anybody's."""
MAX_ASK = 200
"""Characters of an ask that are kept."""
SEPARATOR = "·"
ASK_WRITTEN = 120
"""Characters that an ask should have at most."""
_MOST_READ = 2_000
"""Characters of an ask that are looked at."""
_COMMENT = re.compile(r"\s*<!--\s*asks:(?P<asks>.*?)(?:-->(?P<rest>.*)|\Z)", re.DOTALL)
_BETWEEN = re.compile(rf"(?<!\S){SEPARATOR}(?!\S)")


@dataclass(frozen=True)
class AsksComment:
    """A comment that begins with `asks:`."""

    asks: tuple[str, ...]
    rest: str
    """What stands behind it on its last line."""
    closed: bool


def asks_comment(html: str) -> AsksComment | None:
    """The asks of a block of HTML; None if it is another one."""
    found = _COMMENT.match(html)
    if found is None:
        return None
    closed = found["rest"] is not None
    return AsksComment(read_asks(found["asks"]) if closed else (), (found["rest"] or "").strip(), closed)


def read_asks(text: str) -> tuple[str, ...]:
    """The asks of a text that has a dot between blanks between each two: as words, without marks and repeats."""
    kept: dict[str, str] = {}
    for part in _BETWEEN.split(text):
        shown = part[:_MOST_READ]
        if not shown.isprintable():
            shown = "".join(c if c.isprintable() else " " for c in shown)
        ask = plain_text(shown)[:MAX_ASK].strip()
        if ask:
            kept.setdefault(ask.casefold(), ask)
        if len(kept) == MAX_ASKS:
            break
    return tuple(kept.values())


def parts_of(comment: str) -> list[str]:
    """What stands between the dots of a comment of asks, as it is written."""
    found = _COMMENT.match(comment)
    return _BETWEEN.split(found["asks"]) if found else []


def written_asks(asks: Iterable[str]) -> str:
    """The comment that lists some asks. What would end it, or an ask, is left out of them."""
    said = (" ".join(re.sub(rf"[<>{SEPARATOR}]|--+", " ", visible(ask)).split())[:ASK_WRITTEN].strip() for ask in asks)
    return f"<!-- asks: {f' {SEPARATOR} '.join(filter(None, said))} -->"
