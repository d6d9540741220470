"""Signature tables of method pages: read row by row, refused with the line, and checked for contradictions."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from tests.conftest import page_text
from wiki.library import Wiki
from wiki.lint import lint
from wiki.page import Page
from wiki.reader import read_page

HEAD = "| method | targets | opcodes | at least | unclear | source |\n|---|---|---|---|---|---|"
Rows = Callable[..., Page]


def read(*rows: str, id: str = "method/wide") -> Page:
    text = page_text(id, "# Wide\n\n" + "\n".join([HEAD, *rows]))
    page = read_page("team", f"{id}.md", text.encode(), "", vocabulary())
    assert isinstance(page, Page)
    return page


def test_a_row_is_read() -> None:
    page = read("| wide | sm_80 sm_120 | `LDG.128` `STG.128` | 2 | `LD.128` | src table 8 |")
    assert not page.problems
    (row,) = page.signatures
    assert (row.method, row.targets, row.least) == ("wide", (80, 120), 2)
    assert [p.text for p in row.opcodes] == ["LDG.128", "STG.128"]
    assert [p.text for p in row.unclear] == ["LD.128"]
    assert page.lines[row.citation.line_start - 1].startswith("| wide |")
    assert page.method == "wide"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("| narrow | sm_80 | `LDG` | 1 | | src |", "the method 'narrow' is not 'wide'"),
        ("| wide | sm_90a | `LDG` | 1 | | src |", "'sm_90a' is not a target"),
        ("| wide | hopper | `LDG` | 1 | | src |", "'hopper' is not a target"),
        ("| wide | | `LDG` | 1 | | src |", "needs a target and an opcode"),
        ("| wide | sm_80 | | 1 | | src |", "needs a target and an opcode"),
        ("| wide | sm_80 | `ldg` | 1 | | src |", "'ldg' is not an opcode"),
        ("| wide | sm_80 | `LDG` | 0 | | src |", "'0' is not a count"),
        ("| wide | sm_80 | `LDG` | some | | src |", "'some' is not a count"),
        ("| wide | sm_80 | `LDG` | 1 | `*` | src |", "'*' is not an opcode"),
        ("| wide | sm_80 | `LDG` | 1 | | nobody |", "begins with no source id"),
    ],
)
def test_a_row_that_cannot_be_used_is_left_out_with_its_line(row: str, message: str) -> None:
    page = read(row, "| wide | sm_90 | `LDG` | 1 | | src |")
    assert [r.targets for r in page.signatures] == [(90,)]
    (problem,) = page.problems
    assert message in problem.message
    assert page.lines[problem.line - 1] == row


def test_only_a_method_page_states_signatures() -> None:
    page = read("| wide | sm_80 | `LDG` | 1 | | src |", id="technique/wide")
    assert not page.signatures
    assert [p.message for p in page.problems] == ["only a method page can state signatures"]
    assert page.method is None


@given(st.lists(st.text(alphabet="sm_0123456789LDGS.`|a \\-*", max_size=20), min_size=6, max_size=6))
def test_any_row_is_read_or_is_a_problem(cells: list[str]) -> None:
    page = read("| " + " | ".join(cells) + " |")
    assert len(page.signatures) <= 1


def found(folder: Path, *rows: str) -> list[tuple[int, str]]:
    (folder / "method").mkdir(exist_ok=True)
    text = page_text("method/wide", "# Wide\n\n" + "\n".join([HEAD, *rows]))
    (folder / "method" / "wide.md").write_text(text, "utf-8")
    first = text.split("\n").index(rows[0]) + 1
    today = datetime.date(2026, 11, 21)
    problems = lint(Wiki("team", folder), vocabulary(), today=today)
    return [(p.line - first, p.message) for p in problems if p.rule == "signature"]


def test_two_rows_for_one_target_contradict_each_other(tmp_path: Path) -> None:
    one, other = "| wide | sm_80 sm_90 | `LDG` | 1 | | src |", "| wide | sm_90 | `STG` | 1 | | src |"
    ((line, message),) = found(tmp_path, one, other)
    assert line == 1
    assert message.endswith("has a signature for sm_90 already")
    assert found(tmp_path, one, "| wide | sm_100 | `STG` | 1 | | src |") == []


def test_an_opcode_cannot_count_and_be_unclear(tmp_path: Path) -> None:
    rows = "| wide | sm_80 sm_80 | `LDG` `STG` | 1 | `STG` | src |"
    assert found(tmp_path, rows) == [(0, "STG cannot both count and be unclear"), (0, "a target is listed twice here")]


INSTRUCTIONS = "| operation | dtype | targets | instruction | opcodes | source |\n|---|---|---|---|---|---|"


def expecting(*rows: str, id: str = "method/wide") -> Page:
    """A page with a signature for sm_80, and instructions to expect."""
    signature = f"{HEAD}\n| wide | sm_80 | `LDG.128` | 1 | | src |" if id.startswith("method/") else ""
    text = page_text(id, f"# Wide\n\n{signature}\n\n" + "\n".join([INSTRUCTIONS, *rows]))
    page = read_page("team", f"{id}.md", text.encode(), "", vocabulary())
    assert isinstance(page, Page)
    return page


def test_an_instruction_to_expect_is_read() -> None:
    page = expecting(
        "| softmax copy | any | sm_80 | wide loads | `LDG.128` | src |", "| any | bf16 | sm_80 | w | `LDG` | src |"
    )
    assert not page.problems
    first, second = page.instructions
    assert (first.method, first.operations, first.dtypes, first.targets) == ("wide", ("softmax", "copy"), (), (80,))
    assert (first.instruction, [p.text for p in first.opcodes]) == ("wide loads", ["LDG.128"])
    assert (second.operations, second.dtypes) == ((), ("bf16",))
    assert page.lines[first.citation.line_start - 1].startswith("| softmax copy |")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("| cooking | any | sm_80 | w | `LDG` | src |", "'cooking' is no operation"),
        ("| | any | sm_80 | w | `LDG` | src |", "the operation is empty"),
        ("| any | fp3 | sm_80 | w | `LDG` | src |", "'fp3' is no dtype"),
        ("| any | any | hopper | w | `LDG` | src |", "'hopper' is not a target"),
        ("| any | any | sm_80 | | `LDG` | src |", "needs a name, a target and an opcode"),
        ("| any | any | sm_80 | w | | src |", "needs a name, a target and an opcode"),
        ("| any | any | sm_80 | w | `LDG` | nobody |", "begins with no source id"),
    ],
)
def test_an_instruction_that_cannot_be_used_is_left_out(row: str, message: str) -> None:
    page = expecting(row)
    assert not page.instructions
    assert message in page.problems[0].message


def test_an_instruction_belongs_to_the_signature_of_its_targets(tmp_path: Path) -> None:
    signature = "| wide | sm_80 | `LDG.128` | 1 | | src |"
    wide, other = "| any | any | sm_80 sm_90 | w | `LDG.128` | src |", "| any | any | sm_80 | w | `STG` | src |"
    assert found(tmp_path, signature, "", INSTRUCTIONS, wide, other) == [
        (4, "LDG.128 is not in the signature for sm_90"),
        (5, "STG is not in the signature for sm_80"),
    ]


def test_only_a_method_page_states_instructions() -> None:
    page = expecting("| any | any | sm_80 | w | `LDG` | src |", id="technique/wide")
    assert [p.message for p in page.problems] == ["only a method page can state instructions to expect"]
