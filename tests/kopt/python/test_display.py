"""What notebooks show: text of strangers has no effect in HTML or Markdown."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from kopt.python.results.display import Block, Items, Paragraph, Table, Verbatim, html, markdown, plain

HOSTILE = (
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    "</table></div><iframe src='https://example.org'></iframe>",
    "[click](javascript:alert(1))",
    "![](https://example.org/seen.png)",
    "<https://example.org>",
    "[a]: https://example.org",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "2) item",
    "> quoted",
    "---",
    "===",
    "```python",
    "~~~",
    "    code",
    "a | b | c",
    "**bold** _it_ ~~gone~~ `code`",
    r"$\href{javascript:alert(1)}{x}$ \(x\) \[y\] \begin{x}",
    r"\\(x\\)",
    "&lt;script&gt; &#60;b>",
    "a\nb\r\n\n<b>c</b>",
    "\u202eright to left\u2066 \x1b[31mred\x1b[0m \x00",
    "{{constructor}} {% raw %} ${x}",
    "[^1] [^1]: note",
    "<!-- <b> -->",
    "``` ```` ~~~~\n````",
)
TAGS = {"div", "p", "strong", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "pre", "span"}


class Seen(HTMLParser):
    """Tags, attributes and text of a document."""

    def __init__(self, document: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.pieces: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def blocks(text: str) -> list[Block]:
    return [
        Paragraph(text),
        Paragraph(text, strong=True),
        Items([text, text]),
        Table((text, "b"), [(text, text), ("x", text)]),
        Verbatim(text),
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_html_has_our_tags_alone_and_all_of_the_text(text: str) -> None:
    seen = Seen(html(blocks(text)))
    assert set(seen.tags) <= TAGS
    assert seen.attributes == [("class", "kopt mathjax_ignore tex2jax_ignore")]
    shown = "".join(seen.pieces)
    assert shown.count(_visible(text)) >= 8
    assert all(character.isprintable() or character in "\n\t" for character in shown)
    formulas = [piece for piece in seen.pieces[:-1] if ("$" in piece or "\\" in piece) and len(piece) > 1]
    assert not formulas, "MathJax would read them"


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_has_our_structure_alone_and_all_of_the_text(text: str) -> None:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    plainly, made = (reader.parse(markdown(blocks(given))) for given in ("x", text))
    shape = [token.type for token in plainly]
    assert [token.type for token in made] == shape
    marks = {"text", "strong_open", "strong_close", "text_special"}
    assert {child.type for token in made for child in token.children or []} <= marks
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown(blocks(text)))
    seen = Seen(page)
    assert set(seen.tags) <= {*TAGS, "code"}
    assert "".join(seen.pieces).count(_visible(text).strip()) >= 8


@pytest.mark.parametrize("text", HOSTILE)
def test_a_terminal_obeys_nothing_of_it(text: str) -> None:
    shown = plain(blocks(text))
    assert all(character.isprintable() or character in "\n\t" for character in shown)


def _visible(text: str) -> str:
    from kbs.common.visible_text import visible

    return visible(text)
