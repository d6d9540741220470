"""A page as HTML, in which every line that a citation can name is an anchor, and no text of the page has any effect.

Tags are written for the parts of Markdown that are listed here; everything else is shown as the text that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from kbs.common.visible_text import visible_lines
from kopt.services.publishing.addresses import Addresses
from wiki.asks import asks_comment
from wiki.lint.rules.links import heading_anchors
from wiki.page import Page
from wiki.reader import MAX_NESTING

MOST_INLINE = 4_000
"""Characters of a paragraph whose marks are read: many open brackets take a time quadratic in their number."""
_BLOCKS = {"paragraph": "p", "blockquote": "blockquote", "bullet_list": "ul", "ordered_list": "ol", "list_item": "li"}
_TABLE = ("thead", "tbody", "tr", "th", "td")
_MARKS = {"em": "em", "strong": "strong"}


@cache
def _parser() -> MarkdownIt:
    return (
        MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
        .enable("table")
        .use(front_matter_plugin)
        .use(footnote_plugin, inline=False, move_to_end=False)
        .disable("inline")  # blocks first, and each paragraph later, so that none can take long
    )


def line(number: int, inner: str, tag: str = "span") -> str:
    """A line of the page, with its anchor."""
    return f'<{tag} class="line" id="L{number}">{inner}</{tag}>'


class PageHtml:
    """Renders one page."""

    def __init__(self, page: Page, addresses: Addresses, sizes: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        self.page = page
        self.addresses = addresses
        self.sizes = sizes
        """Width and height of pictures, by address as `Addresses.pictures` has them."""
        self.lines = [text if text.isprintable() else visible_lines(text) for text in page.lines]
        self.urls = {source.id: self.addresses.link(source.url) for source in page.meta.sources}
        self.slugs = heading_anchors(page)
        self._shown: set[int] = set()
        self._notes: dict[str, int] = {}
        """Footnote label → its number, in the order in which the text refers to them."""
        self._referred: dict[str, int] = {}
        """Footnote label → the line that first refers to it."""

    def body(self) -> str:
        """What stands below the page's front matter."""
        if self.page.path.endswith((".txt", ".rst")):
            return f'<pre class="plain">{self._code(1, self.lines)}</pre>'
        env: dict[str, Any] = {}
        return "".join(self._blocks(_parser().parse("\n".join(self.lines), env), env))

    def rest(self) -> str:
        """The lines that nothing above shows: front matter, asks and other comments, rules of tables."""
        left = [n for n, text in enumerate(self.lines, start=1) if text.strip() and n not in self._shown]
        return "\n".join(line(number, escape(self.lines[number - 1])) for number in left)

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _blocks(self, tokens: Sequence[Token], env: dict[str, Any]) -> Iterator[str]:
        note = ""  # label of the footnote that begins here
        for place, token in enumerate(tokens):
            kind, _, end = token.type.rpartition("_")
            start = token.map[0] + 1 if token.map else 0
            opened = tokens[place - 1] if place else token
            if token.type == "inline":
                yield self._inline(token, env, note, cell=opened.type in ("th_open", "td_open"))
                note = ""
            elif kind == "heading":
                slug = self.slugs.get(start, "")
                yield f'<{token.tag} id="{escape(slug)}">' if end == "open" else f"</{token.tag}>"
            elif kind == "paragraph" and end == "open" and self._figure(tokens[place + 1], env):
                yield "<figure>"
            elif kind == "paragraph" and end == "close" and self._figure(opened, env):
                said = self._children(opened.content, env)[0].content
                yield f"<figcaption>{escape(said)}</figcaption></figure>"
            elif kind in _BLOCKS and not token.hidden:
                first = token.attrs.get("start", 1) if kind == "ordered_list" and end == "open" else 1
                begun = f' start="{int(first)}"' if first != 1 else ""
                yield f"<{'/' if end == 'close' else ''}{_BLOCKS[kind]}{begun}>"
            elif kind == "table":
                yield '<div class="table"><table>' if end == "open" else "</table></div>"
            elif kind in _TABLE:
                yield self._table(kind, end == "open", token, start)
            elif token.type == "footnote_reference_open":
                note = str(token.meta["label"])
                yield f'<div class="note"><span class="number">{self._notes.get(note, "·")}</span>'
            elif token.type == "footnote_reference_close":
                yield "</div>"
            elif token.type in ("fence", "code_block"):
                body = token.content.split("\n")
                first = start + (token.type == "fence")
                yield f"<pre><code>{self._code(first, body[:-1] if body[-1] == '' else body)}</code></pre>"
            elif token.type == "html_block":
                if asks_comment(token.content) is None and not token.content.lstrip().startswith("<!--"):
                    yield f"<pre>{self._code(start, token.content.rstrip().split(chr(10)))}</pre>"
            elif token.type == "hr":
                yield "<hr>"

    def _table(self, kind: str, opens: bool, token: Token, start: int) -> str:
        if not opens:
            return f"</{kind}>"
        if kind == "tr":
            self._shown.add(start)
            return f'<tr class="line" id="L{start}">'
        side = re.search(r"right|center", str(token.attrs.get("style", "")))
        return f'<{kind} class="{side[0]}">' if side else f"<{kind}>"

    def _code(self, first: int, lines: Sequence[str]) -> str:
        self._shown.update(range(first, first + len(lines)))
        return "\n".join(line(number, escape(text)) for number, text in enumerate(lines, start=first))

    def _figure(self, inline: Token, env: dict[str, Any]) -> bool:
        """Whether a paragraph is one picture of this site and nothing else."""
        if not inline.content.startswith("![") or len(inline.content) > MOST_INLINE:
            return False
        children = self._children(inline.content, env)
        return (
            len(children) == 1
            and children[0].type == "image"
            and self.addresses.picture(str(children[0].attrs.get("src", ""))) is not None
        )

    # --- text -------------------------------------------------------------------------------------------------------

    def _children(self, text: str, env: dict[str, Any]) -> list[Token]:
        found: list[Token] = []
        _parser().inline.parse(text, _parser(), env, found)
        return found

    def _inline(self, token: Token, env: dict[str, Any], note: str, *, cell: bool) -> str:
        """The text of a block, each of its lines with an anchor; of a cell of a table the row has it."""
        start, lines = (token.map[0] + 1 if token.map else 0), token.content.split("\n")
        if len(token.content) > MOST_INLINE:
            parts = [escape(text) for text in lines]
        else:
            rows = self._rows(self._children(token.content, env))
            if len(rows) != len(lines):  # a mark that goes over the end of a line: each line by itself
                rows = [self._children(text, env) for text in lines]
            parts = [self._spans(row, start + at, first=not at) for at, row in enumerate(rows)]
        if cell:
            return "\n".join(parts)
        self._shown.update(range(start, start + len(parts)))
        if back := self._referred.get(note):
            parts[0] += f' <a class="back" href="#L{back}" title="to line {back}">↩</a>'
        return "\n".join(line(start + at, text) for at, text in enumerate(parts))

    def _rows(self, tokens: Sequence[Token]) -> list[list[Token]]:
        """The tokens of each line; fewer than there are lines where a mark goes over the end of one."""
        rows: list[list[Token]] = [[]]
        depth = 0
        for token in tokens:
            depth += token.nesting
            if token.type in ("softbreak", "hardbreak") and not depth:
                rows.append([])
            else:
                rows[-1].append(token)
        return rows

    def _spans(self, tokens: Sequence[Token], number: int, *, first: bool) -> str:
        out: list[str] = []
        inside = 0  # links
        dead: list[bool] = []
        for place, token in enumerate(tokens):
            kind, _, end = token.type.rpartition("_")
            if token.type == "text":
                out.append(self._text(token.content, first=first and place == 0, link=not inside))
            elif token.type == "code_inline":
                out.append(f"<code>{self._text(token.content, first=False, link=not inside)}</code>")
            elif kind in _MARKS:
                out.append(f"<{'/' if end == 'close' else ''}{_MARKS[kind]}>")
            elif token.type == "link_open":
                href = self.addresses.link(str(token.attrs.get("href", "")))
                dead.append(href is None)
                inside += 1
                out.append(_opened(href) if href is not None else "")
            elif token.type == "link_close":
                inside -= 1
                out.append("" if not dead or dead.pop() else "</a>")
            elif token.type == "image":
                out.append(self._picture(token))
            elif token.type == "footnote_ref":
                out.append(self._reference(str(token.meta["label"]), number))
            elif token.type in ("softbreak", "hardbreak"):
                out.append("\n")
            else:
                out.append(escape(token.content))
        return "".join(out)

    def _text(self, text: str, *, first: bool, link: bool) -> str:
        """Text as it is, with links at its citations and at the source that it begins with."""
        if not link:
            return escape(text)
        out, done = [], 0
        source = re.match(r"[\w.-]+(?![\w.-])", text)
        url = self.urls.get(source[0].rstrip(".")) if source and first else None
        if source and url:
            name = source[0].rstrip(".")
            out.append(f"{_opened(url)}{escape(name)}</a>")
            done = len(name)
        for start, end, href in self.addresses.cited(text):
            if start >= done:
                out += [escape(text[done:start]), f"{_opened(href)}{escape(text[start:end])}</a>"]
                done = end
        return "".join([*out, escape(text[done:])])

    def _picture(self, token: Token) -> str:
        said = escape(token.content)
        target = str(token.attrs.get("src", ""))
        src = self.addresses.picture(target)
        if src is None:  # of another site, or left out: nothing is fetched
            href = self.addresses.link(target)
            return f"{_opened(href)}{said or 'picture'}</a>" if href else said
        size = self.sizes.get((self.page.wiki, self.addresses.path_of(target)))
        room = f' width="{size[0]}" height="{size[1]}"' if size else ""
        return f'<img src="{escape(src)}" alt="{said}"{room}>'

    def _reference(self, label: str, number: int) -> str:
        at = self.page.footnotes.get(label)
        if at is None:
            return escape(f"[^{label}]")
        self._referred.setdefault(label, number)
        shown = self._notes.setdefault(label, len(self._notes) + 1)
        return f'<sup><a href="#L{at}" title="{escape(label)}">{shown}</a></sup>'


def _opened(href: str) -> str:
    outside = ' rel="noopener noreferrer nofollow"' if re.match(r"(?i)[a-z]+:", href) else ""
    return f'<a href="{escape(href)}"{outside}>'
