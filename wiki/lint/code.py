"""Python on a page parses."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, code_blocks

_LANGUAGES = ("python", "py", "triton")


@rule("python-block", "A Python code block does not parse.")
def python_block(view: WikiView) -> Iterator[Finding]:
    """Every block of Python or Triton with a syntax error."""
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
