"""Lines end in a line feed, without blanks before it, the last one too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView


def tidy(text: str) -> str:
    """`text` with line feeds, no trailing blanks, and one line feed at its end."""
    lines = re.split(r"\r\n?|\n", text)
    joined = "\n".join(line.rstrip(" \t") for line in lines).rstrip("\n")
    return joined + "\n" if joined else ""


@rule("whitespace", "Blanks at the end of a line, carriage returns, or no line feed at the end of the file.")
def whitespace(view: WikiView) -> Iterator[Finding]:
    """The first such place of every file, as a warning; `--fix` mends them all."""
    for path, text in view.texts.items():
        fixed = tidy(text)
        if fixed == text:
            continue
        was, now = text.split("\n"), fixed.split("\n")
        pairs = enumerate(zip(was, now, strict=False), start=1)
        line = next((number for number, (a, b) in pairs if a != b), min(len(was), len(now)))
        yield Finding(path, line, f"{_what(was[line - 1])}; `kopt wiki lint --fix` mends it", error=False)


def _what(line: str) -> str:
    if "\r" in line:
        return "a line ends in a carriage return"
    if line != line.rstrip(" \t"):
        return "a line ends in blanks"
    return "the file does not end in one line feed"
