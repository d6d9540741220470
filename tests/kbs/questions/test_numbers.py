"""Numbers of a question: what a kernel uses, its sizes, a latency, and what is taken for granted about hardware."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given as draw
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.numbers import Premise, given, latency_given, premises, sizes, used
from kbs.questions.question import understand

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("64 registers and 256 threads", {"registers": 64, "threads": 256}),
        ("128 regs/thread, block size 512, 48 KB shared", {"registers": 128, "threads": 512, "shared": 49152}),
        ("registers per thread: 96, num_warps=8", {"registers": 96, "threads": 256}),
        ("8 warps/block, 255 registers a thread", {"registers": 255, "threads": 256}),
        ("blockDim.x = 128", {"threads": 128}),
        ("a thread block of 1024", {"threads": 1024}),
        ("1,024 threads per block", {"threads": 1024}),
        ("a block size of 1,024", {"threads": 1024}),
        ("1.5 KiB shared", {"shared": 1536}),
        ("smem = 32KB", {"shared": 32768}),
        ("99.5 KB of dynamic shared memory per block", {"shared": 101888}),
        ("1,024 KB of shared memory", {"shared": 1048576}),
        ("128 threads, then 256 threads; 32 registers, 64 registers", {"threads": 128, "registers": 32}),
        ("64 registers,256 threads", {"registers": 64, "threads": 256}),
    ],
)
def test_what_a_kernel_uses(text: str, found: dict[str, int]) -> None:
    assert given(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "2048 threads per SM",
        "2,048 threads per SM",
        "256 threads on an SM",
        "2048 threads on each SM",
        "65,536 registers",
        "registers: 64,000",
        "32 registers per block",
        "12 registers an SM",
        "228 KB shared memory per SM",
        "100 KB of smem per SM",
        "100 KB of shared memory of each SM",
        "shared memory per SM of 228 KB",
        "shared memory of 228 KB per SM",
        "v64 registers, 0.256 threads",
        "50 MB of L2",
        "why is it slow",
    ],
)
def test_what_an_sm_has_is_no_use_of_a_kernel(text: str) -> None:
    assert given(text) == {}


@draw(st.integers(1, 255), st.integers(32, 1024), st.integers(1, 227), st.booleans())
def test_numbers_are_read_as_they_are_said(registers: int, threads: int, kb: int, grouped: bool) -> None:
    text = f"{registers} registers, {threads:{',' if grouped else ''}} threads a block, {kb} KB of shared memory"
    found = {"registers": registers, "threads": threads, "shared": kb * 1024}
    assert given(text) == found
    assert used(found) == (
        f"{registers:,} registers a thread, {threads:,} threads a block, {kb * 1024:,} B of shared memory a block"
    )


def test_nothing_used_is_no_words() -> None:
    assert used({}) == ""


@pytest.mark.parametrize(
    ("text", "said", "base"),
    [
        ("with 650 ns latency", "650 ns", "650e-9"),
        ("1.5ns", "1.5 ns", "1.5e-9"),
        ("400 nanoseconds", "400 ns", "400e-9"),
        ("a latency of 1,200 clks", "1,200 cycles", "1200"),
        ("2 cycles and 3 ns", "2 cycles", "2"),
    ],
)
def test_a_latency(text: str, said: str, base: str) -> None:
    found = latency_given(text)
    assert found is not None
    assert (found[0], found[1].base) == (said, Decimal(base))


@pytest.mark.parametrize("text", ["v3 ns", "0.3.4 ns", "3 nsec", "ns", "3 us", ""])
def test_no_latency(text: str) -> None:
    assert latency_given(text) is None


@pytest.mark.parametrize(
    ("text", "operation", "found"),
    [
        ("a 4096x8192 softmax", "softmax", {"M": 4096, "N": 8192}),
        ("16 x 32 × 64", "matmul", {"M": 16, "N": 32, "K": 64}),
        ("8k*2K", "softmax", {"M": 8192, "N": 2048}),
        ("m=128, N = 4k", "softmax", {"M": 128, "N": 4096}),
        ("4096x8192 with M=7", "softmax", {"M": 7, "N": 8192}),  # what is named counts for more
        ("4096^2", "softmax", {"M": 4096, "N": 4096}),
        ("1024² ", "gemv", {"M": 1024, "K": 1024}),
        ("2x32x4096x128", "attention", {"B": 2, "H": 32, "S": 4096, "D": 128}),
        ("4x5x6", "softmax", {}),  # not as many as the operation has
        ("M=0", "softmax", {}),
        ("Q=5", "softmax", {}),
        ("1.5x2 and v4x4", "softmax", {}),
        ("4096x8192", "", {}),
    ],
)
def test_sizes(text: str, operation: str, found: dict[str, int]) -> None:
    assert sizes(text, operation, V) == found


def told(text: str) -> list[tuple[str, str, str, bool]]:
    """(text, metric, qualifier, measured) of each premise."""
    return [(one.text, one.metric, one.qualifier, one.measured) for one in understand(text, V).premises]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("H100 has 3.35 TB/s, right?", [("3.35 TB/s", "hbm_bandwidth", "", False)]),
        ("I get 2 TB/s on H100", [("2 TB/s", "hbm_bandwidth", "", True)]),
        ("749 GB/s out of 900 on V100", [("749 GB/s", "hbm_bandwidth", "", True)]),
        (
            "2.5 TB/s of 3.35 TB/s on H100",
            [("2.5 TB/s", "hbm_bandwidth", "", True), ("3.35 TB/s", "hbm_bandwidth", "", False)],
        ),
        ("H100 with 50 MB L2", [("50 MB", "l2_capacity", "", False)]),
        ("is its L2 50mb", [("50mb", "l2_capacity", "", False)]),
        ("the H100 has 132 SMs", [("132 SMs", "sm_count", "", False)]),
        ("989 dense bf16 on H100", [("989 dense", "bf16_tensor_throughput", "dense", False)]),
        ("1000 TFLOPS sparse fp8", [("1000 TFLOPS sparse", "fp8_tensor_throughput", "sparse 2:4", False)]),
        ("H100 has 989.4 TFLOPS", [("989.4 TFLOPS", "", "", False)]),  # of which type nobody says
        ("A100 80GB is slow", []),  # part of a name
        ("64 registers, 256 threads on H100", []),  # what a kernel uses
        ("a 5 us kernel of 32 GB", []),
        ("a 4096x4096 softmax on H100", []),
    ],
)
def test_premises(text: str, found: list[tuple[str, str, str, bool]]) -> None:
    assert told(text) == found


def test_a_latency_is_no_number_of_a_gpu() -> None:
    """A GeForce may be named by its number alone."""
    assert understand("latency of 1050 on T4", V).unknown_products == ("GTX 1050",)
    for unit in ("ns", "us", "cycles", "clocks", "clks"):
        assert understand(f"a latency of 1050 {unit} on T4", V).unknown_products == ()


def test_k_and_m_of_a_capacity_are_binary() -> None:
    [cache] = understand("H100 with 50 MB L2", V).premises
    [rate] = understand("H100 with 2 TB/s", V).premises
    assert (cache.quantity.base, rate.quantity.base) == (50 * 1024**2, 2 * 10**12)


def test_a_number_far_from_what_a_metric_can_be_is_none_of_it() -> None:
    assert told("an L2 of 50 GB on H100") == []


@draw(st.text(alphabet="0123456789.,xkM=GTB/s ^²dense hbmL2 threads registers", max_size=60))
def test_any_text_has_numbers_that_stand_in_it(text: str) -> None:
    made = premises(text, ("hbm_bandwidth",), (), V)
    assert all(isinstance(one, Premise) and one.text in text and one.quantity.base >= 0 for one in made)
    assert all(value >= 0 for value in given(text).values())
    assert all(size > 0 for size in sizes(text, "matmul", V).values())


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        ("64 KB of shared memory per block with 4 warps", 128),
        ("a tile of 48 KB in a block of 8 warps", 256),
        ("8 warps in a block", 256),
        ("a block has 64 KB, and an SM with 48 warps per SM", None),
    ],
)
def test_warps_of_a_block_are_threads(text: str, threads: int | None) -> None:
    assert given(text).get("threads") == threads
