"""The instructions that a kernel should show, from rows of the bundled wiki."""

from __future__ import annotations

import pytest

from kbs.evidence.checking import Status, check_text
from kbs.evidence.vocabulary import vocabulary
from loop.planning import instructions
from loop.planning.methods import read_methods
from loop.tools import MachineNote, Targets
from wiki.library import Wikis, bundled_wiki

WIKIS = Wikis([bundled_wiki()])
ROWS = read_methods(WIKIS).instructions


def opcodes(operation: str, dtype: str, target: int) -> set[str]:
    found = instructions.expected(ROWS, [operation], [dtype], target)
    return {opcode for one in found for opcode in one.opcodes}


@pytest.mark.parametrize(
    ("operation", "dtype", "target", "wanted"),
    [
        ("matmul", "bf16", 80, {"HMMA", "LDGSTS", "LDSM"}),
        ("matmul", "bf16", 90, {"HGMMA", "UTMALDG"}),
        ("matmul", "fp8", 90, {"QGMMA", "UTMALDG"}),
        ("matmul", "fp8", 89, {"QMMA", "LDGSTS", "LDSM"}),
        ("matmul", "bf16", 100, {"UTCHMMA", "UTMALDG"}),
        ("matmul", "int8", 103, {"UTMALDG"}),
        ("matmul", "fp32", 90, {"UTMALDG"}),
        ("attention", "fp16", 90, {"HGMMA", "UTMALDG", "MUFU.EX2", "SHFL.BFLY", "SHFL.DOWN", "SHFL.UP"}),
        ("softmax", "fp32", 90, {"LDG.128", "MUFU.EX2", "SHFL.BFLY", "SHFL.DOWN", "SHFL.UP"}),
        ("softmax", "fp64", 90, {"LDG.128", "SHFL.BFLY", "SHFL.DOWN", "SHFL.UP"}),
        ("copy", "fp32", 100, {"LDG.128", "LDG.256"}),
        ("copy", "fp32", 75, set()),
    ],
)
def test_they_follow_from_operation_type_and_target(operation: str, dtype: str, target: int, wanted: set[str]) -> None:
    assert opcodes(operation, dtype, target) == wanted


def test_an_operation_that_nobody_knows_streams_unless_it_multiplies_matrices() -> None:
    assert {one.method for one in instructions.expected(ROWS, [], ["fp32"], 90)} == {"vectorized_access"}
    assert "vectorized_access" not in {one.method for one in instructions.expected(ROWS, ["matmul"], ["fp16"], 90)}


def test_each_is_cited_by_a_line_that_says_it() -> None:
    for target in (80, 90, 100, 120):
        for one in instructions.expected(ROWS, ["attention"], ["bf16"], target):
            (checked,) = check_text(one.line, WIKIS, vocabulary())
            assert checked.status is Status.OK, checked
            assert f"sm_{target}" in one.what


def test_machine_code_is_held_against_them() -> None:
    wanted = instructions.expected(ROWS, ["matmul"], ["bf16"], 90)
    targets = Targets(
        specs=(), lines=(), bytes=None, operations=None, bound="", floor_us=None, target_us=None, gaps=(),
        instructions=wanted,
    )  # fmt: skip
    code = {"HGMMA.64x128x16.F32.BF16": 8, "HFMA2.MMA": 4, "LDG.E.128": 2}
    note = MachineNote(target="sm_90a", functions={"k": "0"}, opcodes=code, why="")
    there = {str(row["instruction"]): row for row in instructions.held_against(targets, note)}
    assert (there["wgmma"]["there"], there["wgmma"]["count"]) == (True, 8)
    assert there["wgmma"]["found"] == {"HGMMA.64x128x16.F32.BF16": 8}
    assert there["cp.async.bulk.tensor (TMA)"]["there"] is False
    said = "\n".join(instructions.lines(targets, note))
    assert "wgmma, for matmul in bf16 on sm_90: there: `HGMMA.64x128x16.F32.BF16` 8" in said
    assert "not there: no `UTMALDG`" in said

    nothing = MachineNote(target="", functions={}, opcodes={}, why="no GPU is named")
    assert [row["there"] for row in instructions.held_against(targets, nothing)] == [None, None]
    assert instructions.lines(targets, nothing) == ["Not known: no GPU is named."]
