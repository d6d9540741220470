"""Reading one page: what it gives, what is wrong with it and at which line, and that nothing makes it raise."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal

import pytest

from kbs.evidence.vocabulary import vocabulary
from wiki.page import MAX_PAGE_BYTES, Page, Problem, split_lines
from wiki.reader import links, read_page

MakePage = Callable[..., str]
BODY = 11
"""Line of the first line of the body of a page that `page` makes."""
SPECS = "| metric | value | unit | qualifier | confidence | source |\n|---|---|---|---|---|---|\n"
COSTS = "| operation | cost | count | dims | dtype | note |\n|---|---|---|---|---|---|\n"
ADVICE = "| technique | bottleneck | because | source |\n|---|---|---|---|\n"
THRESHOLDS = "| symptom | metric | test | value | unit | source |\n|---|---|---|---|---|---|\n"
MEASURED = "| operation | gpu | dtype | shape | metric | value | unit | what | source |\n" + "|---" * 9 + "|\n"


def read(text: str | bytes, path: str = "technique/x.md") -> Page | list[Problem]:
    data = text.encode() if isinstance(text, str) else text
    return read_page("team", path, data, "rev", vocabulary())


def good(text: str | bytes, path: str = "technique/x.md") -> Page:
    found = read(text, path)
    assert isinstance(found, Page), found
    return found


def bad(text: str | bytes, path: str = "technique/x.md") -> Problem:
    found = read(text, path)
    assert isinstance(found, list), "it was read"
    assert all(problem.path == path and problem.error for problem in found)
    return found[0]


# --- the page -------------------------------------------------------------------------------------------------------


def test_a_page_keeps_its_lines_meta_and_blocks(page: MakePage) -> None:
    text = page(
        "technique/x",
        "# X\n\nLead.[^a]\n\n## How\n\n- one\n- two\n\n```cuda\nint i;\n```\n\n[^a]: src p. 1.",
        title="X",
        more="tags: [roofline]",
    )
    found = good(text)
    assert found.lines == tuple(text.split("\n")[:-1])
    assert (found.meta.title, found.meta.tags, found.meta.sources[0].id) == ("X", ("roofline",), "src")
    assert found.lines[found.body_start - 2] == "---"
    kinds = [(block.kind, block.trail) for block in found.blocks]
    assert kinds == [("text", ("X",)), ("text", ("X", "How")), ("code", ("X", "How")), ("footnote", ("X", "How"))]
    code = found.blocks[2]
    assert list(found.text(code.line_start, code.line_end)) == ["```cuda", "int i;", "```"]
    assert code.info == "cuda"
    assert found.problems == ()


def test_sibling_headings_replace_each_other(page: MakePage) -> None:
    found = good(page("technique/x", "# X\n\n## A\n\na\n\n### B\n\nb\n\n## C\n\nc"))
    assert [block.trail for block in found.blocks] == [("X", "A"), ("X", "A", "B"), ("X", "C")]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_line_ends_and_a_byte_order_mark_change_no_line(page: MakePage, end: str, mark: bytes) -> None:
    text = page("technique/x", "# X\n\nOne.\nTwo.[^a]\n\n[^a]: src p. 1.")
    usual, other = good(text), good(mark + text.replace("\n", end).encode())
    assert other.lines == usual.lines
    assert other.blocks == usual.blocks
    assert other.footnotes == usual.footnotes


def test_a_page_without_an_end_of_line_keeps_its_last_line(page: MakePage) -> None:
    assert good(page("technique/x", "Last").rstrip("\n")).lines[-1] == "Last"
    assert split_lines("a\n\n") == ("a", "")


def test_footnotes_have_the_line_that_defines_them(page: MakePage) -> None:
    found = good(page("technique/x", "One.[^a] Two.[^b]\n\n[^a]: src p. 1.\n[^b]: src p. 2."))
    assert found.footnotes == {"a": BODY + 2, "b": BODY + 3}


def test_a_footnote_that_is_defined_twice_is_a_problem(page: MakePage) -> None:
    found = good(page("technique/x", "One.[^a]\n\n[^a]: src p. 1.\n\n[^a]: src p. 2."))
    assert [(p.line, p.rule) for p in found.problems] == [(BODY + 4, "footnote")]
    assert found.footnotes == {"a": BODY + 2}


def test_links_leave_code_out(page: MakePage) -> None:
    found = good(page("technique/x", "A [b](c.md) and `[d](e.md)`.\n\n    [f](g.md)\n"))
    assert links(found) == [(BODY, "c.md")]


# --- front matter ---------------------------------------------------------------------------------------------------


def with_line(page: MakePage, old: str, new: str) -> str:
    text = page("technique/x", "# X", title="X")
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("---\n", "", 1, "does not begin with a front matter"),
        ("kind: technique", "kind: recipe", 3, "kind"),
        ("title: X", "title: a: b", 4, "YAML"),
        ("title: X", "nickname: X", 4, "nickname"),
        ("title: X", "title: X\ntags: [Not A Slug]", 5, "tags.0"),
        ("confidence: verified", "confidence: certain", 5, "confidence"),
        ("reviewed: 2026-11-21", "reviewed: 2026-02-31", 6, "reviewed"),
        ("kind: vendor-doc", "kind: rumour", 8, "sources.0.kind"),
        ("id: technique/x", "id: technique/y", 2, "not the path"),
        ("title: X", "title: \x01", 4, "YAML"),
        ("title: X", "title: !!python/object/apply:os.getcwd []", 4, "title"),
    ],
)
def test_a_wrong_front_matter_is_told_with_its_line(page: MakePage, old: str, new: str, line: int, says: str) -> None:
    found = read(with_line(page, old, new))
    assert isinstance(found, list)
    assert any(problem.line == line and says in problem.message for problem in found), found
    assert {problem.rule for problem in found} == {"front-matter"}


def test_a_missing_field_is_named(page: MakePage) -> None:
    assert "confidence: Field required" in bad(with_line(page, "confidence: verified\n", "")).message


@pytest.mark.parametrize("front", ["", "- a\n- b\n", "just words\n", "&a [*a]\n"])
def test_a_front_matter_that_is_no_mapping(front: str) -> None:
    assert bad(f"---\n{front}---\n").rule == "front-matter"


def test_a_front_matter_without_end() -> None:
    assert bad("---\nid: technique/x\n").message == "the front matter has no closing --- line"


def test_every_wrong_field_is_told_at_once(page: MakePage) -> None:
    found = read(with_line(page, "title: X", "title: ''\nwrong: 1"))
    assert isinstance(found, list)
    assert [problem.line for problem in found] == [4, 5]


# --- bytes and bombs ------------------------------------------------------------------------------------------------


def test_bytes_that_are_not_utf8_are_told_with_their_line(page: MakePage) -> None:
    problem = bad(page("technique/x", "one\ntwo").encode() + b"\xff\xfe")
    assert (problem.rule, problem.line) == ("encoding", BODY + 2)


def test_a_nul_is_told_with_its_line(page: MakePage) -> None:
    problem = bad(page("technique/x", "one\nt\x00wo"))
    assert (problem.rule, problem.line) == ("encoding", BODY + 1)


def test_a_page_of_the_largest_size_is_read_and_a_larger_one_is_not(page: MakePage) -> None:
    text = page("technique/x", "# X\n\nOne.").encode()
    filled = text + b"\n" * (MAX_PAGE_BYTES - len(text))
    assert len(good(filled).blocks) == 1
    assert bad(filled + b"\n").rule == "page-size"


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(c + 1)}: &{chr(c + 1)} [{','.join([f'*{chr(c)}'] * 9)}]\n" for c in range(ord("a"), ord("m"))
)


@pytest.mark.parametrize(
    "front",
    [BOMB, "a: &a [*a]", "[" * 400_000, "{a: " * 200_000, "- " * 200_000, "? " * 200_000, "a: " + "[x]," * 100_000],
    ids=["laughs", "recursion", "lists", "maps", "block lists", "keys", "many"],
)
def test_yaml_bombs_are_refused(front: str) -> None:
    assert bad(f"---\n{front}\n---\n").rule == "front-matter"


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "[",
        "![",
        "*",
        "[](",
        "[^a",
        "`",
        "`a",
        "``a",
        "[`",
        "`_",
        "`a\n",
        "<",
        ">",
        "- ",
        "1. ",
        " ",
        " " * 40 + "|",
        "\t",
        "&#",
        "<!--",
        "|",
        "_a ",
        "\n",
    ],
)
def test_text_that_never_ends_takes_no_quadratic_time(page: MakePage, unit: str) -> None:
    """With a quadratic step somewhere each of these takes at least ten times as long."""
    from ingest.passages import passages_of

    start = time.process_time()
    found = read(page("technique/x", unit * (200_000 // len(unit))))
    if isinstance(found, Page):
        passages_of(found, "rev")
        links(found)
    assert time.process_time() - start < 6


def test_deep_nesting_ends_quietly(page: MakePage) -> None:
    found = good(page("technique/x", "".join(" " * depth + "- a\n" for depth in range(500)) + "\nAfter."))
    assert found.blocks[-1].kind in ("text", "code")


# --- tables ---------------------------------------------------------------------------------------------------------


def hardware(page: MakePage, rows: str, heading: str = "## Specifications") -> Page:
    return good(
        page("hardware/my-gpu", f"{heading}\n\n{SPECS}{rows}", title="My GPU", more="vendor: nvidia"),
        "hardware/my-gpu.md",
    )


def test_spec_rows_become_specs_that_cite_their_line(page: MakePage) -> None:
    found = hardware(
        page,
        "| HBM bandwidth | 3.35 | TB/s | | verified | src p. 2 |\n"
        "| BF16 tensor throughput | 989.4 | TFLOPS | dense | source-reported | src p. 3 |\n"
        "| L2 bandwidth | unpublished | TB/s | | verified | derived: none is printed |\n",
    )
    assert found.problems == ()
    bandwidth, tensor, gap = found.specs
    assert (bandwidth.product, bandwidth.metric, bandwidth.value, bandwidth.unit) == (
        *("my-gpu", "hbm_bandwidth", "3.35"),
        "TB/s",
    )
    assert bandwidth.base(vocabulary()) == Decimal("3.35e12")
    assert (bandwidth.source.id, bandwidth.source.place, bandwidth.recommended) == ("src", "p. 2", True)
    assert bandwidth.citation.quote == found.lines[bandwidth.citation.line_start - 1]
    assert bandwidth.citation.reference == f"team/hardware/my-gpu.md:L{BODY + 5}"
    assert tensor.qualifier == "dense"
    assert not gap.published
    assert gap.source.id == "derived"


def test_rows_under_where_sources_disagree_are_not_recommended(page: MakePage) -> None:
    row = "| HBM bandwidth | 3 | TB/s | | verified | src p. 2 |\n"
    assert [spec.recommended for spec in hardware(page, row, "## Where sources disagree").specs] == [False]
    assert [spec.recommended for spec in hardware(page, row, "## Where they agree").specs] == [True]


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("| Charm | 3 | TB/s | | verified | src |", "vocabulary"),
        ("| HBM bandwidth | fast | TB/s | | verified | src |", "table-row"),
        ("| HBM bandwidth | | TB/s | | verified | src |", "table-row"),
        ("| HBM bandwidth | 3 | TFLOPS | | verified | src |", "unit"),
        ("| HBM bandwidth | 3 | | | verified | src |", "unit"),
        ("| HBM bandwidth | 3 | TB/s | shiny | verified | src |", "vocabulary"),
        ("| HBM bandwidth | 3 | TB/s | | sure | src |", "vocabulary"),
        ("| HBM bandwidth | 3 | TB/s | | verified | other p. 1 |", "undefined-source"),
        ("| HBM bandwidth | 3 | TB/s |", "vocabulary"),
        ("| HBM bandwidth | 1e999999999 | TB/s | | verified | src |", "table-row"),
    ],
)
def test_a_broken_row_is_told_and_the_others_are_read(page: MakePage, row: str, rule: str) -> None:
    found = hardware(page, f"| TDP | 700 | W | | verified | src |\n{row}\n| SM count | 132 | SM | | verified | src |\n")
    assert [(problem.line, problem.rule) for problem in found.problems] == [(BODY + 6, rule)]
    assert [spec.metric for spec in found.specs] == ["tdp", "sm_count"]


def test_only_a_hardware_page_states_specs(page: MakePage) -> None:
    found = good(page("technique/x", f"{SPECS}| HBM bandwidth | 3 | TB/s | | verified | src |"))
    assert found.specs == ()
    assert [problem.rule for problem in found.problems] == ["table-row"]


def test_cost_rows(page: MakePage) -> None:
    rows = "| softmax | vector FLOP | 5 | M N | | five |\n| softmax | read | 1 | M N | fp32 | |\n"
    found = good(page("kernel/softmax", COSTS + rows), "kernel/softmax.md")
    assert [(row.cost, row.count, row.dims, row.dtype) for row in found.costs] == [
        ("vector FLOP", "5", ("M", "N"), ""),
        ("read", "1", ("M", "N"), "fp32"),
    ]


@pytest.mark.parametrize(
    "row",
    [
        "| softmin | read | 1 | M N | | |",
        "| softmax | think | 1 | M N | | |",
        "| softmax | read | one | M N | | |",
        "| softmax | read | -1 | M N | | |",
        "| softmax | read | NaN | M N | | |",
        "| softmax | read | Infinity | M N | | |",
        "| softmax | read | 1e99999999 | M N | | |",
        "| softmax | read | 1 | M Q | | |",
        "| softmax | read | 1 | M N | fp7 | |",
    ],
)
def test_a_broken_cost_row_is_left_out(page: MakePage, row: str) -> None:
    found = good(page("kernel/softmax", COSTS + row), "kernel/softmax.md")
    assert found.costs == ()
    assert [problem.line for problem in found.problems] == [BODY + 2]


def test_advice_rows_take_a_link_or_an_id(page: MakePage) -> None:
    rows = (
        "| [online-softmax](../technique/online-softmax.md) | memory-bound | One pass. | src p. 1 |\n"
        "| kernel-fusion | memory-bound | No round trip. | src p. 2 |\n"
        "| prayer | memory-bound | It helps. | src p. 3 |\n"
    )
    found = good(page("kernel/softmax", ADVICE + rows), "kernel/softmax.md")
    assert [row.technique for row in found.advice] == ["online-softmax", "kernel-fusion"]
    assert [problem.line for problem in found.problems] == [BODY + 4]


def test_threshold_rows(page: MakePage) -> None:
    rows = (
        "| low-throughput | sm__throughput.avg | < | 60 | % | src |\n"
        "| low-throughput | sm__throughput.avg | ~ | 60 | % | src |\n"
        "| low-throughput | sm__throughput.avg | < | many | % | src |\n"
    )
    found = good(page("profiling/x", THRESHOLDS + rows), "profiling/x.md")
    assert [(row.symptom, row.test, row.value) for row in found.thresholds] == [("low-throughput", "<", "60")]
    assert [problem.line for problem in found.problems] == [BODY + 3, BODY + 4]


def test_measured_rows(page: MakePage) -> None:
    row = "| softmax | H100 SXM | fp32 | 1 x 2 | memory throughput | 3.01 | TB/s | QuACK | src t. 1 |\n"
    found = good(page("kernel/softmax", MEASURED + row), "kernel/softmax.md")
    assert [(m.gpu, m.value, m.citation.line_start) for m in found.measured] == [("H100 SXM", "3.01", BODY + 2)]


def test_an_ordinary_table_is_left_alone(page: MakePage) -> None:
    found = good(page("technique/x", "| metric | value |\n|---|---|\n| HBM bandwidth | fast |"))
    assert found.problems == ()
    assert [block.kind for block in found.blocks] == ["table"]
