"""Patterns of opcodes and names of targets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.opcodes import pattern, target_number


@pytest.mark.parametrize(
    ("text", "opcode", "matches"),
    [
        ("LDG.128", "LDG.E.128", True),
        ("LDG.128", "LDG.E.128.CONSTANT", True),
        ("LDG.128", "LDG.E.LTC128B.128", True),
        ("LDG.128", "LDG.E.LTC128B", False),
        ("LDG.128", "LDGSTS.E.BYPASS.128", False),
        ("LDG.128", "LDG.E.64", False),
        ("HMMA", "HMMA.16816.F32.BF16", True),
        ("HMMA", "HFMA2.MMA", False),
        ("HMMA", "HGMMA.64x128x16.F32", False),
        ("MUFU.EX2", "MUFU.EX2", True),
        ("MUFU.EX2", "MUFU.LG2", False),
        ("ptxas.spill_stores", "STL", False),
    ],
)
def test_a_pattern_names_a_mnemonic_and_modifiers(text: str, opcode: str, matches: bool) -> None:
    read = pattern(text)
    assert read is not None
    assert read.matches(opcode) is matches


@pytest.mark.parametrize(
    "text", ["", ".", "ldg", "LDG.", "LDG..128", "LDG 128", "*", "128", "ptxas", "ptxas.registers"]
)
def test_what_is_no_pattern(text: str) -> None:
    assert pattern(text) is None


def test_counts_of_the_compiler_have_a_name() -> None:
    counted, opcode = pattern("ptxas.spill_loads"), pattern("LDL")
    assert counted is not None
    assert opcode is not None
    assert (counted.compiler_count, opcode.compiler_count) == ("spill_loads", "")


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_none(text: str) -> None:
    read = pattern(text)
    if read is not None and not read.compiler_count:
        assert read.matches(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("sm_90", 90), ("sm_90a", 90), ("sm_120", 120), ("sm_9", None), ("sm_090", None), ("90", None), ("sm_90b", None)],
)
def test_numbers_of_targets(text: str, number: int | None) -> None:
    assert target_number(text) == number
