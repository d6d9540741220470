"""The console that everything is printed on: what a terminal would obey in a text is written out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from kbs.common.visible_text import visible_lines
from kopt.cli.terminal.links import REFERENCE, opens_links, page_links

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LEAD = re.compile(r"  [a-z]\w*(?: \w+){0,3} {2,}(?=\S)| *(?:- |\d+\. |\[\d+\] )?")
"""What the further lines of a folded paragraph are set in by."""
_LEAST = 24
"""Columns that folded words must have."""
_WORDS = 4
"""Gaps between words that a line has at least, to be a sentence and no row of a table."""


def console(stream: IO[str] | None = None) -> Console:
    """A console that colours, folds and links on terminals only; elsewhere lines are never folded. What a terminal
    would obey in a text is written out: pages, reports and kernels are others' words.

    Sentences are folded between words. Rows of tables, code and lines with a citation are left to the terminal, so that
    they can be copied whole.
    """
    from rich.console import Console

    out = stream or sys.stdout
    terminal = out.isatty()
    link = page_links() if opens_links(out) else None

    class Honest(Console):
        """Leaves a pipe that was closed early to `whole_pipe`: the command keeps its own exit code."""

        def print(self, *objects: Any, end: str = "\n", **how: Any) -> None:
            """Strings in it are made visible; what rich has made is its own."""
            texts = [visible_lines(one) if isinstance(one, str) else one for one in objects]
            if not terminal or len(texts) != 1 or not isinstance(texts[0], str):
                super().print(*texts, end=end, **how)
                return
            lines = list(_lines(texts[0], self, link))
            for place, line in enumerate(lines, start=1):
                super().print(line, end=end if place == len(lines) else "\n", soft_wrap=True, **how)

        def on_broken_pipe(self) -> None:
            """Called while the error is handled."""
            raise BrokenPipeError

    return Honest(
        file=out,
        highlight=False,
        emoji=False,
        soft_wrap=not terminal,
        width=None if terminal else 10_000,
        no_color=not terminal or None,
        force_terminal=None if terminal else False,
    )


def _lines(text: str, on: Console, link: Callable[[str], str] | None) -> Iterator[Text]:
    """The lines of a text as they stand on a terminal, with its references coloured and linked."""
    from rich.style import Style
    from rich.text import Text

    for line in text.split("\n"):
        shown = Text(line)
        for found in REFERENCE.finditer(line):
            shown.stylize(Style(color="cyan", link=(link and link(found[0])) or None), *found.span())
        matched = _LEAD.match(line)
        lead = matched[0] if matched else ""
        body = line[len(lead) :]
        prose = body.count(" ") >= _WORDS and "  " not in body and "<-" not in body and not body.startswith("|")
        room = on.width - len(lead)
        if len(line) <= on.width or not prose or room < _LEAST:
            yield shown
            continue
        for place, part in enumerate(shown[len(lead) :].wrap(on, room)):
            part.rstrip()
            yield Text(lead if place == 0 else " " * len(lead)) + part
