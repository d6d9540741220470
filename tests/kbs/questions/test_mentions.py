"""What a question says in other words than the vocabulary has."""

from __future__ import annotations

import pytest

from kbs.evidence.units import binary_unit
from kbs.evidence.vocabulary import vocabulary
from kbs.questions.mentions import of_each
from kbs.questions.question import understand

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("H100 SXM and PCIe", [("h100-sxm",), ("h100-pcie",)]),
        ("H100 PCIe or SXM", [("h100-pcie",), ("h100-sxm",)]),
        ("A100 SXM 80GB vs 40GB", [("a100-sxm-80gb",), ("a100-sxm-40gb",)]),
        ("H100 SXM and H200", [("h100-sxm",), ("h200-sxm",)]),
        ("H100 SXM and the cache", [("h100-sxm",)]),
        ("H100 SXM and", [("h100-sxm",)]),
        ("warps per SM on sm_89", [("cc-8-9",)]),
        ("sm_80 or sm_90a", [("cc-8-0",), ("cc-9-0",)]),
        ("the H100 SXM (sm_90)", [("h100-sxm",)]),
        ("sm_61 and mma_sm_90x", []),
    ],
)
def test_products(text: str, products: list[tuple[str, ...]]) -> None:
    assert list(understand(text, V).named) == products


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many registers can a thread use", "registers per thread"),
        ("how many blocks can an SM of an A100 run", "blocks per SM"),
        ("how much shared memory may each block have", "shared memory per block"),
        ("what is the shared memory of a block", "shared memory per block"),
        ("how many blocks are there", ""),
        ("why is it slow", ""),
    ],
)
def test_of_each(text: str, said: str) -> None:
    assert of_each(text) == said


@pytest.mark.parametrize("text", ["how many registers can a thread use on H100", "registers a thread on H100"])
def test_limits_of_a_thread(text: str) -> None:
    read = understand(text, V)
    assert read.metrics == ("max_registers_per_thread",)
    assert read.intent == "spec"


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("how do I reduce register spilling", ""),
        ("reduce launch overhead", ""),
        ("how do I reduce over rows", "sum"),
        ("why is my reduce slow", "sum"),
        ("a row reduce on H100", "sum"),
    ],
)
def test_reduce_as_a_verb(text: str, operation: str) -> None:
    assert understand(text, V).operation == operation


def test_the_name_of_a_capability_asks_for_no_metric() -> None:
    assert understand("does CC 8.9 support FP8", V).metrics == ()
    assert understand("compute capability of H100", V).metrics == ("compute_capability",)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("how much faster is H200 than H100 SXM", "comparison"),
        ("is softmax faster on H200 than on H100 SXM", "calculation"),
        ("H100 SXM vs PCIe for a 64x64x64 matmul", "calculation"),
        ("how many bytes per cycle can L2 deliver on H100", "spec"),
        ("ridge point of H100", "calculation"),
    ],
)
def test_intents(text: str, intent: str) -> None:
    assert understand(text, V).intent == intent


def test_resolve_knows_targets() -> None:
    assert V.resolve("product", "sm_89") == ["cc-8-9"]
    assert V.resolve("product", "SM90a") == ["cc-9-0"]
    assert V.resolve("product", "sm_61") == []


@pytest.mark.parametrize(
    ("unit", "binary"), [("MB", "MiB"), ("KB", "KiB"), ("KiB", "KiB"), ("B", "B"), ("blocks", "blocks")]
)
def test_binary_unit(unit: str, binary: str) -> None:
    assert binary_unit(unit) == binary
