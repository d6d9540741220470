"""The rules on sections: headings, asks, sources, length."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.evidence.passage import standing_alone
from tests.wiki.lint.test_lint import HEAD, NOTE, hardware, lines, make, page, problems

ASKS = "<!-- asks: {0} one · {0} two · {0} three -->"
LEAD = f"# Softmax\n{ASKS.format('softmax')}\n\nA softmax is a quotient.[^d]\n"
COST = (
    "| operation | cost | count | dims | dtype | note |\n|---|---|---|---|---|---|\n| softmax | read | 1 | M N | | x |"
)
ADVICE = (
    "| technique | bottleneck | because | source |\n|---|---|---|---|\n| [online-softmax](x.md) | | One pass. | doc 1 |"
)


def found(tmp_path: Path, rule: str, body: str) -> list[int]:
    """Lines of a body below `LEAD`, counted from 1, that break a rule."""
    text = f"{LEAD}\n{body}\n\n{NOTE}"
    return [line - HEAD - LEAD.count("\n") - 1 for _, line in lines(make(tmp_path, page(text)), rule)]


@pytest.mark.parametrize(
    "heading",
    [
        *("When it applies", "How it works", "Notes", "Limits and traps", "What to look for in a profile", "Overview"),
        *("Where sources disagree", "Why?", "How do I use this?", "See also", "**Details**", "What to try next"),
    ],
)
def test_a_heading_names_its_subject(tmp_path: Path, heading: str) -> None:
    assert found(tmp_path, "heading-answers-nothing", f"## {heading}\n{ASKS.format('a')}\n\nText.[^d]") == [1]
    assert standing_alone(heading, "Softmax").startswith("Softmax: ")


@pytest.mark.parametrize(
    "heading", ["When does an L2 swizzle pay?", "Softmax reads its row twice", "为什么慢", "`num_warps`", "FP8", "2"]
)
def test_a_heading_that_names_its_subject(tmp_path: Path, heading: str) -> None:
    assert found(tmp_path, "heading-answers-nothing", f"## {heading}\n{ASKS.format('a')}\n\nText.[^d]") == []
    assert not standing_alone(heading, "Softmax").startswith("Softmax: ")


def test_the_title_is_no_heading(tmp_path: Path) -> None:
    wiki = make(tmp_path, page(f"# Notes\n{ASKS.format('x')}\n\nText.[^d]\n\n{NOTE}", title="Notes"))
    assert lines(wiki, "heading-answers-nothing") == []
    assert standing_alone("Notes", "Notes") == "Notes"


@pytest.mark.parametrize("table", [f"## Cost\n\n{COST}\n\nCounts are of one pass.", f"## What to try\n\n{ADVICE}"])
def test_tables_that_are_read_by_row_need_no_asks(tmp_path: Path, table: str) -> None:
    for rule in ("heading-answers-nothing", "section-asks", "section-source"):
        assert found(tmp_path / rule, rule, table) == []


def test_an_ordinary_table_is_prose(tmp_path: Path) -> None:
    table = "## Cost\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert found(tmp_path / "a", "heading-answers-nothing", table) == [1]
    assert found(tmp_path / "b", "section-asks", table) == [1]
    assert found(tmp_path / "c", "section-source", table) == [1]
    assert found(tmp_path / "d", "section-source", table.replace("| b |", "| source |")) == []


def test_hardware_pages_tell_what_is_disputed_as_they_do(tmp_path: Path) -> None:
    rows = "| HBM bandwidth | 3.35 | TB/s | | inferred | doc 1 |"
    more = "\n\n## Where sources disagree\n\nPrefer the datasheet.\n\n## Not published\n\nThe L2 bandwidth."
    text = hardware(rows).replace("# A GPU\n", f"# A GPU\n{ASKS.format('gpu')}\n\nIt is one.[^d]\n")
    wiki = make(tmp_path, text.replace(f"\n\nText.[^d]\n\n{NOTE}", f"{more}\n\n{NOTE}"))
    for rule in ("heading-answers-nothing", "section-asks", "section-source"):
        assert lines(wiki, rule) == []


@pytest.mark.parametrize("asks", ["a · b", "a", "", " · ".join("abcdefghi")])
def test_three_to_eight_asks(tmp_path: Path, asks: str) -> None:
    body = "## Why pad a tile?\n<!-- asks: {} -->\n\nText.[^d]"
    assert found(tmp_path / "few", "section-asks", body.format(asks)) == [2]
    assert found(tmp_path / "good", "section-asks", body.format("a · b · c")) == []
    assert found(tmp_path / "many", "section-asks", body.format(" · ".join("abcdefgh"))) == []
    assert found(tmp_path / "none", "section-asks", "## Why pad a tile?\n\nText.[^d]") == [1]


def test_an_ask_is_short_and_stands_below_its_heading(tmp_path: Path) -> None:
    long = f"## Why pad?\n<!-- asks: a · b · {'c' * 121} -->\n\nText.[^d]"
    assert found(tmp_path / "long", "section-asks", long) == [2]
    assert found(tmp_path / "fits", "section-asks", long.replace("c" * 121, "c" * 120)) == []
    late = f"## Why pad?\n{ASKS.format('a')}\n\nText.[^d]\n\n{ASKS.format('b')}"
    assert found(tmp_path / "late", "section-asks", late) == [6]
    rest = f"## Why pad?\n{ASKS.format('a')} More.\n\nText.[^d]"
    assert found(tmp_path / "rest", "section-asks", rest) == [2]
    assert found(tmp_path / "open", "section-asks", "## Why pad?\n<!-- asks: a · b · c\n\nText.[^d]")[0] == 2


@pytest.mark.parametrize(
    "text",
    [
        "Text.[^d]",
        "Text.\nDerived: 1 + 1 = 2.",
        "One row: softmax, in x <- team/kernel/scan.md:L3",
        f"Text.\n\n{ADVICE}",
        "| a | source |\n|---|---|\n| 1 | doc 2 |",
    ],
)
def test_a_section_has_a_source(tmp_path: Path, text: str) -> None:
    body = "## Why pad a tile?\n" + ASKS.format("a") + "\n\n{}"
    assert found(tmp_path / "good", "section-source", body.format(text)) == []
    assert found(tmp_path / "none", "section-source", body.format("Text.\n`[^d]` is code.")) == [1]


def test_an_ask_belongs_to_one_section(tmp_path: Path) -> None:
    def told(id: str, heading: str, asks: str) -> str:
        return page(f"# {id}\n\n## {heading}\n<!-- asks: {asks} -->\n\nText.[^d]\n\n{NOTE}", f"kernel/{id}")

    wiki = make(
        tmp_path,
        told("a", "Why pad a tile?", "why pad · Bank conflicts: how? · 为什么"),
        told("b", "How do banks work?", "how, bank conflicts · b · c"),
        told("c", "When does padding pay?", "a tile -- why pad? · 为什么 · d"),
        told("d", "Cost", "e · e! · f"),
        told("e", "Cost", "why pads · g"),
    )
    line = HEAD + 4
    assert lines(wiki, "ask-twice") == [("kernel/b.md", line), ("kernel/c.md", line), ("kernel/c.md", line)]
    assert (
        problems(wiki, "ask-twice")[0].message
        == f"the section at kernel/a.md:{line - 1} is asked “how, bank conflicts” too"
    )
    assert all(problem.error for problem in problems(wiki, "ask-twice"))


def test_a_long_section_is_a_warning(tmp_path: Path) -> None:
    def body(count: int) -> str:
        return f"## Why pad a tile?\n{ASKS.format('a')}\n\n" + "\n".join(f"Sentence {n}.[^d]" for n in range(count))

    assert found(tmp_path / "ten", "section-length", body(10)) == []
    assert found(tmp_path / "more", "section-length", body(11)) == [1]
    assert not problems(make(tmp_path / "warning", page(LEAD + body(11))), "section-length")[0].error


def test_a_wiki_without_asks_gets_one_warning(tmp_path: Path) -> None:
    texts = [page(f"# {id}\n\n## Notes\n\nText.\n\n## How it works\n\nMore.", f"kernel/{id}") for id in "abc"]
    wiki = make(tmp_path, *texts)
    rules = ("heading-answers-nothing", "section-asks", "section-source", "ask-twice", "section-length")
    (warning,) = [problem for rule in rules for problem in problems(wiki, rule)]
    assert (warning.rule, warning.path, warning.error) == ("section-asks", "kernel/a.md", False)
    assert [problem for rule in rules for problem in problems(make(tmp_path / "empty"), rule)] == []


def test_asks_are_no_text_of_the_page_for_other_rules(tmp_path: Path) -> None:
    asks = "<!-- asks: is 5 GB at 80 % enough ·\n about 3 TB/s · [x](gone.md)[^gone]\n · three -->"
    wiki = make(tmp_path, page(f"# Softmax\n{asks}\n\nText.[^d]\n\n{NOTE}"))
    for rule in ("number-without-source", "hedge", "broken-link", "footnote"):
        assert lines(wiki, rule) == []
