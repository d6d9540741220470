"""Somebody's words in a document: shown as data, and told from what the document says."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from kbs.common.markdown import Markdown, bullets, inert, quoted, table, without_quoted

WORDS = st.text(alphabet=st.sampled_from("ab `\\|\n*4."), max_size=40)


@given(before=WORDS, foreign=WORDS, after=WORDS)
@example(before="\\", foreign="`", after="`")
@example(before="`` a", foreign="a `` ` b", after="b ``")
def test_foreign_words_are_taken_out_and_nothing_else(before: str, foreign: str, after: str) -> None:
    said = f"a{inert(before)}: ", f"; {inert(after)}"
    line = f"{said[0]}{quoted(foreign)}{said[1]}"
    assert "\n" not in line
    assert without_quoted(line) == (f"{said[0]} {said[1]}" if quoted(foreign) else "".join(said))


def test_lines_stay_where_they_are() -> None:
    text = "one ` two\nthree ` four\n" + quoted("x\ny")
    assert without_quoted(text) == "one ` two\nthree ` four\n "


def test_a_bar_in_a_cell_ends_no_cell() -> None:
    assert table(("a",), [(quoted("x | y"),)])[2] == "| ` x \\| y ` |"
    assert bullets([quoted("x | *y*"), "*y*"]) == ["- ` x | *y* `", "- \\*y\\*"]
    assert isinstance(quoted("x"), Markdown)


def test_addresses_become_no_links() -> None:
    assert inert("https://a.b www.x.org") == r"https\://a.b www\.x.org"
