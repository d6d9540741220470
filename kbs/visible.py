"""Text that somebody else wrote, made fit to be shown."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text on one line: what a terminal would obey, or not show, is written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
