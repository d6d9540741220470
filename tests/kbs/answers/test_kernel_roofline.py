"""The sums of a roofline: every printed line is right, and what is not known is not computed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.answers.kernel_roofline import Demand, MeasuredCeilings, Roof, Term, achieved, place
from kbs.evidence.arithmetic import equation_holds

BANDWIDTH = Roof("hbm_bandwidth", "HBM bandwidth", Decimal("4.8e12"), "4.8 TB/s", "cited", "page L1")
FP32 = Roof("fp32_throughput", "FP32 throughput", Decimal("67e12"), "67 TFLOPS", "cited", "page L2")
BF16 = Roof("bf16_tensor_throughput", "BF16", Decimal("989.5e12"), "989.5 TFLOPS", "cited", "page L3")
PEAKS = {"fp32_throughput": FP32, "bf16_tensor_throughput": BF16}


def measured(rate: str, metric: str = "hbm_bandwidth") -> Roof:
    """A measured ceiling: `4101 GB/s` or `798 TFLOPS`."""
    value, unit = rate.split()
    return Roof(metric, metric, Decimal(value) * (10**9 if unit == "GB/s" else 10**12), rate, "measured", "here")


def demand(read: int = 4000, written: int = 4000, fp32: int = 0, bf16: int = 0) -> Demand:
    """A demand of so many bytes and operations."""
    return Demand(
        (Term("read x", (read,)),),
        (Term("write y", (written,)),),
        {"fp32_throughput": (Term("add", (fp32,)),), "bf16_tensor_throughput": (Term("mm", (bf16,)),)},
    )


terms = st.builds(Term, st.just("x"), st.lists(st.integers(1, 10**5), min_size=1, max_size=4).map(tuple))
several = st.lists(terms, max_size=40).map(tuple)
rates = st.decimals(Decimal("0.1"), 9999, places=2)


def roofs(metric: str, unit: str, scale: int) -> st.SearchStrategy[Roof]:
    """Cited peaks of any size."""
    return rates.map(lambda rate: Roof(metric, metric, rate * scale, f"{rate} {unit}", "cited", "page"))


ceilings = st.builds(
    MeasuredCeilings,
    *[st.none() | roofs("hbm_bandwidth", "GB/s", 10**9)] * 3,
    st.just({}) | roofs("fp32_throughput", "TFLOPS", 10**12).map(lambda roof: {"fp32_throughput": roof}),
)


@settings(deadline=None)
@given(
    st.builds(
        Demand,
        several,
        several,
        st.fixed_dictionaries({}, optional={"fp32_throughput": several, "bf16_tensor_throughput": several}),
        st.booleans(),
    ).filter(lambda made: made.bytes > 0),
    st.none() | roofs("hbm_bandwidth", "TB/s", 10**12),
    st.none() | roofs("fp32_throughput", "TFLOPS", 10**12),
    st.none() | ceilings,
    st.decimals(Decimal("0.001"), 10**7, places=3),
    st.none() | st.integers(1, 10**12),
)
def test_every_line_of_arithmetic_holds(
    wanted: Demand,
    bandwidth: Roof | None,
    fp32: Roof | None,
    found: MeasuredCeilings | None,
    micros: Decimal,
    counted: int | None,
) -> None:
    if wanted.mixed:
        wanted = Demand((*wanted.read, *wanted.written), (), wanted.operations, mixed=True)
    placed = place(wanted, bandwidth, {"fp32_throughput": fp32, "bf16_tensor_throughput": BF16}, found)
    for step in (*placed.steps, *achieved(placed, micros / 10**6, f"{micros} µs", counted)):
        assert equation_holds(step.shown) is True, step.shown
    known = bandwidth is not None and (fp32 is not None or "fp32_throughput" not in wanted.flop)
    assert (placed.floor is not None) is known is (placed.target is not None) is bool(placed.bound)
    assert bool(placed.missing) is not known
    if placed.floor is not None and found is None:
        assert placed.target == placed.floor / Decimal("0.9")


def test_memory_bound_below_the_ridge_and_compute_bound_above() -> None:
    low = place(demand(fp32=1000), BANDWIDTH, PEAKS, None)
    assert (low.bound, low.metric) == ("memory-bound", "hbm_bandwidth")
    assert low.intensity["fp32_throughput"] == Decimal("0.125") < low.ridge["fp32_throughput"]
    assert low.floor == Decimal(8000) / Decimal("4.8e12")
    high = place(demand(fp32=8000 * 14), BANDWIDTH, PEAKS, None)
    assert (high.bound, high.metric) == ("compute-bound", "fp32_throughput")
    assert high.floor == Decimal(8000 * 14) / Decimal("67e12")


def test_the_pipe_that_takes_longest_binds() -> None:
    both = place(demand(fp32=10**9, bf16=10**10), BANDWIDTH, PEAKS, None)
    assert both.metric == "fp32_throughput", "1e9 / 67e12 is longer than 1e10 / 989.5e12"
    assert set(both.compute_time) == set(PEAKS)


def test_no_operations_is_memory_bound() -> None:
    found = place(demand(), BANDWIDTH, {}, None)
    assert (found.bound, found.intensity, found.missing) == ("memory-bound", {}, ())


@pytest.mark.parametrize(
    ("bandwidth", "peaks", "missing"),
    [
        (None, PEAKS, ("hbm_bandwidth",)),
        (BANDWIDTH, {}, ("fp32_throughput",)),
        (None, {}, ("hbm_bandwidth", "fp32_throughput")),
    ],
)
def test_nothing_is_computed_of_what_is_not_known(
    bandwidth: Roof | None, peaks: dict[str, Roof], missing: tuple[str, ...]
) -> None:
    found = place(demand(fp32=1000), bandwidth, peaks, None)
    assert found.missing == missing
    assert (found.floor, found.target, found.bound, found.ridge) == (None, None, "", {})
    assert (found.memory_time is None) is (bandwidth is None)
    assert found.intensity, "it needs no rate"


@pytest.mark.parametrize(
    ("read", "written", "parts"),
    [
        (4000, 4000, ["8,000 B / 4101 GB/s"]),
        (9000, 1000, ["2,000 B / 4101 GB/s", "8,000 B / 4670 GB/s"]),
        (1000, 9000, ["2,000 B / 4101 GB/s", "8,000 B / 3900 GB/s"]),
        (9000, 0, ["9,000 B / 4670 GB/s"]),
    ],
)
def test_the_target_is_a_part_of_the_measured_ceiling_of_the_same_mix(
    read: int, written: int, parts: list[str]
) -> None:
    found = MeasuredCeilings(measured("4101 GB/s"), measured("4670 GB/s"), measured("3900 GB/s"), {})
    placed = place(demand(read, written), BANDWIDTH, {}, found)
    expression = placed.steps[-1].expression
    assert placed.target_from == "measured"
    assert all(part in expression for part in parts), expression
    assert expression.count(" B / ") == len(parts)


def test_a_measured_product_of_matrices_is_the_target_where_it_binds() -> None:
    found = MeasuredCeilings(None, None, None, {"bf16_tensor_throughput": measured("798 TFLOPS", "bf16")})
    placed = place(demand(bf16=10**9), BANDWIDTH, PEAKS, found)
    assert placed.steps[-1].shown == "1,000,000,000 FLOP / 798 TFLOPS / 0.9 = 1.39 µs"
    assert placed.target_from == "measured"
    assert placed.floor == Decimal(10**9) / BF16.rate, "the floor is that of the cited peak"


def test_shares_of_a_measured_time() -> None:
    placed = place(demand(fp32=1000), BANDWIDTH, PEAKS, None)
    shown = {step.name: step.shown for step in achieved(placed, Decimal("4e-9"), "0.004 µs")}
    assert shown["achieved bandwidth"] == "8,000 B / 0.004 µs = 2,000 GB/s"
    assert shown["share of the cited bandwidth"].endswith("= 41.7 %")
    assert shown["floor in the measured time"].endswith("= 41.7 %")
    counted = {step.name: step.shown for step in achieved(placed, Decimal("4e-9"), "0.004 µs", 16000)}
    assert counted["share of the cited bandwidth"].endswith("= 83.3 %")
    assert counted["floor in the measured time"].endswith("= 41.7 %"), "the floor is that of the compulsory bytes"
