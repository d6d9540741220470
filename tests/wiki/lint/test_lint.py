"""Each rule of the lint: a page that breaks it, with the line, and one that does not."""

from __future__ import annotations

import datetime
import errno
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.common.errors import KoptError
from kbs.evidence.vocabulary import vocabulary
from tests.bundled_pages import bundled_pages
from wiki.index_page import GENERATED
from wiki.library import Wiki, bundled_wiki
from wiki.lint import RULES, Fix, apply_fix, fixes, lint
from wiki.lint.rule import REGISTERED
from wiki.lint.rules import structure
from wiki.lint.rules.text import tidy
from wiki.page import Problem

TODAY = datetime.date(2026, 11, 21)
DOC = '{id: doc, title: "A guide", url: "https://example.org/doc", kind: vendor-doc, accessed: 2026-11-21}'
CARD = '{id: card, title: "A card", url: "https://example.org/card", kind: fact-card, accessed: 2026-11-21}'
OWN = '{id: own, title: "A record", url: "docs/record.md", kind: measurement, accessed: 2026-11-21}'
SPEC_HEAD = "| metric | value | unit | qualifier | confidence | source |\n|---|---|---|---|---|---|"
LEAD = "A softmax divides exponentials by their sum.[^d]"
NOTE = "[^d]: doc section 1."
HEAD = 9
"""Lines above the body of a page."""
SPEC_ROW = 16
"""Line of the first spec row of a hardware page."""

IDS = """
    ask-twice board-identity board-named broken-link code-block contradiction dense-or-sparse duplicate
    duplicate-spec encoding figure-against-row footnote front-matter heading-answers-nothing hedge index-entry
    invisible-character markdown method number-without-source orphan out-of-range page-size placeholder
    python-block repeated-sentence review-date row-against-row row-vocabulary section-asks section-length
    section-source section-text sentence-line signature source-entry sources-record table-header table-row
    undefined-source unit unreadable unsupported-verified unused-source value-of-row vocabulary whitespace
    wrong-arithmetic
"""


def page(
    body: str,
    id: str = "kernel/softmax",
    *,
    extra: str = "",
    sources: tuple[str, ...] = (DOC,),
    confidence: str = "source-reported",
    reviewed: str = "2026-11-21",
    title: str = "",
) -> str:
    """A page; without `extra` and with one source its body begins in line 10, after HEAD."""
    kind = id.split("/")[0]
    listed = "".join(f"  - {source}\n" for source in sources)
    return (
        f"---\nid: {id}\nkind: {kind}\ntitle: {title or id.split('/')[1].title()}\n{extra}"
        f"confidence: {confidence}\nreviewed: {reviewed}\nsources:\n{listed}---\n{body}\n"
    )


def hardware(rows: str, id: str = "hardware/h100-sxm", *, above: str = "## Specifications", **kwargs: Any) -> str:
    """A hardware page; its first spec row stands at SPEC_ROW."""
    kwargs.setdefault("extra", "vendor: nvidia\n")
    return page(f"# A GPU\n\n{above}\n{SPEC_HEAD}\n{rows}\n\nText.[^d]\n\n{NOTE}", id, **kwargs)


def make(root: Path, *texts: str, **files: str) -> Wiki:
    """A wiki of pages, each at the path that its id says, and of further files."""
    for text in texts:
        id = text.split("id: ", 1)[1].split()[0]
        (root / id).parent.mkdir(parents=True, exist_ok=True)
        (root / f"{id}.md").write_bytes(text.encode())
    for name, text in files.items():
        (root / f"{name}.md").write_bytes(text.encode())
    return Wiki("team", root)


def problems(wiki: Wiki, rule: str, record: Path | None = None) -> list[Problem]:
    assert rule in RULES
    return [p for p in lint(wiki, vocabulary(), today=TODAY, sources_record=record) if p.rule == rule]


def lines(wiki: Wiki, rule: str) -> list[tuple[str, int]]:
    return [(p.path, p.line) for p in problems(wiki, rule)]


def body_lines(tmp_path: Path, rule: str, body: str) -> list[int]:
    """Lines of the body, counted from 1, that break a rule."""
    return [line - HEAD for _, line in lines(make(tmp_path, page(body)), rule)]


def test_a_good_page_has_no_problem_but_a_missing_index(tmp_path: Path) -> None:
    asks = "<!-- asks: what is {0} · {0} meaning · who needs {0} -->"
    body = f"# Softmax\n{asks.format('softmax')}\n\n{LEAD}\nSee [scan](../kernel/scan.md#why-a-scan-is-slow).\n\n{NOTE}"
    other = f"# Scan\n{asks.format('scan')}\n\nSee [softmax](softmax.md).[^d]\n\n## Why a scan is slow\n"
    other += f"{asks.format('slowness')}\n\nIt adds.[^d]\n\n{NOTE}"
    wiki = make(tmp_path, page(body), page(other, "kernel/scan"))
    assert [(p.rule, p.path) for p in lint(wiki, vocabulary(), today=TODAY)] == [("index-entry", "README.md")]
    for fix in fixes(wiki, vocabulary()):
        apply_fix(wiki, fix)
    assert lint(wiki, vocabulary(), today=TODAY) == []


def test_rule_ids_are_stable_and_have_a_summary_of_one_line() -> None:
    assert list(RULES) == IDS.split()
    assert all(summary.endswith(".") and "\n" not in summary for summary in RULES.values())


def test_every_rule_explains_itself() -> None:
    for rule in REGISTERED:
        if rule.id not in structure.READER_RULES:
            parts = [part.partition(":")[0] for part in rule.explanation.split("\n\n")]
            assert [part.split()[0] for part in parts[1:]] == ["Checks", "Why", "Example"], rule.id


def test_problems_of_the_reader_are_passed_on(tmp_path: Path) -> None:
    broken = page("Text").replace("confidence: source-reported", "confidence: sure")
    rows = (
        "| HBM bandwidth | 3.35 | kg | | inferred | doc 1 |\n| HBM bandwidth | fast | TB/s | read | inferred | doc 1 |"
    )
    wiki = make(tmp_path, broken, hardware(rows))
    assert lines(wiki, "front-matter") == [("kernel/softmax.md", 5)]
    assert lines(wiki, "unit") == [("hardware/h100-sxm.md", SPEC_ROW)]
    assert lines(wiki, "table-row") == [("hardware/h100-sxm.md", SPEC_ROW + 1)]


def test_names_of_the_front_matter_are_in_the_vocabulary(tmp_path: Path) -> None:
    extra = "vendor: nvidea\ntags:\n  - reduction\n  - reductions\noperations: [softmax, hardmax]\n"
    wiki = make(tmp_path, page("Text", extra=extra))
    assert lines(wiki, "vocabulary") == [("kernel/softmax.md", 5), ("kernel/softmax.md", 8), ("kernel/softmax.md", 9)]


def test_known_names_and_a_hardware_page_without_vendor(tmp_path: Path) -> None:
    extra = "vendor: nvidia\narchitectures: [hopper]\ntags: [reduction]\n"
    wiki = make(tmp_path, page("Text", extra=extra), page("Text", "hardware/h100-sxm"))
    assert lines(wiki, "vocabulary") == []
    assert lines(wiki, "front-matter") == [("hardware/h100-sxm.md", 3)]


def test_duplicate_alias_title_and_product(tmp_path: Path) -> None:
    wiki = make(
        tmp_path,
        page("Text", "kernel/a", extra="aliases: [row softmax]\n"),
        page("Text", "kernel/b", extra="aliases: [plain, Row-Softmax]\n"),
        page("Text", "kernel/c", title="A"),
        page("Text", "hardware/h100-sxm", extra="vendor: nvidia\naliases: [H100 SXM5]\n"),
        page("Text", "hardware/mine", extra="product: h100-sxm\nvendor: nvidia\naliases: [my own]\n"),
        page("Text", "hardware/zero", extra="aliases: [H200]\nvendor: nvidia\n"),
    )
    assert lines(wiki, "duplicate") == [
        ("hardware/mine.md", 5),
        ("hardware/zero.md", 5),
        ("kernel/b.md", 5),
        ("kernel/c.md", 4),
    ]


def test_links_lead_somewhere(tmp_path: Path) -> None:
    body = "\n".join([
        "# One two: `three`", "", "[self](#one-two-three)", "[gone](gone.md)", "[out](../../etc/x.md)",
        "[anchor](scan.md#why)", "[there](scan.md#why-1)", "[site](https://example.org/#x)", "`[code](nothing.md)`",
        "[no such](#four)", "[index](../README.md)",
    ])  # fmt: skip
    wiki = make(
        tmp_path, page(body), page("# Scan\n\n## Why not\n\n## Why\n\n## Why\n\nText", "kernel/scan"), README="x"
    )
    assert [line - HEAD for _, line in lines(wiki, "broken-link")] == [4, 5, 10]


@pytest.mark.parametrize(
    "sentence",
    [
        "The H100 reads 3.35 TB/s.",
        "A row takes 12 µs.",
        "A load of 16 bytes is best.",
        "The kernel is 1.5 times as fast.",
        "A swizzle gives 2x.",
        "Fusion makes it twice as fast.",
        "The kernel ran 1.3x faster.",
        "A thread has at most 64 registers.",
        "The cache hits 80 % of the time.",
        "A value of `dram__throughput.pct` above 60 means memory.",
        "- It has 132 SMs.",
        "`[^d]` is no reference for 5 GB.",
    ],
)
def test_a_number_needs_a_source(tmp_path: Path, sentence: str) -> None:
    assert body_lines(tmp_path, "number-without-source", f"# T\n\n{sentence}") == [3]
    assert body_lines(tmp_path, "number-without-source", f"# T\n\n{sentence}[^d]\n\n{NOTE}") == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Derived: 4096 × 4 B = 16,384 B.",
        "- Derived: 4096 × 4 B = 16,384 B.",
        "A block of 256 threads runs one tree of a 32-byte sector with 128-bit loads.",
        "Each addition counts as 1 FLOP.",
        "The A100 SXM 40 GB and the H100 SXM 80GB differ.",
        "See [the 40 GB card](scan.md).",
        "`x = 5 GB`",
        "A 4096 × 4096 matrix, or 16384 x 131072, in FP32.",
        "A value of `launch__waves_per_multiprocessor` below 1 means few blocks.",
        "H100 bandwidth: 3.35 TB/s <- team/hardware/h100-sxm.md:L16",
        "## A heading with 5 GB",
        "| a | 5 GB |\n|---|---|\n| b | 6 GB |",
        "```\n5 GB\n```",
        "- a list\n\n  ```text\n  5 GB\n  ```",
        "It was so in the 1990s.",
    ],
)
def test_a_number_that_is_no_fact_needs_none(tmp_path: Path, sentence: str) -> None:
    assert body_lines(tmp_path, "number-without-source", f"# T\n\n{sentence}") == []


def test_footnotes_and_references_belong_together(tmp_path: Path) -> None:
    body = "# T\n\nA fact.[^d][^gone]\n`[^code]` is none.\n\n[^d]: doc 1.\n[^spare]: doc 2.\n[^odd]: somewhere else."
    wiki = make(tmp_path, page(body))
    assert [line - HEAD for _, line in lines(wiki, "footnote")] == [3, 7, 8]
    assert [line - HEAD for _, line in lines(wiki, "undefined-source")] == [8]


def test_every_source_is_used(tmp_path: Path) -> None:
    wiki = make(
        tmp_path,
        page("# T\n\nA card of doc.[^c]\n\n[^c]: card p. 1; own page 2.", sources=(DOC, CARD, OWN)),
        page("| a | source |\n|---|---|\n| b | doc 1 |", "kernel/scan"),
    )
    assert lines(wiki, "unused-source") == [("kernel/softmax.md", 8)]


@pytest.mark.parametrize(
    "sum",
    [
        "989.4 TFLOPS / 3.35 TB/s = 296.3 FLOP/byte",
        "the share is 794.5 / 989.4 = 81.3 %, so little is left",
        "a grid of 4096 / 132 = 32 waves",
        "(3 + 4) × 2 = 15",
        "it takes 228 KB / 2 − 1 KB = 112 KB",
    ],
)
def test_wrong_arithmetic(tmp_path: Path, sum: str) -> None:
    assert body_lines(tmp_path, "wrong-arithmetic", f"# T\n\nDerived: {sum}.") == [3]


@pytest.mark.parametrize(
    "sum",
    [
        "989.4 TFLOPS / 3.35 TB/s = 295.3 FLOP/byte",
        "the share is 794.5 / 989.4 = 80.3 %, so little is left",
        "16459.2 / 15971.7 − 1 = 3.1 %",
        "50 MB / 132 = 388 KB",
        "989.4 × 1980 / 1830 = 1,070.5 TFLOPS",
        "16 / 128 = 1/8 of the rate",
        "5 M N FLOP / (2 × 4 M N bytes) = 0.625 FLOP/byte",
        "2^20 / 4 = 262144",
        "ceil(132 / 8) = 17",
        "N = 4096 / 2 = 2048",
        "x >= 4 / 2",
        "6,016 bit / 8 × 2 × 2,619 MHz = 3.939 TB/s",
        "64 K × 4 = 256 K",
    ],
)
def test_right_or_unreadable_arithmetic(tmp_path: Path, sum: str) -> None:
    assert body_lines(tmp_path, "wrong-arithmetic", f"# T\n\nDerived: {sum}.") == []


def test_arithmetic_is_read_in_source_cells(tmp_path: Path) -> None:
    rows = "| BF16 ridge point | 295 | FLOP/byte | dense | inferred | derived: 989.4 / 3.35 = 395 |"
    assert lines(make(tmp_path, hardware(rows)), "wrong-arithmetic") == [("hardware/h100-sxm.md", SPEC_ROW)]


def test_verified_rests_on_a_vendor_or_a_measurement(tmp_path: Path) -> None:
    rows = "\n".join(
        f"| HBM bandwidth | 3.35 | TB/s | {qualifier} | verified | {source} p. 2 |"
        for qualifier, source in (("read", "card"), ("copy", "doc"), ("triad", "own"), ("rounded", "derived: 1 + 1"))
    )
    second_hand = page("Text.[^c]\n\n[^c]: card", "kernel/a", sources=(CARD,), confidence="verified")
    wiki = make(tmp_path, hardware(rows, sources=(DOC, CARD, OWN), confidence="verified"), second_hand)
    start = SPEC_ROW + 2
    assert lines(wiki, "unsupported-verified") == [
        ("hardware/h100-sxm.md", start),
        ("hardware/h100-sxm.md", start + 3),
        ("kernel/a.md", 5),
    ]


def test_a_value_is_plausible(tmp_path: Path) -> None:
    rows = (
        "| HBM bandwidth | 3352 | TB/s | | inferred | doc 1 |\n"
        "| HBM bandwidth | 3352 | GB/s | read | inferred | doc 1 |\n"
        "| L2 capacity | 50 | MB | | inferred | doc 1 |\n| INT4 tensor throughput | none | | | inferred | doc 1 |"
    )
    assert lines(make(tmp_path, hardware(rows)), "out-of-range") == [("hardware/h100-sxm.md", SPEC_ROW)]


def test_dense_or_sparse_is_said(tmp_path: Path) -> None:
    rows = (
        "| BF16 tensor throughput | 989 | TFLOPS | rounded | inferred | doc 1 (dense) |\n"
        "| BF16 tensor throughput | 989 | TFLOPS | dense | inferred | doc 1 |\n"
        "| FP4 tensor throughput | none | | | inferred | doc 1 |\n"
        "| FP32 throughput | 67 | TFLOPS | | inferred | doc 1 |"
    )
    other = "| BF16 tensor throughput | 989 | TFLOPS | rounded | inferred | doc 1 (dense) |"
    disagreeing = hardware(other, "hardware/h200-sxm", above="## Where sources disagree")
    assert lines(make(tmp_path, hardware(rows), disagreeing), "dense-or-sparse") == [("hardware/h100-sxm.md", SPEC_ROW)]


def test_one_value_is_recommended(tmp_path: Path) -> None:
    rows = (
        "| HBM bandwidth | 3.35 | TB/s | | inferred | doc 1 |\n"
        "| HBM bandwidth | 3.3 | TB/s | read | inferred | doc 1 |\n"
        "| HBM bandwidth | 3.36 | TB/s | | inferred | doc 1 |"
    )
    two = hardware(
        f"{rows.splitlines()[0]}\n\n## Where sources disagree\n{SPEC_HEAD}\n{rows.splitlines()[2]}", "hardware/h20"
    )
    assert lines(make(tmp_path, hardware(rows), two), "duplicate-spec") == [("hardware/h100-sxm.md", SPEC_ROW + 2)]


def test_pages_do_not_contradict_each_other(tmp_path: Path) -> None:
    target = (
        "| Warp size | 32 | threads | | inferred | doc 1 |\n| Shared memory per SM | 228 | KB | | inferred | doc 1 |"
    )
    rows = (
        "| Compute capability | 9.0 | | | inferred | doc 1 |\n| Warp size | 64 | threads | | inferred | doc 1 |\n"
        "| Shared memory per SM | 228 | KiB | | inferred | doc 1 |\n"
        "| HBM bandwidth | 3.35 | TB/s | | inferred | doc 1 |"
    )
    again = "| HBM bandwidth | 3350 | GB/s | | inferred | doc 1 |\n| SM count | 132 | SM | | inferred | doc 1 |"
    third = "| HBM bandwidth | 3.3 | TB/s | | inferred | doc 1 |"
    extra = "vendor: nvidia\nproduct: h100-sxm\n"
    wiki = make(
        tmp_path,
        hardware(target, "hardware/cc-9-0"),
        hardware(rows),
        hardware(again, "hardware/second", extra=extra),
        hardware(third, "hardware/third", extra=extra),
    )
    found = problems(wiki, "contradiction")
    assert [(p.path, p.line) for p in found] == [
        ("hardware/h100-sxm.md", SPEC_ROW + 1),
        ("hardware/third.md", SPEC_ROW + 1),
    ]
    assert "hardware/cc-9-0.md:16" in found[0].message


def test_reviews_grow_old_and_do_not_lie_ahead(tmp_path: Path) -> None:
    wiki = make(
        tmp_path,
        page("Text", "kernel/a", reviewed="2025-11-20"),
        page("Text", "kernel/b", reviewed="2025-11-21"),
        page("Text", "kernel/c", reviewed="2026-11-22"),
        page("Text", "kernel/d", sources=(DOC.replace("2026", "2027"),)),
    )
    assert [(p.path, p.line, p.error) for p in problems(wiki, "review-date")] == [
        ("kernel/a.md", 6, False),
        ("kernel/c.md", 6, True),
        ("kernel/d.md", 8, True),
    ]


def test_a_page_can_be_reached(tmp_path: Path) -> None:
    wiki = make(
        tmp_path,
        page("[b](b.md) and [myself](a.md)", "kernel/a"),
        page("Text", "kernel/b"),
        page("Text", "hardware/h100-sxm", extra="vendor: nvidia\n"),
        README="- [A](kernel/a.md)",
    )
    found = problems(wiki, "orphan")
    assert [(p.path, p.line, p.error) for p in found] == [("kernel/a.md", 2, False)]


def test_a_mark_of_a_new_page_is_to_be_filled_in(tmp_path: Path) -> None:
    body = (
        "# T\n<!-- asks: a · TODO: b · c -->\n\nTODO: say it.[^d]\nA TODO list, and `TODO: x`.\n\n"
        "```text\nTODO: y\n```\n\n[^d]: doc TODO: place."
    )
    wiki = make(tmp_path, page(body, extra="# TODO: more\n"))
    assert [line - HEAD - 1 for _, line in lines(wiki, "placeholder")] == [5 - HEAD - 1, 2, 4, 11]
    assert problems(wiki, "placeholder")[2].message == "this is to be filled in: say it.[^d]"


def test_python_parses(tmp_path: Path) -> None:
    body = (
        "# T\n\n```python\nx = 1\ny = = 2\n```\n\n```py\nx = '\\d'\n```\n\n```cuda\nint x = = 2;\n```\n\n"
        "1. A list:\n\n   ```triton\n   def f(:\n   ```\n"
    )
    assert body_lines(tmp_path, "python-block", body) == [5, 19]


@pytest.mark.parametrize(
    "sentence",
    ["It has about 3 TB/s.[^d]", "It has ~3 TB/s.[^d]", "It should be 3 TB/s.[^d]", "It takes 5 µs or so.[^d]"],
)
def test_numbers_are_not_hedged(tmp_path: Path, sentence: str) -> None:
    assert body_lines(tmp_path, "hedge", f"# T\n\n{sentence}") == [3]


def test_hedges_in_rows_and_words_that_are_none(tmp_path: Path) -> None:
    rows = (
        "| HBM bandwidth | 3 | TB/s | rounded | inferred | card, on similar products approximately 3 TB/s |\n"
        "| HBM bandwidth | 3 | TB/s | | inferred | doc 1 |"
    )
    plain = page("The rule is about speed: 3 TB/s.[^d]\nIt says nothing about FP16.\nRows should be long.")
    wiki = make(tmp_path, hardware(rows, sources=(DOC, CARD)), plain)
    assert lines(wiki, "hedge") == [("hardware/h100-sxm.md", SPEC_ROW + 1)]


def test_the_index_lists_every_page(tmp_path: Path) -> None:
    index = "# Pages\n\n- [A](kernel/a.md)\n- [Gone](kernel/gone.md)\n- [Site](https://example.org/x.md)\n"
    wiki = make(tmp_path, page("Text", "kernel/a"), page("Text", "kernel/b"), README=index)
    assert [(p.line, p.error) for p in problems(wiki, "index-entry")] == [(1, True), (4, True)]
    assert fixes(wiki, vocabulary()) == [], "an index that someone wrote is not overwritten"


def test_a_generated_index_is_written_anew(tmp_path: Path) -> None:
    wiki = make(tmp_path, page("# A\n\nA *bold* [link](b.md) of 2.5 x. And more.[^d]", "kernel/a"))
    (fix,) = fixes(wiki, vocabulary())
    assert fix == Fix("README.md", "", fix.new)
    assert fix.new.startswith(GENERATED)
    assert fix.new.endswith("## Kernels\n\n- [A](kernel/a.md): A bold link of 2.5 x.\n")
    apply_fix(wiki, fix)
    assert problems(wiki, "index-entry") == []
    make(tmp_path, page("# A\n\nAnother lead.", "kernel/a"))
    assert [(p.line, p.error) for p in problems(wiki, "index-entry")] == [(1, False)]
    make(tmp_path, page("Text", "technique/b"))
    assert [(p.line, p.error) for p in problems(wiki, "index-entry")] == [(1, True)]
    (fix,) = fixes(wiki, vocabulary())
    assert fix.new.index("## Techniques") < fix.new.index("## Kernels")


def test_the_record_has_every_source(tmp_path: Path) -> None:
    wiki = make(tmp_path / "wiki", page("Text", sources=(DOC, CARD)))
    record = tmp_path / "sources.md"
    record.write_text(
        "| page | source | address |\n|---|---|---|\n"
        "| kernel/softmax | doc | https://example.org/doc |\n| kernel/other | card | x |\n"
    )
    assert [(p.path, p.line) for p in problems(wiki, "sources-record", record)] == [("kernel/softmax.md", 9)]
    record.write_text("| kernel/softmax | doc | x |\n| kernel/softmax | card | https://example.org/card |\n")
    assert [(p.path, p.line) for p in problems(wiki, "sources-record", record)] == [("kernel/softmax.md", 8)]
    record.write_text("| `kernel/softmax.md` | doc |\n| [kernel/softmax](x.md) | `card` |\n")
    assert problems(wiki, "sources-record", record) == []
    assert len(problems(wiki, "sources-record", tmp_path / "none.md")) == 2
    assert problems(wiki, "sources-record") == []


def test_white_space_is_mended_and_nothing_else(tmp_path: Path) -> None:
    wiki = make(tmp_path, page("Line.  \nLast.", "kernel/a"), page("Text", "kernel/b").replace("\n", "\r\n"))
    (tmp_path / "kernel/c.md").write_bytes(page("é", "kernel/c").rstrip("\n").encode())
    make(tmp_path, page("Text", "kernel/d"))
    found = problems(wiki, "whitespace")
    assert [(p.path, p.line, p.error) for p in found] == [
        ("kernel/a.md", 10, False),
        ("kernel/b.md", 1, False),
        ("kernel/c.md", 10, False),
    ]
    (tmp_path / "kernel/a.md").chmod(0o640)
    for fix in fixes(wiki, vocabulary()):
        apply_fix(wiki, fix)
    assert (tmp_path / "kernel/a.md").read_bytes() == page("Line.\nLast.", "kernel/a").encode()
    assert (tmp_path / "kernel/a.md").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "kernel/c.md").read_bytes() == page("é", "kernel/c").encode()
    assert problems(wiki, "whitespace") == []
    assert fixes(wiki, vocabulary()) == []
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_fix_does_not_overwrite_a_later_change(tmp_path: Path) -> None:
    wiki = make(tmp_path, page("Text  ", "kernel/a"))
    fix = next(f for f in fixes(wiki, vocabulary()) if f.path == "kernel/a.md")
    make(tmp_path, page("Other  ", "kernel/a"))
    with pytest.raises(KoptError, match="has changed"):
        apply_fix(wiki, fix)
    with pytest.raises(KoptError, match="has changed"):
        apply_fix(wiki, Fix("../outside.md", "", "x"))
    assert not (tmp_path.parent / "outside.md").exists()


def test_a_change_that_cannot_be_written_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wiki = make(tmp_path, page("Text  ", "kernel/a"))
    fix = next(f for f in fixes(wiki, vocabulary()) if f.path == "kernel/a.md")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KoptError, match="no space left"):
        apply_fix(wiki, fix)
    assert (tmp_path / "kernel/a.md").read_text() == fix.old
    assert not list(tmp_path.rglob("*.tmp"))


def test_files_that_cannot_be_read_whole_are_not_mended(tmp_path: Path) -> None:
    wiki = make(tmp_path, page("Text \n" * 200_000, "kernel/large"), page("Text", "kernel/a"))
    (tmp_path / "kernel/latin.md").write_bytes(page("é ", "kernel/latin").encode("latin-1"))
    (tmp_path / "README.md").write_bytes(b"\xff \n")
    assert lines(wiki, "page-size") == [("kernel/large.md", 1)]
    assert lines(wiki, "encoding") == [("kernel/latin.md", 10)]
    assert lines(wiki, "index-entry") == [("README.md", 1)]
    assert fixes(wiki, vocabulary()) == []


@given(st.text(alphabet="ab \t\r\n|", max_size=40))
def test_tidy_text_stays_tidy_and_keeps_its_words(text: str) -> None:
    once = tidy(text)
    assert tidy(once) == once
    assert once.split() == text.split()


@pytest.mark.parametrize(
    "line",
    [
        "Derived: " + "1 + " * 900 + "= 2",
        "Derived: " + "(" * 3900 + "1 = 2",
        "Derived: 1" + " " * 3900 + "= 2",
        "1 " * 1900,
        "1,111" * 700,
        "`" * 3999,
        "- ```" + "a" * 3900 + "`",
        "[" * 3999,
        "x" * 40_000,
    ],
)
def test_hostile_lines_take_no_time(tmp_path: Path, line: str) -> None:
    wiki = make(tmp_path, page("\n".join([line] * 20)))
    start = time.perf_counter()
    lint(wiki, vocabulary(), today=TODAY)
    assert time.perf_counter() - start < 5


@pytest.mark.slow
def test_the_bundled_wiki_is_clean() -> None:
    wiki = bundled_wiki()
    record = Path(__file__).parents[3] / "docs" / "sources.md"
    found = lint(wiki, vocabulary(), today=datetime.date.today(), sources_record=record)
    assert [problem for problem in found if problem.error] == []
    assert all((page.meta.reviewed, page.meta.sources) for page in bundled_pages())
