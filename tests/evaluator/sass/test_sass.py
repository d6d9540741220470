"""Verdicts on methods, and two versions compared."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.sass.diff import compare
from evaluator.sass.sass import Function, Resources, judge, short_name
from kbs.evidence.citation import Citation
from kbs.evidence.opcodes import pattern
from kbs.evidence.table_rows import SignatureRow

CITED = Citation("gpu-wiki", "method/m.md", 31, 31, "", "0" * 64, "| m |")


def row(
    method: str, opcodes: str, least: int = 1, unclear: str = "", targets: tuple[int, ...] = (80, 90)
) -> SignatureRow:
    read = [tuple(p for word in text.split() if (p := pattern(word))) for text in (opcodes, unclear)]
    return SignatureRow(method, targets, read[0], least, read[1], "own", CITED)


def function(
    name: str = "k",
    version: str = "",
    spills: tuple[int | None, int | None] = (0, 0),
    registers: int = 32,
    **opcodes: int,
) -> Function:
    counted = {opcode.replace("_", "."): n for opcode, n in opcodes.items()}
    resources = Resources(
        registers=registers,
        stack_bytes=0,
        spill_store_bytes=spills[0],
        spill_load_bytes=spills[1],
        static_shared_bytes=0,
        dynamic_shared_bytes=None,
        barriers=1,
        required_threads=None,
        max_threads=None,
    )
    return Function(
        name=name,
        version=version,
        kernel=True,
        instructions=sum(counted.values()),
        opcodes=counted,
        resources=resources,
    )


SPILL = row("register_spill", "ptxas.spill_stores ptxas.spill_loads", unclear="LDL STL")


@pytest.mark.parametrize(
    ("signature", "code", "text"),
    [
        (row("m", "HMMA IMMA"), function(HMMA_16816=3, IMMA=1, FFMA=9), "present 4"),
        (row("m", "HMMA"), function(HFMA2_MMA=5), "absent"),
        (row("m", "HMMA", least=4), function(HMMA_16816=3), "absent"),
        (row("m", "HMMA", least=3), function(HMMA_16816=3), "present 3"),
        (row("m", "LDG.128", unclear="LD.128"), function(LD_E_128=2), "unverifiable: LD.E.128 2 may be it or not"),
        (row("m", "LDG.128", unclear="LD.128"), function(LD_E_128=2, LDG_E_128=1), "present 1"),
        (SPILL, function(LDL=4, STL=4, spills=(16, 8)), "present 24"),
        (SPILL, function(LDL=4, STL=4), "absent"),
        (SPILL, function(FFMA=1, spills=(None, None)), "absent"),
        (
            SPILL,
            function(LDL=4, spills=(None, None)),
            "unverifiable: LDL 4 may be it or not; the assembler left no count",
        ),
    ],
)
def test_verdicts(signature: SignatureRow, code: Function, text: str) -> None:
    verdict = judge(signature.method, [signature], 90, code)
    assert verdict.text == text
    assert verdict.citation == "gpu-wiki/method/m.md:L31"


def test_a_target_without_a_signature_is_unverifiable() -> None:
    verdict = judge("m", [row("m", "HMMA"), row("other", "IMMA", targets=(100,))], 100, function(HMMA=1))
    assert verdict.text == "unverifiable: no signature for sm_100 is known, only for sm_80, sm_90"
    assert judge("new", [], 90, function(HMMA=1)).text == "unverifiable: no signature for sm_90 is known"


def test_a_verdict_says_which_opcodes_count() -> None:
    verdict = judge("m", [row("m", "HMMA IMMA")], 80, function(HMMA_16816=3, FFMA=1))
    assert verdict.found == {"HMMA.16816": 3}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("_Z5scalePKfPf", "scale"),
        ("softmax_kernel", "softmax_kernel"),
        ("_ZN2ns1kEv", "_ZN2ns1kEv"),
        ("_Z9ab", "_Z9ab"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


@given(st.text(max_size=40))
def test_any_name_has_a_short_one(name: str) -> None:
    assert short_name(name) in name


def test_two_versions_are_compared() -> None:
    before = function("_Z1kPf", registers=40, FFMA=8, LDG_E=4)
    after = function("_Z1kPf", registers=32, FFMA=8, LDG_E_128=1)
    rows = [row("vector", "LDG.128"), row("other", "FFMA")]
    (pair,) = compare([before], [after], ["vector", "other"], rows, 90).functions
    assert [(c.name, c.before, c.after) for c in pair.opcodes] == [("LDG.E", 4, 0), ("LDG.E.128", 0, 1)]
    assert [(c.name, c.before, c.after) for c in pair.resources] == [("registers", 40, 32)]
    assert [(m.method, m.before.text, m.after.text) for m in pair.methods] == [("vector", "absent", "present 1")]
    assert not pair.same_code


def test_functions_are_paired_by_name_and_version() -> None:
    before = [function("a", "W=4", FFMA=1), function("a", "W=8", FFMA=2), function("gone", FFMA=1)]
    after = [function("a", "W=8", FFMA=2), function("a", "W=16", FFMA=3), function("new", FFMA=1)]
    found = compare(before, after, [], [], 90)
    assert [(p.before, p.after, p.same_code) for p in found.functions] == [
        ("a [W=8]", "a [W=8]", True),
        ("a [W=4]", "a [W=16]", False),
    ]
    assert (found.only_before, found.only_after) == (["gone"], ["new"])


def test_the_only_function_of_each_is_a_pair_whatever_its_name() -> None:
    found = compare([function("old", FFMA=1)], [function("new", FFMA=1)], [], [], 90)
    assert [(p.before, p.after) for p in found.functions] == [("old", "new")]
    assert not found.only_before
    assert not found.only_after
