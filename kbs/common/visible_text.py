"""Makes text from others safe to show."""

from __future__ import annotations

import unicodedata


def visible(text: str) -> str:
    """The text on one line: what a terminal would obey, or not show, is written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible_lines(text: str) -> str:
    """The text in its lines, with its tabs and spaces of every kind; else as `visible` has it."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) == "Zs" else visible(c) for c in text)
