"""Rules on what must agree: rows with rows and sentences, a page with its board, code and text with their form."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wiki.lint.test_lint import DOC, HEAD, NOTE, SPEC_ROW, body_lines, hardware, lines, make, page, problems
from wiki.lint import read_wiki, relint
from wiki.lint.rules import boards

ROWS = {
    "sm_count": "| SM count | 58 | SM | | inferred | doc |",
    "clock": "| Boost clock | 2040 | MHz | | inferred | doc |",
    "fp32": "| FP32 throughput | 30.3 | TFLOPS | | inferred | doc |",
    "dense": "| BF16 tensor throughput | 121 | TFLOPS | dense | inferred | doc |",
    "sparse": "| BF16 tensor throughput | 242 | TFLOPS | sparse 2:4 | inferred | doc |",
    "threads": "| Maximum threads per SM | 1536 | threads | | inferred | doc |",
    "warps": "| Maximum warps per SM | 48 | warps | | inferred | doc |",
    "warp": "| Warp size | 32 | threads | | inferred | doc |",
    "smem": "| Shared memory per SM | 100 | KB | | inferred | doc |",
    "block": "| Shared memory per block | 99 | KB | | inferred | doc |",
    "type": "| Memory type | GDDR6 | | | inferred | doc |",
    "bus": "| Memory bus width | 192 | bit | | inferred | doc |",
    "width": "| HBM bandwidth | 300 | GB/s | | inferred | doc |",
    "fp64": "| FP64 throughput | 0.473 | TFLOPS | | inferred | doc |",
    "ratio": "| FP32 to FP64 ratio | 64 | x | | inferred | doc |",
}
"""The rows of an L4."""


MEASURED = "| operation | gpu | dtype | shape | metric | value | unit | what | source |\n" + "|---" * 9 + "|\n"


def board(changed: dict[str, str], **kwargs: str) -> str:
    """The page of an L4 with other rows."""
    return hardware("\n".join({**ROWS, **changed}.values()), "hardware/l4", **kwargs)


@pytest.mark.parametrize(
    ("row", "old", "new"),
    [
        ("dense", "121", "112"),
        ("fp32", "30.3", "33.0"),
        ("sm_count", "58", "85"),
        ("sparse", "242", "121"),
        ("dense", "dense", "sparse 2:4"),
        ("threads", "1536", "1568"),
        ("block", "99", "101"),
        ("width", "300", "600"),
        ("bus", "192", "129"),
        ("fp64", "0.473", "0.947"),
    ],
)
def test_rows_of_a_board_agree(tmp_path: Path, row: str, old: str, new: str) -> None:
    assert lines(make(tmp_path / "good", board({})), "row-against-row") == []
    wiki = make(tmp_path / "bad", board({row: ROWS[row].replace(old, new)}))
    assert {path for path, _ in lines(wiki, "row-against-row")} == {"hardware/l4.md"}


def test_a_rate_may_be_announced_at_another_clock(tmp_path: Path) -> None:
    slower = {name: ROWS[name].replace("121", "108").replace("242", "216").replace("30.3", "27.0") for name in ROWS}
    del slower["fp64"]
    assert lines(make(tmp_path, hardware("\n".join(slower.values()), "hardware/l4")), "row-against-row") == []


def test_every_kind_of_memory_has_a_range() -> None:
    assert all(0 < low < high for low, high in boards.PIN_RATES.values())


def test_a_value_is_what_its_cell_derives(tmp_path: Path) -> None:
    row = "| {} | {} | {} | | inferred | derived: 60 x 2 = {} |"
    rows = [
        row.format("FP32 throughput", "120", "TFLOPS", "119.6"),
        row.format("HBM bandwidth", "210", "GB/s", "120"),
        "| Maximum warps per SM | 4.8 | warps | | inferred | doc |",
        "| Maximum threads per block | 1204 | threads | | inferred | doc |",
        "| Shared memory allocation unit | 265 | B | | inferred | doc |",
        "| Register allocation unit | 256 | registers | | inferred | doc |",
    ]
    wiki = make(tmp_path, hardware("\n".join(rows)))
    assert [line - SPEC_ROW for _, line in lines(wiki, "value-of-row")] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("lead", "wrong"),
    [
        ("The L4 has 300 GB/s and 58 SMs.[^d]", 0),
        ("The L4 has 390 GB/s and 58 SMs.[^d]", 1),
        ("The L4 has half of the 600 GB/s of an [A10](a10.md).[^d]", 0),
        ("It is one.[^d]\nAnother.[^d]\nIt was told of 1001 MB.[^d]", 0),
        ("It is one.[^d]\nAnother.[^d]\nIt has 003 GB/s.[^d]", 1),
        ("It is one.[^d]\nAnother.[^d]\nAn SM of the L4 holds 84 warps and 64 KB.[^d]", 2),
        ("It.[^d]\nTwo.[^d]\nDerived: the ridge point is 121 TFLOPS / 0.3 TB/s = 403.3 FLOP/byte.", 0),
        ("It.[^d]\nTwo.[^d]\nDerived: the ridge point is 151 TFLOPS / 0.3 TB/s = 503.3 FLOP/byte.", 1),
    ],
)
def test_sentences_repeat_rows(tmp_path: Path, lead: str, wrong: int) -> None:
    text = board({}).replace("# A GPU\n", f"# L4\n\n{lead}\n")
    assert len(lines(make(tmp_path, text), "figure-against-row")) == wrong


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        ("The L4 is a card.[^d]", 0),
        ("The L40S is a card.[^d]", 1),
        ("The L4 and the L40S are cards.[^d]", 0),
        ("It is not the [L40S](l40s.md).[^d]", 0),
        ("One.[^d]\nTwo.[^d]\nThe T4 has clusters.[^d]", 1),
        ("One.[^d]\nTwo.[^d]\nThe T4 is another card.[^d]", 0),
        ("One.[^d]\nTwo.[^d]\nLists mean the T4 here.[^d]", 0),
        ("One.[^d]\n\n## What bounds the L40S?\n\nText.[^d]", 1),
    ],
)
def test_a_page_names_its_own_board(tmp_path: Path, sentence: str, wrong: int) -> None:
    text = board({}).replace("# A GPU\n", f"# L4\n\n{sentence}\n")
    assert len(lines(make(tmp_path, text), "board-named")) == wrong


def test_a_board_has_the_vendor_and_architecture_of_the_vocabulary(tmp_path: Path) -> None:
    rows = {
        "type": "| Architecture | Turing | | | inferred | doc |",
        "bus": "| Compute capability | 9.0 | | | inferred | doc |",
    }
    bad = board(rows, extra="vendor: amd\narchitectures: [hopper]\n")
    said = [one.message for one in problems(make(tmp_path / "bad", bad), "board-identity")]
    assert len(said) == 4
    assert all("Ada Lovelace" in one or "nvidia" in one for one in said)
    good = board(
        {"type": "| Architecture | Ada Lovelace | | | inferred | doc |"}, extra="vendor: nvidia\narchitectures: [ada]\n"
    )
    assert lines(make(tmp_path / "good", good), "board-identity") == []


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("```cuda\nif (x) { y(); }\n```", []),
        ("```cuda\nif (x) { y();\n```", [4]),
        ("```cpp\na[i = (0);\n```", [4]),
        ("```cuda\n// a ) b\nf('(', \"}{\");\n#define F {\n/* ( */\n```", []),
        ("```\nx\n```", [3]),
        ("```text\nx (\n```", []),
        ("    indented (", []),
    ],
)
def test_code_has_a_language_and_pairs_of_brackets(tmp_path: Path, code: str, wrong: list[int]) -> None:
    assert body_lines(tmp_path, "code-block", f"# T\n\n{code}") == wrong


def test_characters_can_be_seen(tmp_path: Path) -> None:
    assert body_lines(tmp_path, "invisible-character", "# T\n\n3\u00a0KB\na\u200bb\nt\tt\né 中 µ\n\x07") == [3, 4, 7]


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        (DOC, 0),
        (DOC.replace("https://", "htps://"), 1),
        (DOC.replace("https://", "https://https://"), 1),
        (DOC.replace("https://example.org/doc", "docs/record.md"), 0),
        (DOC.replace("example.org/doc", "github.com/somebody/code").replace("vendor-doc", "vendor-repository"), 1),
        (DOC.replace("example.org/doc", "github.com/NVIDIA/cutlass").replace("vendor-doc", "vendor-repository"), 0),
        (DOC.replace("example.org/doc", "github.com/somebody/code").replace("vendor-doc", "repository"), 0),
    ],
)
def test_a_source_is_what_it_is_called(tmp_path: Path, source: str, wrong: int) -> None:
    assert (
        lines(make(tmp_path, page(f"# T\n\n{NOTE}", sources=(source,))), "source-entry")
        == [("kernel/softmax.md", 8)] * wrong
    )


def test_a_source_is_listed_once(tmp_path: Path) -> None:
    assert len(lines(make(tmp_path, page(f"# T\n\n{NOTE}", sources=(DOC, DOC))), "source-entry")) == 1
    twice = page("# T", extra="tags: [dram]\ntags: [l2]\n")
    assert lines(make(tmp_path / "key", twice), "front-matter") == [("kernel/softmax.md", 6)]


def test_each_heading_has_text(tmp_path: Path) -> None:
    body = "# T\n\n## A\n\n### B\n\nText.\n\n## C\n<!-- asks: a · b · c -->\n\n## D\n\nText.\n##E\n\n## F"
    assert body_lines(tmp_path, "section-text", body) == [1, 9, 15, 17]
    assert body_lines(tmp_path / "none", "section-text", "Text.\n\n# T\n\nText.") == [1]


def test_a_sentence_stands_once(tmp_path: Path) -> None:
    said = "A warp that waits at a barrier leaves its slots to the other warps of the SM"
    one = page(f"# A\n\n{said}.[^d]\nDerived: {said}.\n", "kernel/a")
    other = page(
        f"# B\n\n{said.upper()}.\nDerived: {said}.\n\n- {said}.\n\nDerived: {said}.\nShort.\nShort.", "kernel/b"
    )
    found = problems(make(tmp_path, one, other), "repeated-sentence")
    assert [(p.path, p.line - HEAD) for p in found] == [("kernel/b.md", 3), ("kernel/b.md", 8)]
    assert "kernel/a.md:12" in found[0].message


def test_a_line_is_a_sentence(tmp_path: Path) -> None:
    body = "# T\n\nA warp waits. Another runs.\nSee e.g. Ampere.\nIt waits.[^d] It runs.\n\n- One. Two."
    assert body_lines(tmp_path, "sentence-line", body) == [3, 5]


def test_a_table_is_read_or_is_another(tmp_path: Path) -> None:
    body = (
        f"# T\n\n## Measured\n\n{MEASURED.replace('unit', 'units')}"
        "\n## Results\n\n| operation | cost | count | dims | dtype | note |\n|---|---|---|---|---|---|\n"
        "\n## Cost\n\n| operation | cost | count | dims | dtype | note |\n|---|---|---|---|---|---|\n"
        "\nText\n| technique | bottleneck | because | source |\n\n| step | what | source |\n|---|---|---|"
    )
    assert body_lines(tmp_path, "table-header", body) == [5, 10, 19]


def test_rows_use_names_that_kopt_knows(tmp_path: Path) -> None:
    rows = [
        "| low-throughput | sm__throughput.avg.pct_of_peak_sustained_elapsed | < | 60 | % | doc 1 |",
        "| low-throughput | sm__throughtput.avg | < | 60 | % | doc 1 |",
        "| low-throughput | kopt__nothing / kopt__dram_bytes | < | 60 | % | doc 1 |",
    ]
    body = "# T\n\n| symptom | metric | test | value | unit | source |\n|---|---|---|---|---|---|\n" + "\n".join(rows)
    body += f"\n\n{MEASURED}" + "\n".join(
        f"| | H100 | {dtype} | 4 | time | 3 | {unit} | x | doc 1 |"
        for dtype, unit in [("fp16", "ms"), ("fp12", "ms"), ("", "soon")]
    )
    found = problems(make(tmp_path, page(body)), "row-vocabulary")
    assert [(p.line - HEAD, p.error) for p in found] == [(6, False), (7, True), (12, True), (13, True)]
    head = "| method | targets | opcodes | at least | unclear | source |\n|---|---|---|---|---|---|"
    signed = f"# T\n\n{head}\n| tiling | {{}} | LDS | 1 | | doc 1 |"
    for target, wrong in (("sm_90", 0), ("sm_99", 1)):
        wiki = make(
            tmp_path / target, page(signed.format(target), "method/tiling", extra="axis: memory\npriority: 1\n")
        )
        assert len(lines(wiki, "row-vocabulary")) == wrong


def test_asks_are_there_once_and_links_are_whole(tmp_path: Path) -> None:
    for asks, wrong in (("a · b · c", 0), ("a · · b · c", 1), ("a · b · c · A", 1)):
        body = f"# T\n<!-- asks: {asks} -->\n\nText.[^d]\n\n{NOTE}"
        assert len(body_lines(tmp_path / asks, "section-asks", body)) == wrong
    assert body_lines(tmp_path, "broken-link", "# T\n\n[a]()\n[b](x\n`[c](` and f(x)[0]\n[d](https://e.org/(x))") == [
        3,
        4,
    ]


def test_a_footnote_names_a_place(tmp_path: Path) -> None:
    assert body_lines(tmp_path, "footnote", "# T\n\nA.[^a]\nB.[^b]\n\n[^a]: doc.\n[^b]: doc p. 3.") == [6]


def test_only_what_changed_is_checked_again(tmp_path: Path) -> None:
    from kbs.evidence.vocabulary import vocabulary
    from tests.wiki.lint.test_lint import TODAY

    wiki = make(tmp_path, page("# A\n\nA. B.", "kernel/a"), page("# B\n\n[a](a.md#a)  ", "kernel/b"))
    view = read_wiki(wiki, vocabulary(), TODAY)
    changed = relint(view, {"kernel/a.md": page("# C\n\nSee [b](b.md).  ", "kernel/a").encode()})
    rules = {(one.path, one.rule) for one in changed}
    assert {("kernel/b.md", "broken-link"), ("kernel/a.md", "whitespace")} <= rules
    assert ("kernel/b.md", "whitespace") not in rules
    assert ("kernel/a.md", "sentence-line") not in rules
