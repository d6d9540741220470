"""Words as the full-text index sees them."""

from __future__ import annotations

import pytest

from kbs.evidence.vocabulary import vocabulary
from kbs.index.tokens import identifiers, index_words, query_words


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ld.global.nc", {"ld_global_nc", "ld", "global", "nc"}),
        ("num_warps", {"num_warps", "num", "warps"}),
        ("sm_90a", {"sm_90a", "sm", "90a"}),
        ("HGMMA", {"hgmma"}),
        ("cudaMemcpyAsync", {"cudamemcpyasync", "cuda", "memcpy", "async"}),
        ("memory-bound", {"memory_bound", "memory", "bound"}),
        ("FLOP/byte", {"flop_byte", "flop", "byte"}),
        ("std::max", {"std_max", "std", "max"}),
        ("2:4", {"2_4", "2", "4"}),
    ],
)
def test_compounds_are_kept_whole_and_in_parts(text: str, wanted: set[str]) -> None:
    assert set(index_words(text).split()) == wanted


def test_an_identifier_with_doubled_joints() -> None:
    found = index_words("`smsp__inst_executed.avg`").split()
    assert found[0] == "smsp_inst_executed_avg"
    assert {"smsp", "inst", "executed", "avg"} <= set(found)


@pytest.mark.parametrize("text", ["", "…", '"""', "\x00"])
def test_nothing_to_index(text: str) -> None:
    assert index_words(text) == ""
    assert query_words(text, vocabulary()) == []


def test_question_words_carry_no_weight() -> None:
    assert query_words("Why is my softmax memory-bound?", vocabulary()) == [
        "softmax",
        "memory_bound",
        "memory",
        "bound",
    ]


def test_a_word_is_asked_for_once() -> None:
    assert query_words("warps Warps WARPS", vocabulary()) == ["warps"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("what is ld.global.nc", ["ld_global_nc"]),
        ("raise num_warps on sm_90a", ["num_warps", "sm_90a"]),
        ("HGMMA or HMMA", ["hgmma", "hmma"]),
        ("version 3.11 of it", []),
        ("a plain question", []),
        ("std::max std::max", ["std_max"]),
    ],
)
def test_identifiers(text: str, found: list[str]) -> None:
    assert identifiers(text) == found
