"""Rules on the text of a page: code that parses, and clean line ends."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, code_blocks

_LANGUAGES = ("python", "py", "triton")


@rule("python-block")
def python_block(view: WikiView) -> Iterator[Finding]:
    """Write Python blocks that parse.

    Checks every code block marked `python`, `py` or `triton` for syntax errors.

    Why: readers and agents copy the code.

    Example: a block with a missing colon after `def kernel(x)`.
    """
    for page in view.pages:
        for block in code_blocks(page):
            if block.info.lower() not in _LANGUAGES:
                continue
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse(textwrap.dedent("\n".join(block.code)))
            except SyntaxError as error:
                line = block.line_start + max((error.lineno or 1) - 1, 0)
                yield Finding(page.path, min(line, len(page.lines)), f"this is not Python: {error.msg}")
            except (RecursionError, MemoryError):
                yield Finding(page.path, block.line_start, "this Python is nested too deeply to be parsed")


def tidy(text: str) -> str:
    """`text` with line feeds, no trailing blanks, and one line feed at its end."""
    lines = re.split(r"\r\n?|\n", text)
    joined = "\n".join(line.rstrip(" \t") for line in lines).rstrip("\n")
    return joined + "\n" if joined else ""


@rule("whitespace")
def whitespace(view: WikiView) -> Iterator[Finding]:
    """End every line with a line feed and no blanks.

    Checks for trailing blanks, carriage returns and a missing line feed at the end of the file. The first such place
    of a file is a warning; `--fix` corrects all of them.

    Why: citations name lines by their hash, so invisible changes would make them stale.

    Example: a line that ends in two blanks.
    """
    for path, text in view.texts.items():
        fixed = tidy(text)
        if fixed == text:
            continue
        was, now = text.split("\n"), fixed.split("\n")
        pairs = enumerate(zip(was, now, strict=False), start=1)
        line = next((number for number, (a, b) in pairs if a != b), min(len(was), len(now)))
        yield Finding(path, line, f"{_what(was[line - 1])}; `kopt wiki lint --fix` corrects it", error=False)


def _what(line: str) -> str:
    if "\r" in line:
        return "a line ends in a carriage return"
    if line != line.rstrip(" \t"):
        return "a line ends in blanks"
    return "the file does not end in one line feed"
