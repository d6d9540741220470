"""The GPUs of a question: each name with its variants, and words that only look like one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.products import NOBODY, named, without_unknown
from kbs.questions.question import understand

V = vocabulary()
H100 = ("h100-sxm", "h100-pcie", "h100-nvl")
A100 = ("a100-sxm-40gb", "a100-sxm-80gb", "a100-pcie-40gb", "a100-pcie-80gb")


def groups(text: str) -> list[tuple[str, ...]]:
    return named(V.find(text), text, V)


@pytest.mark.parametrize(
    ("text", "read", "unknown"),
    [
        ("H100 and B999 and MI999", f"H100 and {NOBODY} and {NOBODY}", ("B999", "MI999")),
        ("B999 beside B999", f"{NOBODY} beside {NOBODY}", ("B999",)),
        ("RTX 5090 and RTX 5090 Ti", f"RTX 5090 and {NOBODY}", ("RTX 5090 Ti",)),
        ("RTX 9999 and RTX 9999 Ti", f"{NOBODY} and {NOBODY}", ("RTX 9999", "RTX 9999 Ti")),
        ("GTX 9980 vs RTX 3090", f"{NOBODY} vs RTX 3090", ("GTX 9980",)),
        ("A100X or A100", f"{NOBODY} or A100", ("A100X",)),
        ("sm_99 on H100", f"{NOBODY} on H100", ("sm_99",)),
        ("A30/B999/T4", f"A30/ {NOBODY} /T4", ("B999",)),
        ("sm_90a and sm_89", "sm_90a and sm_89", ()),
        ("nvidia h100, tesla T4", "nvidia h100, tesla T4", ()),
        ("B2B999 mma_B999x", "B2B999 mma_B999x", ()),
        ("why is softmax slow", "why is softmax slow", ()),
        ("", "", ()),
    ],
)
def test_names_of_unknown_gpus_are_taken_out(text: str, read: str, unknown: tuple[str, ...]) -> None:
    assert without_unknown(text, V) == (read, unknown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("H100", [H100]),
        ("A100 and H100", [A100, H100]),
        ("A100 80GB", [("a100-sxm-80gb", "a100-pcie-80gb")]),
        ("A100 80 GB vs 40 GB", [("a100-sxm-80gb", "a100-pcie-80gb"), ("a100-sxm-40gb", "a100-pcie-40gb")]),
        ("H100 SXM, H100 PCIe and NVL", [("h100-sxm",), ("h100-pcie",), ("h100-nvl",)]),
        ("H100 PCIe than SXM", [("h100-pcie",), ("h100-sxm",)]),
        ("H100 SXM with PCIe", [("h100-sxm",)]),  # no word that sets two beside each other
        ("sm_89", [("cc-8-9",)]),
        ("H100 and sm_90", [H100]),  # the target of the GPU that is named
        ("H100 and sm_89", [H100, ("cc-8-9",)]),
        ("SXM and PCIe", []),
        ("", []),
    ],
)
def test_each_name_has_its_products(text: str, found: list[tuple[str, ...]]) -> None:
    assert groups(text) == found


def test_a_gpu_of_an_option_stands_beside_those_of_the_text() -> None:
    read = understand("why is softmax slow on T4", V, gpus=("A100 40GB", "B999"))
    assert read.named == (("t4",), ("a100-sxm-40gb", "a100-pcie-40gb"))
    assert read.products == ("t4", "a100-sxm-40gb", "a100-pcie-40gb")
    assert read.unknown_products == ("B999",)


@pytest.mark.parametrize("said", ["6090", "RTX 6090", "6080 Ti", "7090", "B400", "MI500X", "RTX A7000"])
def test_a_number_of_a_family_that_no_entry_has_is_an_unknown_gpu(said: str) -> None:
    read = understand(f"bandwidth of a {said}?", V)
    assert read.products == ()
    assert [name.removeprefix("RTX ") for name in read.unknown_products] == [said.removeprefix("RTX ")]


@pytest.mark.parametrize(
    "text",
    ["a matrix of size 6080", "6050 rows", "6080x6080", "on port 6060", "N=6070", "6080 GB/s", "line 6090", "6090.5"],
)
def test_a_size_is_no_unknown_gpu(text: str) -> None:
    assert understand(f"is {text} slow?", V).unknown_products == ()


_WORDS = ("H100", "SXM", "PCIe", "A100", "80GB", "and", "vs", "B999", "sm_89", "sm_99", "T4", "RTX 9999", "Ti", "sum")


@given(st.lists(st.sampled_from(_WORDS), max_size=7).map(" ".join))
def test_no_unknown_name_is_left_and_groups_are_products(text: str) -> None:
    read, unknown = without_unknown(text, V)
    assert read == re.sub(r"RTX 9999(?: Ti)*|B999|sm_99", NOBODY, text)
    assert without_unknown(read, V) == (read, ())
    assert all(name in text for name in unknown)
    for group in groups(read):
        assert group
        assert len(set(group)) == len(group)
        assert set(group) <= set(V.products)


def test_an_unknown_gpu_is_neither_looked_for_nor_a_part_of_an_identifier() -> None:
    asked = understand("does it run on A30/B999/T4", V)
    assert asked.unknown_products == ("B999",)
    assert NOBODY not in asked.sought
    assert asked.identifiers == ()
