"""Roofline arithmetic, against sums done by hand."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from kbs.evidence.citation import Citation
from kbs.evidence.spec import Source, Spec
from kbs.evidence.table_rows import CostRow
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.roofline import (
    COMPUTE_BOUND,
    MEMORY_BOUND,
    Bound,
    OperationCost,
    bound_on,
    operation_cost,
    peak_metric,
    usable,
)

V = vocabulary()
HERE = Citation("gpu-wiki", "hardware/x.md", 1, 1, "", "", "")


def spec(metric: str, value: str, unit: str, qualifier: str = "", product: str = "h100-sxm") -> Spec:
    source = Source("ds", "Datasheet", "", "vendor-datasheet", "2026-11-21")
    return Spec(product, metric, value, unit, qualifier, "verified", source, HERE, True)


def cost(operation: str, *terms: tuple[str, str, str], dtype: str = "", **dims: int) -> OperationCost:
    rows = [CostRow(operation, kind, count, tuple(d.split()), "", "", HERE) for kind, count, d in terms]
    return operation_cost(rows, operation, dims, dtype, V)


SOFTMAX = (("vector FLOP", "5", "M N"), ("read", "1", "M N"), ("write", "1", "M N"))
MATMUL = (("tensor FLOP", "2", "M N K"), ("read", "1", "M K"), ("read", "1", "K N"), ("write", "1", "M N"))
H100 = [
    spec("hbm_bandwidth", "3.35", "TB/s"),
    spec("fp32_throughput", "66.9", "TFLOPS"),
    spec("bf16_tensor_throughput", "989.4", "TFLOPS", "dense"),
    spec("bf16_tensor_throughput", "1978.9", "TFLOPS", "sparse 2:4"),
]


@pytest.mark.parametrize(("dtype", "size"), [("fp32", 4), ("fp16", 2), ("bf16", 2), ("fp64", 8), ("fp8", 1)])
def test_softmax_cost(dtype: str, size: int) -> None:
    found = cost("softmax", *SOFTMAX, dtype=dtype, M=4096, N=1024)
    assert found.bytes == 2 * 4096 * 1024 * size
    assert found.flop == {"vector": 5 * 4096 * 1024}
    assert found.intensity("vector") == Decimal(5) / (2 * size)
    assert found.scale_free


def test_matmul_cost_depends_on_the_size() -> None:
    found = cost("matmul", *MATMUL, dtype="bf16", M=512, N=256, K=128)
    assert found.bytes == 2 * (512 * 128 + 128 * 256 + 512 * 256)
    assert found.flop == {"tensor": 2 * 512 * 256 * 128}
    assert not found.scale_free


def test_a_term_may_have_its_own_type_and_a_fractional_count() -> None:
    rows = [
        CostRow("softmax", "read", "1", ("M",), "int64", "", HERE),
        CostRow("softmax", "write", "0.5", ("M",), "", "", HERE),
        CostRow("softmax", "vector FLOP", "0", ("M",), "", "", HERE),
    ]
    found = operation_cost(rows, "softmax", {"M": 10}, "fp16", V)
    assert found.bytes == 10 * 8 + 5 * 2
    assert found.flop == {}


def bound(found: OperationCost, specs: list[Spec]) -> Bound:
    made = bound_on(found, "h100-sxm", specs, V)
    assert isinstance(made, Bound)
    return made


def test_softmax_is_memory_bound() -> None:
    made = bound(cost("softmax", *SOFTMAX, dtype="fp32", M=4096, N=4096), H100)
    assert made.bound == MEMORY_BOUND
    assert made.pipe == "vector"
    assert round(made.ridge["vector"], 2) == Decimal("19.97")
    seconds = Fraction(2 * 4096 * 4096 * 4) / Fraction(335 * 10**10)
    assert Fraction(made.memory_time) == pytest.approx(seconds, rel=1e-20)
    assert made.floor == made.memory_time
    assert Fraction(made.compute_time["vector"]) == pytest.approx(Fraction(5 * 4096**2, 669 * 10**11), rel=1e-20)


def test_a_large_matmul_is_compute_bound_at_the_dense_peak() -> None:
    made = bound(cost("matmul", *MATMUL, dtype="bf16", M=8192, N=8192, K=8192), H100)
    assert made.bound == COMPUTE_BOUND
    assert made.pipe == "tensor"
    assert made.peaks["tensor"].qualifier == "dense"
    assert round(made.ridge["tensor"], 1) == Decimal("295.3")
    assert made.floor == made.compute_time["tensor"] > made.memory_time


def test_a_thin_matmul_is_memory_bound() -> None:
    made = bound(cost("matmul", *MATMUL, dtype="bf16", M=1, N=8192, K=8192), H100)
    assert made.bound == MEMORY_BOUND


def test_a_copy_computes_nothing() -> None:
    made = bound(cost("copy", ("read", "1", "M"), ("write", "1", "M"), dtype="fp32", M=1024), H100)
    assert made.bound == MEMORY_BOUND
    assert made.pipe is None
    assert made.ridge == {}


def test_two_pipes_are_bound_by_the_slower() -> None:
    terms = (("tensor FLOP", "4", "M M"), ("vector FLOP", "9", "M M"), ("read", "1", "M"))
    made = bound(cost("attention", *terms, dtype="bf16", M=65536), H100)
    assert made.pipe == "vector"
    assert made.bound == COMPUTE_BOUND


def test_what_is_missing_is_named() -> None:
    found = cost("matmul", *MATMUL, dtype="fp8", M=8, N=8, K=8)
    assert bound_on(found, "h100-sxm", H100, V) == ["fp8_tensor_throughput"]
    assert bound_on(found, "h100-pcie", H100, V) == ["hbm_bandwidth", "fp8_tensor_throughput"]


def test_the_peak_of_a_type() -> None:
    assert peak_metric("tensor", "bf16", V) == "bf16_tensor_throughput"
    assert peak_metric("vector", "bf16", V) == "fp32_throughput"
    assert peak_metric("vector", "fp64", V) == "fp64_throughput"


@pytest.mark.parametrize(
    "change",
    [
        {"recommended": False},
        {"qualifier": "rounded"},
        {"confidence": "experimental"},
        {"value": "unpublished"},
        {"value": "none"},
        {"product": "h100-pcie"},
        {"metric": "l2_bandwidth"},
    ],
)
def test_specs_that_are_not_calculated_with(change: dict[str, str]) -> None:
    good = spec("hbm_bandwidth", "3.35", "TB/s")
    assert usable([good], "h100-sxm", "hbm_bandwidth", V) is good
    changed = replace(good, **change)  # type: ignore[arg-type]  # any field of text
    assert usable([changed], "h100-sxm", "hbm_bandwidth", V) is None


def test_sparse_peaks_are_never_calculated_with() -> None:
    sparse = spec("bf16_tensor_throughput", "1978.9", "TFLOPS", "sparse 2:4")
    unsaid = spec("bf16_tensor_throughput", "989.4", "TFLOPS")
    assert usable([sparse, unsaid], "h100-sxm", "bf16_tensor_throughput", V) is None
