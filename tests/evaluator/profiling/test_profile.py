"""Launches of a report: which one is spoken of, and values of several versions under one name."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.profiling.profile import Profile, function_name, read_profile
from kbs.common.errors import UsageError
from kbs.hardware.profile_metrics import profile_metrics
from tests.evaluator.ncu_reports import SOFTMAX, Metrics, changed, raw_csv, without

OLD = {
    **without("gpu__time", "gpc__", "dram__bytes", "launch__shared"),
    "gpu__time_duration.sum": ("nsecond", "128,500"),
    "gpc__cycles_elapsed.avg.per_second": ("cycle/nsecond", "1.755"),
    "dram__bytes_read.sum": ("Gbyte", "0.268435456"),
    "dram__bytes_write.sum": ("byte", "263,100,000"),
    "launch__shared_mem_per_block_static": ("byte/block", "0"),
    "launch__shared_mem_per_block_dynamic": ("byte/block", "1,024"),
}
"""The same launch in units of an older version (made up)."""


def profile(*launches: tuple[str, Metrics]) -> Profile:
    """A report, read."""
    return read_profile(raw_csv(*launches).encode(), "r.csv")


def test_versions_differ_in_units_and_not_in_values() -> None:
    new, old = (profile(("k", metrics)).launches[0] for metrics in (SOFTMAX, OLD))
    for id in profile_metrics().all:
        assert new.value(id) == old.value(id), id
    assert new.value("duration") == Decimal("128.5")
    assert new.value("dram_bytes_read") == 268_435_456
    assert new.value("sm_clock") == 1_755_000_000
    assert new.value("dynamic_shared_memory") == 1024


def test_versions_differ_in_names() -> None:
    name = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    metrics = {**without(name), name.replace("active.", "active_v2."): ("%", "86.3")}
    launch = profile(("k", metrics)).launches[0]
    found = launch.counter(name)
    assert found is not None
    assert (found.value, found.ncu) == (Decimal("86.3"), name.replace("active.", "active_v2."))
    assert launch.value("tensor_pipe") == Decimal("86.3")


def test_what_is_missing_is_none_and_not_zero() -> None:
    launch = profile(("k", changed(l2_hit_rate="n/a", l1_hit_rate="", dram_throughput="nan"))).launches[0]
    for id in ("l2_hit_rate", "l1_hit_rate", "dram_throughput", "l2_bytes"):
        assert launch.metric(id) is None
        assert launch.value(id) is None
    assert launch.value("tensor_pipe") == 0


def test_a_unit_that_is_not_known_or_does_not_fit_is_said() -> None:
    name = "gpu__time_duration.sum"
    for unit in ("fortnight", "byte", "%"):
        launch = profile(("k", {**SOFTMAX, name: (unit, "3")})).launches[0]
        assert launch.value("duration") is None
        assert launch.unread == (f"{name} ({unit})",)


def test_the_slowest_launch_is_chosen() -> None:
    found = profile(("a", SOFTMAX), ("void b<int>(int)", changed(duration="9000.1")), ("c", changed(duration="1")))
    chosen = found.choose()
    assert (chosen.launch.number, chosen.launch.function) == (2, "b")
    assert chosen.why == "the slowest of 3 launches"


def test_a_launch_is_chosen_by_number_or_name() -> None:
    found = profile(("ns::a<int>(int)", changed(duration="5")), ("b(int)", SOFTMAX), ("ns::a<int>(int)", SOFTMAX))
    assert found.choose("1").launch.number == 1
    assert found.choose("a").launch.number == 3
    assert found.choose("a").why == "the slowest of 2 launches of a"
    assert found.choose("b(int)").why == "the only launch of b(int)"
    assert found.choose("ns::a").launch.number == 3


@pytest.mark.parametrize(
    ("wanted", "code"), [("0", "launch_unknown"), ("4", "launch_unknown"), ("nope", "report_of_another_kernel")]
)
def test_another_kernel_is_not_taken_for_it(wanted: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        profile(("a", SOFTMAX), ("b", SOFTMAX), ("c", SOFTMAX)).choose(wanted)
    assert caught.value.code == code


def test_without_times_the_slowest_is_not_guessed() -> None:
    metrics = without("gpu__time")
    with pytest.raises(UsageError) as caught:
        profile(("a", metrics), ("b", metrics)).choose()
    assert caught.value.code == "launch_needed"
    assert profile(("a", metrics)).choose().why == "the only launch"


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("void ns::softmax<float, (int)4>(float *, int)", "softmax"),
        ("softmax_kernel", "softmax_kernel"),
        ("void (anonymous namespace)::foo<int>(int)", "foo"),
        ("triton_red_fused_0", "triton_red_fused_0"),
    ],
)
def test_function_names(kernel: str, function: str) -> None:
    assert function_name(kernel) == function


@given(st.text(max_size=60))
def test_any_name_has_a_function(kernel: str) -> None:
    assert isinstance(function_name(kernel), str)
