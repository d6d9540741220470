"""Sections of a page and their asks: text of others, bounded and cleaned, and never quoted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.passages import passages_of
from kbs.answers.knowledge import sentences
from kbs.evidence.vocabulary import vocabulary
from tests.bundled_pages import bundled_pages
from tests.wiki.test_fuzz import FUZZ, HEAD, markdown
from wiki.asks import ASK_WRITTEN, MAX_ASK, MAX_ASKS, asks_comment, read_asks, written_asks
from wiki.page import Page
from wiki.reader import links, read_page

MakePage = Callable[..., str]


def read(text: str, wiki: str = "team") -> Page:
    found = read_page(wiki, "technique/x.md", text.encode(), "rev", vocabulary())
    assert isinstance(found, Page), found
    return found


def said(page: Page) -> str:
    """All that is searched, embedded or quoted of a page."""
    passages = passages_of(page, "rev")
    claims = [claim.text for passage in passages for claim in sentences(passage)]
    return "\n".join([*(passage.text + passage.embedded for passage in passages), *claims])


BODY = """\
# X
<!-- asks: what is x · why x -->

The lead.

## How do I pad a tile?
<!-- asks:
  why pad a tile to 33 columns ·
  `smem` **conflict** · 共享内存 bank 冲突
-->
Pad each row by one element.[^a]
It costs one column.

[^a]: src p. 1.

The rest of it.

### A table

| a | b |
|---|---|
| 1 | 2 |

## Empty

## Plain

Text.
"""


def test_a_page_has_its_sections(page: MakePage) -> None:
    found = read(page("technique/x", BODY, title="X"))
    first = found.lines.index("# X") + 1
    assert [(s.place, s.trail, s.line_start - first, s.line_end - first) for s in found.sections] == [
        (0, ("X",), 0, 3),
        (1, ("X", "How do I pad a tile?"), 5, 15),
        (2, ("X", "How do I pad a tile?", "A table"), 17, 21),
        (3, ("X", "Empty"), 23, 23),
        (4, ("X", "Plain"), 25, 27),
    ]
    assert [s.asks for s in found.sections] == [
        ("what is x", "why x"),
        ("why pad a tile to 33 columns", "smem conflict", "共享内存 bank 冲突"),
        *((), (), ()),
    ]
    assert [s.asks_line - first for s in found.sections[:2]] == [1, 6]
    assert found.problems == ()
    assert [block.place for block in found.blocks if block.kind != "asks"] == [0, 1, 1, 1, 2, 4]


def test_passages_know_their_section_and_say_nothing_of_asks(page: MakePage) -> None:
    found = read(page("technique/x", BODY, title="X"))
    passages = passages_of(found, "rev")
    assert [(p.place, p.heading, p.text) for p in passages] == [
        (0, "X", "The lead."),
        (1, "How do I pad a tile?", "Pad each row by one element.[^a]\nIt costs one column."),
        (1, "How do I pad a tile?", "The rest of it."),
        (2, "A table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        (4, "Plain", "Text."),
    ]
    assert [p.gap for p in passages] == ["", "", "\n[^a]: src p. 1.\n", "", ""]
    assert passages[1].asks == passages[2].asks == found.sections[1].asks
    for asked in ("asks", "33 columns", "what is x", "冲突", "-->"):
        assert asked not in said(found)


def test_what_stands_above_the_first_heading_is_a_section(page: MakePage) -> None:
    found = read(page("technique/x", "<!-- asks: what is it -->\nText.\n\n# X\n\nMore."))
    assert [(s.place, s.heading, s.asks) for s in found.sections] == [(0, "", ("what is it",)), (1, "X", ())]
    assert [p.heading for p in passages_of(found, "rev")] == ["x", "X"]


def test_the_same_heading_twice_is_two_sections(page: MakePage) -> None:
    found = read(page("technique/x", "## A\n\nOne.\n\n## A\n\nTwo."))
    assert [(p.place, p.text) for p in passages_of(found, "rev")] == [(0, "One."), (1, "Two.")]


def test_asks_are_read_right_below_the_heading_alone(page: MakePage) -> None:
    body = "## A\n\nText.\n\n<!-- asks: too late -->\n\n## B\n<!-- asks: one -->\n<!-- asks: two -->\n\nText."
    found = read(page("technique/x", body))
    assert [s.asks for s in found.sections] == [(), ("one",)]
    assert [(p.rule, found.lines[p.line - 1]) for p in found.problems] == [
        ("section-asks", "<!-- asks: too late -->"),
        ("section-asks", "<!-- asks: two -->"),
    ]
    assert "asks" not in said(found)


def test_a_comment_that_is_not_closed_hides_the_rest_and_is_told(page: MakePage) -> None:
    found = read(page("technique/x", "## A\n\nText.\n\n## B\n<!-- asks: one · two\n\nSecret.\n\n## C\n\nMore."))
    assert [s.asks for s in found.sections] == [(), ()]
    assert [(p.rule, p.line, p.error) for p in found.problems] == [("section-asks", 16, True)]
    assert "not closed" in found.problems[0].message
    assert "Secret" not in said(found)
    assert "Text." in said(found)


def test_what_stands_behind_the_comment_is_told(page: MakePage) -> None:
    found = read(page("technique/x", "## A\n<!-- asks: a --> b · c -->\n\nText."))
    assert found.sections[0].asks == ("a",)
    assert [p.rule for p in found.problems] == ["section-asks"]
    assert "c" not in said(found)


@pytest.mark.parametrize(
    "comment", ["<!-- TODO: asks: a -->", "<!-- a · b -->", "<!-- ask: a -->", "<div>asks: a</div>"]
)
def test_other_html_has_no_asks(page: MakePage, comment: str) -> None:
    found = read(page("technique/x", f"## A\n{comment}\n\nText."))
    assert (found.sections[0].asks, found.problems) == ((), ())


def test_notes_have_sections_and_no_asks() -> None:
    text = "# Title\n\nLead.\n\n## One\n<!-- asks: a · b -->\n\nText.\n\nTwo\n---\n\nMore.\n"
    found = read(text, "note/papers")
    assert [(s.heading, s.asks) for s in found.sections] == [("Title", ()), ("One", ()), ("Two", ())]
    assert {p.place for p in passages_of(found, "rev")} == {0, 1, 2}
    assert "asks" not in said(found)
    assert "kept" in said(read("## A\n<!-- asks: a\n\nkept.\n", "note/papers"))


def test_links_of_asks_are_none(page: MakePage) -> None:
    assert links(read(page("technique/x", "## A\n<!-- asks: [a](gone.md) -->\n\nText."))) == []


# --- hostile asks -----------------------------------------------------------------------------------------------------


def test_ten_thousand_asks_are_some_and_cost_no_time(page: MakePage) -> None:
    many = " · ".join(f"ask number {n}" for n in range(10_000))
    start = time.process_time()
    found = read(page("technique/x", f"## A\n<!-- asks: {many} -->\n\nText."))
    assert found.sections[0].asks == tuple(f"ask number {n}" for n in range(MAX_ASKS))
    assert read_asks("· " * 400_000) == ()
    assert len(read_asks("[" * 900_000)[0]) == MAX_ASK
    assert time.process_time() - start < 2


def test_asks_are_cleaned() -> None:
    hostile = "a\x1b[31mred\x1b[0m\u202eb · [link](http://x) `code` **bold**[^1] · a·b · " + "long " * 99
    assert read_asks(hostile) == ("a [31mred [0m b", "link code bold", "a·b", ("long " * 40).strip())
    assert read_asks("Same · same · SAME ·  · other") == ("Same", "other")
    assert asks_comment("<!-- asks: a\n·\nb -->") == asks_comment("<!-- asks: a · b -->")


ASK = st.text(st.characters(codec="utf-8"), max_size=300)


@FUZZ
@given(st.lists(ASK, max_size=60))
def test_asks_are_bounded_words_of_the_comment(asks: list[str]) -> None:
    found = read_asks(" · ".join(asks))
    assert len(found) <= MAX_ASKS
    assert len({ask.casefold() for ask in found}) == len(found)
    given_letters = set("".join(asks)) | {"·"}
    for ask in found:
        assert 0 < len(ask) <= MAX_ASK
        assert ask.isprintable()
        assert ask == " ".join(ask.split())
        assert set(ask) <= given_letters | {" ", "|"}


@FUZZ
@given(st.lists(ASK, max_size=20))
def test_asks_that_are_written_are_read_and_end_no_comment(asks: list[str]) -> None:
    found = asks_comment(written_asks(asks))
    assert found is not None
    assert (found.closed, found.rest) == (True, "")
    assert len(found.asks) <= len(asks)
    assert all(len(ask) <= ASK_WRITTEN for ask in found.asks)
    assert "\n" not in written_asks(asks)


@FUZZ
@given(st.lists(st.one_of(markdown, ASK.map(lambda text: f"<!-- asks: {text} -->"), st.just("## A")), max_size=8))
def test_any_page_has_sections_that_hold_its_text(parts: list[str]) -> None:
    text = HEAD.format(id="technique/x", kind="technique") + "\n\n".join(parts)
    found = read_page("team", "technique/x.md", text.encode("utf-8", "replace"), "rev", vocabulary())
    if not isinstance(found, Page):
        return
    assert [s.place for s in found.sections] == list(range(len(found.sections)))
    for section in found.sections:
        assert len(section.asks) <= MAX_ASKS
        assert section.line_start <= section.line_end or not section.trail
    for passage in passages_of(found, "rev"):
        section = found.sections[passage.place]
        cited = passage.citation
        assert section.line_start <= cited.line_start <= cited.line_end <= section.line_end
        assert passage.asks == section.asks
    comments = [b for b in found.blocks if b.kind == "asks"]
    for passage in passages_of(found, "rev"):
        for block in comments:
            assert block.line_end < passage.citation.line_start or passage.citation.line_end < block.line_start


@pytest.mark.parametrize("found", bundled_pages(), ids=lambda p: p.path)
def test_no_ask_of_the_bundled_wiki_is_left_out(found: Page) -> None:
    for section in found.sections:
        if section.asks_line:
            comment = "\n".join(found.lines[section.asks_line - 1 :]).split("-->")[0].split("asks:")[1]
            assert len(section.asks) == len([part for part in comment.split(" · ") if part.strip()])
