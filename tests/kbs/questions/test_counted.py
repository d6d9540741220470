"""Which arithmetic units a question counts, of an SM or in all, and the number that it gives of them."""

from __future__ import annotations

import pytest

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.counted import counted_units
from kbs.questions.question import Question, understand

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("how many CUDA cores does the RTX 4090 have", ("fp32_unit_count",)),
        ("How many SMs and CUDA cores does the H100 SXM have?", ("sm_count", "fp32_unit_count")),
        ("how many CUDA cores and tensor cores in an A100", ("fp32_unit_count", "tensor_core_count")),
        ("number of stream processors of the MI300X", ("fp32_unit_count",)),
        ("tensor core count of the RTX 5090", ("tensor_core_count",)),
        ("RTX 4090 vs RTX 3090 CUDA cores", ("fp32_unit_count",)),
        ("does the 4090 have more CUDA cores than the 3090?", ("fp32_unit_count",)),
        ("4090 有多少 CUDA 核心", ("fp32_unit_count",)),
        ("how many tensor cores per SM on A100", ("tensor_cores_per_sm",)),
        ("CUDA cores in each SM of Ada", ("fp32_units_per_sm",)),
        ("how many tensor cores does an SM of the A100 have", ("tensor_cores_per_sm",)),
        ("how many FP64 units per SM on sm_86", ("fp64_units_per_sm",)),
        ("how many warp schedulers does one SM have on Hopper", ("warp_schedulers_per_sm",)),
        ("how many stream processors per CU on the MI300X", ("fp32_units_per_sm",)),
    ],
)
def test_units_that_are_asked_for(text: str, metrics: tuple[str, ...]) -> None:
    assert understand(text, V).metrics == metrics


@pytest.mark.parametrize(
    "text",
    [
        "why do I need far more threads than CUDA cores",
        "how many threads should I run per CUDA core",
        "do tensor cores help a softmax",
        "H100 tensor cores",
        "what is a CUDA core",
        "FP16 without tensor cores on H100 SXM",
    ],
)
def test_units_that_are_only_named(text: str) -> None:
    assert not list(counted_units(text, V))
    assert "tensor_core_count" not in understand(text, V).metrics


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("does the 3090 have 10,496 CUDA cores?", [("10,496 CUDA cores", "fp32_unit_count", 10496)]),
        ("H200 has 64 tensor cores per SM, right?", [("64 tensor cores per SM", "tensor_cores_per_sm", 64)]),
        ("V100 with 640 1st gen tensor cores", [("640 1st gen tensor cores", "tensor_core_count", 640)]),
        ("RTX 4090 CUDA cores", []),  # the number is a name
        ("is 1080 Ti CUDA core count known", []),
    ],
)
def test_numbers_of_units_that_are_stated(text: str, stated: list[tuple[str, str, int]]) -> None:
    found = understand(text, V).premises
    assert [(one.text, one.metric, int(one.quantity.base)) for one in found] == stated


def asked(text: str) -> Question:
    return understand(text, V)


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("A100 peak non-tensor FP16 and BF16", ("fp16_throughput", "bf16_throughput")),
        ("FP16 without tensor cores on H100 SXM", ("fp16_throughput",)),
        ("vector FP16 rate of the H200", ("fp16_throughput",)),
        ("peak BF16 TFLOPS of the A100 on CUDA cores", ("bf16_throughput",)),
        ("half precision throughput not on tensor cores, A100", ("fp16_throughput",)),
        ("FP8 without tensor cores on H100", ()),
        ("FP16 with tensor cores and without tensor cores on A100", ("fp16_throughput", "fp16_tensor_throughput")),
    ],
)
def test_rates_without_tensor_cores(text: str, metrics: tuple[str, ...]) -> None:
    assert (asked(text).metrics, asked(text).plain) == (metrics, True)


@pytest.mark.parametrize(
    "text", ["FP16 vector addition on A100", "peak FP16 of the A100", "FP16 GEMV matrix-vector product"]
)
def test_other_vectors(text: str) -> None:
    assert not asked(text).plain
    assert "fp16_throughput" not in asked(text).metrics


def test_a_rate_that_is_stated_is_that_without_tensor_cores() -> None:
    [stated] = asked("A100 does 312 TFLOPS FP16 without tensor cores, right?").premises
    assert stated.metric == "fp16_throughput"
