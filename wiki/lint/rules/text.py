"""Rules on the text of a page: nothing left to fill in, code that parses, and clean line ends."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator

from kbs.common.visible_text import visible
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, code_blocks, text_lines

PLACEHOLDER = "TODO:"
"""What stands, in a page of `kopt wiki new`, wherever something is to be filled in."""
_OPEN = re.compile(r"TODO:|\b(?:FIXME|TBD|XXX)\b|^(?:<{7}|>{7}|={7})(?=\s|$)")
_MARKS = ("TODO:", "FIXME", "TBD", "XXX", "<" * 7, ">" * 7, "=" * 7)
"""What a page has in which one of them is found."""
_LANGUAGES = ("python", "py", "triton")


@rule("placeholder", alone=True)
def placeholder(view: WikiView) -> Iterator[Finding]:
    """Fill in what a new page leaves open.

    Checks every line but code for the mark `TODO:`, which `kopt wiki new` writes, and for FIXME, TBD, XXX and the
    marks of a merge that is not finished: front matter, headings, asks, prose, tables and footnotes.

    Why: kopt quotes what stands in a page, and a mark answers nothing.

    Example: `TODO: say in one to three sentences what a swizzle is`.
    """
    for page in view.pages:
        whole = "\n".join(page.lines)
        if not any(mark in whole for mark in _MARKS):
            continue
        asks = (n for block in page.blocks if block.kind == "asks" for n in range(block.line_start, block.line_end + 1))
        shown = {**text_lines(page), **{n: page.lines[n - 1] for n in (*range(1, page.body_start), *asks)}}
        for number, line in sorted(shown.items()):
            if found := _OPEN.search(line):
                said = line[found.end() :].strip()[:80]
                yield Finding(page.path, number, f"this is to be filled in: {visible(said)}")


@rule("python-block", alone=True)
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


_C_LIKE = ("cuda", "c", "cpp", "c++", "cu", "hip")
_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|^\s*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M
)
"""Comments, strings, characters and lines of the preprocessor."""


@rule("code-block", alone=True)
def code_block(view: WikiView) -> Iterator[Finding]:
    """Mark every code block with its language, and close its brackets.

    Checks that a block between fences names a language (`text` for none), and that brackets of CUDA, HIP, C and C++
    come in pairs. Strings, comments and lines of the preprocessor do not count.

    Why: readers and agents copy the code.

    Example: a CUDA kernel without its last brace.
    """
    for page in view.pages:
        for block in code_blocks(page):
            fenced = page.lines[block.line_start - 2].lstrip(" >-*+0123456789.)").startswith(("```", "~~~"))
            if fenced and not block.info:
                yield Finding(page.path, block.line_start - 1, "this block names no language; `text` stands for none")
            if block.info.lower() in _C_LIKE:
                plain = _NO_CODE.sub("", "\n".join(block.code))
                for opened, closed in ("()", "[]", "{}"):
                    if plain.count(opened) != plain.count(closed):
                        yield Finding(page.path, block.line_start, f"{opened} and {closed} do not come in pairs here")


@rule("invisible-character", alone=True)
def invisible_character(view: WikiView) -> Iterator[Finding]:
    """Write no character that nobody sees.

    Checks every line for control characters, blanks other than the usual one and a tab, and marks without width.

    Why: a search for the words does not find them, and a citation of the line cannot be typed.

    Example: a no-break space between a number and its unit.
    """
    for page in view.pages:
        for number, line in enumerate(page.lines, start=1):
            if not line.isprintable():
                char = next((c for c in line if not c.isprintable() and c != "\t"), "")
                if char:
                    yield Finding(page.path, number, f"there is a character U+{ord(char):04X} here")


def tidy(text: str) -> str:
    """`text` with line feeds, no trailing blanks, and one line feed at its end."""
    lines = re.split(r"\r\n?|\n", text)
    joined = "\n".join(line.rstrip(" \t") for line in lines).rstrip("\n")
    return joined + "\n" if joined else ""


@rule("whitespace", alone=True)
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
