"""Markdown of others as HTML: text, lists, tables and code; a link or a picture is shown as the text that it is."""

from __future__ import annotations

import re
from functools import cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from kbs.common.visible_text import visible_lines

MOST = 300_000
"""Characters; a longer text is shown as it is."""
_NESTING = 20
_MOST_LINE = 20_000
"""Characters of a line: many open marks take a time quadratic in their number."""


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "maxNesting": _NESTING}).enable("table")
    return made.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])


def markdown(text: str) -> Markup:
    """The HTML. Nothing of the text has any effect."""
    text = visible_lines(text.replace("\r\n", "\n"))
    if len(text) > MOST or max(map(len, text.split("\n"))) > _MOST_LINE:
        return Markup('<pre class="plain" tabindex="0">{}</pre>').format(text)
    tokens = _parser().parse(text)
    for token in tokens:
        side = re.search(r"right|center", str(token.attrs.pop("style", "")))  # the policy lets no style attribute be
        if side:
            token.attrs["class"] = side[0]
    made = _parser().renderer.render(tokens, _parser().options, {})
    made = made.replace("<table>", '<div class="table" tabindex="0"><table>').replace("</table>", "</table></div>")
    return Markup(made.replace("<pre>", '<pre tabindex="0">'))
