"""Constants of kernels that are hardware specs by their names, and those that are not."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from loop.gate.constants.hardware import hardware_constants
from loop.gate.numbers.accounting import integers
from loop.gate.numbers.figures import Chosen
from tests.conftest import ROOT

KERNELS = [
    path
    for folder in ("docs", "tests/adversarial", "tests/evaluator", "tests/loop", "benchmarks", "wiki")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".cu") and not path.name.startswith("test_") and "l2_bytes" not in path.read_text("utf-8")
]


def found(text: str, name: str = "kernel.py", sizes: Iterable[Decimal] = ()) -> list[tuple[int, str]]:
    """(line, metric) of each; of those without a metric, why it is one."""
    chosen = Chosen.of(set(sizes), set())
    return [
        (spec.line, spec.metrics[0] if spec.metrics else spec.why)
        for spec in hardware_constants(text, name, vocabulary(), chosen=chosen)
    ]


def sizes_beside(path: Path) -> Iterator[Decimal]:
    """Sizes of the problem that a recorded kernel is for, as its receipt states them: the gate knows those of a run."""
    receipt = path.with_name(path.name.replace("best-", "receipt-")).with_suffix(".json")
    if receipt.is_file():
        problem = json.loads(receipt.read_text("utf-8"))["problem"]
        yield from integers(" ".join(map(str, (problem["dims"], problem["workloads"], problem["reference"]["text"]))))


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("NUM_SMS = 132", "sm_count"),
        ("num_sm = 132", "sm_count"),
        ("SM_COUNT: tl.constexpr = tl.constexpr(132)", "sm_count"),
        ("def f():\n    numSms = 128 + 4", "sm_count"),
        ("L2_BYTES = 50 * 1024 * 1024", "l2_capacity"),
        ("L2_CACHE_SIZE = 50 << 20", "l2_capacity"),
        ("HBM_BANDWIDTH = 3.35e12", "hbm_bandwidth"),
        ("A100_HBM_BANDWIDTH_GBS = 1_555", "hbm_bandwidth"),
        ("BF16_TFLOPS = 989", "bf16_tensor_throughput"),
        ("CLOCK_MHZ = 1980", "boost_clock"),
    ],
)
def test_a_spec_by_its_name(text: str, metric: str) -> None:
    assert found(text) == [(text.count("\n") + 1, metric)]


@pytest.mark.parametrize(
    ("text", "line", "metric"),
    [
        ("\n#define NUM_SMS 132  // all\n", 2, "sm_count"),
        ("#define L2_BYTES (50u * 1024u * 1024u)", 1, "l2_capacity"),
        ("constexpr size_t L2_SIZE = 50ull << 20, C = 3;", 1, "l2_capacity"),
        ("static const double kHbmBandwidthGbs{3'350.0f};", 1, "hbm_bandwidth"),
    ],
)
def test_a_spec_in_cuda(text: str, line: int, metric: str) -> None:
    assert found(text, "kernel.cu") == [(line, metric)]


@pytest.mark.parametrize(
    "text",
    [
        "PEAK = 3.9e12",
        "BW = 3900  # GB/s",
        'TABLE = {"sm_count": 144}',
        "def run(x, num_sms=144):\n    return x",
        "run(x, num_sms=144)",
        "f[(144,)](x)",
        "grid = (144,)\nf[grid](x)",
        "grid = lambda meta: (min(144, meta['N']),)\nf[grid](x)",
        "programs, n = 144, 2\nf[(programs,)](x)",
        "config.sm_count = 144",
        "def f(rows, units=144):\n    return min(rows, 4 * units)\nn = f(x)\nk[(n,)](x)",
        "A, NUM_SMS = 3, 144",
    ],
)
def test_a_spec_by_its_place(text: str) -> None:
    assert found(text)


def test_a_value_of_this_gpu_is_one() -> None:
    (one,) = hardware_constants("P = 132\n", "kernel.py", vocabulary(), frozenset({Decimal(132)}))
    assert one.why == "it is a spec of this GPU"
    sizes = Chosen.of({Decimal(132)}, set())
    assert not list(hardware_constants("P = 132\n", "kernel.py", vocabulary(), frozenset({Decimal(132)}), sizes))


@pytest.mark.parametrize(
    "text",
    [
        "f[((n + 255) // 256,)](x)",
        "f[(n, 4)](x)",
        "NUM_SMS = props.multi_processor_count",
        "NUM_SMS = 4",
        "BANDWIDTH = 64",
        "L2 = 512",
        "L2_WEIGHT = 5",
        "L2_LINE_BYTES = 128",
        "SMEM_BYTES = 48 * 1024",
        "SHARED_MEMORY = 65536",
        "MEMORY_SIZE = 64",
        "WARP_SIZE = 32",
        "MAX_THREADS = 1024",
        "CLOCK = 4",
        "SM = 90",
        "FP8_MAX = 448",
        "NUM_SMS = 'many'",
        "NUM_SMS = 2 ** 2 ** 2 ** 2 ** 2 ** 2",
        "L2_BYTES = 1 << 100000000000",
        "HBM_BANDWIDTH = 1e400",
        "NUM_SMS = 1 / 0",
        "NUM_SMS =",
    ],
)
def test_no_spec(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ('asm("x %132;" : "+f"(d[132]));', False),
        ("sum += part[132];", False),
        ("__shared__ float part[132];", True),
        ("sum += 132;", True),
        ("k<<<n[132], 64>>>(x);", True),
    ],
)
def test_the_place_of_an_element_is_no_spec(text: str, is_one: bool) -> None:
    assert bool(list(hardware_constants(text, "kernel.cu", vocabulary(), {Decimal(132)}))) == is_one


def test_no_kernel_of_the_tree_has_one() -> None:
    assert len(KERNELS) > 100
    said = {path: found(path.read_text("utf-8"), path.name, sizes_beside(path)) for path in KERNELS}
    assert {path: specs for path, specs in said.items() if specs} == {}


def test_a_product_of_the_run_s_sizes_is_a_size() -> None:
    sizes = {Decimal(n) for n in (33, 100, 3000)}
    assert not found("k[(33 * 100 * triton.cdiv(3000, 64),)](x)", sizes=sizes)
    assert not found("k[(33 * 100 * 3000,)](x)", sizes=sizes)
    for grid in ("33 * 100 + 3000", "33 * 100 * 3001", "33 * 100 * 3000 * 7", "9900001"):
        assert found(f"k[({grid},)](x)", sizes=sizes)


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("NUM_SMS=132 *<(){};#define\n'\"\\0x.eE"), max_size=60))
def test_any_text_is_read(text: str) -> None:
    for name in ("kernel.py", "kernel.cu"):
        found(text, name)


@pytest.mark.slow
def test_a_large_kernel_is_read_soon() -> None:
    began = time.monotonic()
    assert found("".join(f"x{n} = {n} * 2\n" for n in range(50_000)) + "NUM_SMS = 132\n") == [(50_001, "sm_count")]
    assert time.monotonic() - began < 20, "longer than linear"
