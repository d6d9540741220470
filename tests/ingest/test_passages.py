"""Passages: exact lines, whole tables and code, every line of prose once, and ids that do not move with lines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from ingest.passages import MAX_WORDS, passages_of
from kbs.evidence.citation import lines_hash
from kbs.evidence.vocabulary import vocabulary
from tests.bundled_pages import bundled_pages
from wiki.page import Page
from wiki.reader import read_page

MakePage = Callable[..., str]


def read(text: str, path: str = "technique/x.md") -> Page:
    found = read_page("team", path, text.encode(), "rev", vocabulary())
    assert isinstance(found, Page), found
    return found


PAGES = bundled_pages()


@pytest.mark.parametrize("found", PAGES, ids=lambda found: found.path)
def test_the_passages_of_a_real_page(found: Page) -> None:
    passages = passages_of(found, "rev")
    covered: list[int] = []
    for passage in passages:
        cited = passage.citation
        lines = found.lines[cited.line_start - 1 : cited.line_end]
        assert passage.text == cited.quote == "\n".join(lines)
        assert cited.hash == lines_hash(lines)
        assert lines[0].strip()
        assert lines[-1].strip()
        covered += range(cited.line_start, cited.line_end + 1)
    assert len(covered) == len(set(covered)), "two passages share a line"
    assert covered == sorted(covered)
    prose = {n for b in found.blocks if b.kind not in ("footnote", "asks") for n in range(b.line_start, b.line_end + 1)}
    assert {n for n in prose if found.lines[n - 1].strip()} <= set(covered)
    for block in found.blocks:
        if block.kind in ("table", "code"):
            spans = [(p.citation.line_start, p.citation.line_end) for p in passages]
            assert any(a <= block.line_start and block.line_end <= b for a, b in spans), "a block was cut"
        if block.kind in ("footnote", "asks"):
            assert not set(range(block.line_start, block.line_end + 1)) & set(covered)
    assert all(a.place <= b.place for a, b in pairwise(passages))
    assert {(p.place, p.asks) for p in passages} <= {(s.place, s.asks) for s in found.sections}
    assert len({p.id for p in passages}) == len(passages)


def test_ids_are_those_of_no_other_page() -> None:
    ids = [passage.id for found in PAGES for passage in passages_of(found, "rev")]
    assert len(ids) == len(set(ids))


def test_a_passage_ends_where_the_heading_changes(page: MakePage) -> None:
    found = read(page("technique/x", "# X\n\nLead.\n\n## A\n\nOne.\n\nTwo.\n\n## B\n\nThree.", title="X"))
    assert [(p.trail, p.text) for p in passages_of(found, "r")] == [
        ((), "Lead."),
        (("A",), "One.\n\nTwo."),
        (("B",), "Three."),
    ]
    assert [p.embedded for p in passages_of(found, "r")] == ["X\nLead.", "X > A\nOne. Two.", "X > B\nThree."]


def test_long_prose_is_cut_between_lines_and_tables_are_not(page: MakePage) -> None:
    prose = "\n".join(f"Sentence {n} has exactly eight words in it." for n in range(100))
    table = "| a | b |\n|---|---|\n" + "\n".join(f"| cell {n} | another cell |" for n in range(200))
    code = "```cuda\n" + "\n".join(f"int a{n} = {n};\n" for n in range(200)) + "```"
    found = read(page("technique/x", f"{prose}\n\n{table}\n\n{code}"))
    passages = passages_of(found, "r")
    texts = [p.text for p in passages]
    assert table in "\n".join(texts)
    assert sum(table in text for text in texts) == 1
    assert sum(code in text for text in texts) == 1
    in_prose = [text for text in texts if text.startswith("Sentence")]
    assert "\n".join(in_prose) == prose
    assert len(in_prose) > 3
    assert all(len(text.split()) <= MAX_WORDS for text in in_prose)


def test_ids_stay_when_lines_move_and_change_with_words(page: MakePage) -> None:
    body = "# X\n\nLead.\n\n## A\n\nOne.\n\n## B\n\nTwo."
    before = passages_of(read(page("technique/x", body)), "r")
    moved = passages_of(read(page("technique/x", "\n\n\n" + body.replace("\n\n", "\n\n\n\n"))), "r2")
    assert [p.id for p in moved] == [p.id for p in before]
    assert [p.embedding_key for p in moved] == [p.embedding_key for p in before]
    assert [p.citation.line_start for p in moved] != [p.citation.line_start for p in before]
    changed = passages_of(read(page("technique/x", body.replace("One", "Other"))), "r")
    assert [a.id == b.id for a, b in zip(before, changed, strict=True)] == [True, False, True]


def test_the_same_words_twice_have_two_ids_and_one_vector(page: MakePage) -> None:
    first, between, second = passages_of(read(page("technique/x", "## A\n\nOne.\n\n## B\n\nTwo.\n\n## A\n\nOne.")), "r")
    assert first.id != second.id
    assert first.embedding_key == second.embedding_key != between.embedding_key


def test_ids_differ_between_wikis_and_pages(page: MakePage) -> None:
    text = page("technique/x", "One.")
    one = read_page("team", "technique/x.md", text.encode(), "r", vocabulary())
    two = read_page("other", "technique/x.md", text.encode(), "r", vocabulary())
    assert isinstance(one, Page)
    assert isinstance(two, Page)
    assert passages_of(one, "r")[0].id != passages_of(two, "r")[0].id


def test_a_page_of_a_heading_alone_has_no_passage(page: MakePage) -> None:
    assert passages_of(read(page("technique/x", "# X")), "r") == []
