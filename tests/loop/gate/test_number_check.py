"""Numbers that a proposer states: found where they stand, and reported where they do not."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.profiling.profile import Launch, read_profile
from kbs.evidence.units import parse_quantity
from loop.gate.figures import Figures, equations
from loop.gate.number_check import loose_numbers
from loop.gate.sources import derived, measured, receipt_figures
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv

PROFILE = read_profile(raw_csv(("softmax_kernel", SOFTMAX)).encode(), "profile.csv")


def launch() -> Launch:
    return PROFILE.choose().launch


def loose(text: str, *, conditions: bool = False, cited: str = "") -> list[str]:
    said = Figures()
    said.add_text(cited)
    shown = Figures()
    known = measured([PROFILE], [])
    for one in derived(text, (known, said)):
        for result in one.equation.results if one.grounded or one.counted else ():
            shown.add(result)
    found = loose_numbers(text, [launch()], (known, Figures(), said, shown), conditions=conditions)
    return [number.text for number in found]


@pytest.mark.parametrize(
    "text",
    [
        "DRAM throughput is 88.6 %.",
        "DRAM throughput: 88.60 %",
        "dram_throughput = 88.6",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed 88.6 %",
        "The L1 throughput is 40.2 % and the L2 throughput 52.1 %.",
        "88.6 % DRAM throughput, 31.4 % SM throughput",
        "Duration: 128.5 us, 0.1285 ms",
        "It reads 268.435456 MB, 268 MB in short.",
        "registers per thread: 32",
        "theoretical occupancy of 100 %, achieved occupancy 92.3 %",
        "long scoreboard is 48.2",
        "A block of 1024 threads, 4 warps, 7 of 9 rows, v3, sm_90, 4096 x 4096",
        "2 * 64 * 96 * 4 B = 49152 B, 48 KiB",
        "268.435456 MB / 128.5 us = 2.089 TB/s",
        "It loads 16 bytes at once, 4 B an element.",
    ],
)
def test_numbers_that_stand_somewhere_are_let_pass(text: str) -> None:
    assert loose(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("DRAM throughput is 40.2 %.", "40.2 %"),
        ("dram_throughput = 40.2", "dram_throughput 40.2"),
        ("DRAM throughput is 89 %.", "89 %"),
        ("The L1 throughput is 52.1 %.", "52.1 %"),
        ("52.1 % L1 throughput", "52.1 %"),
        ("registers per thread: 64", "registers per thread 64"),
        ("It takes 129.5 us.", "129.5 us"),
        ("It moves 700 MB.", "700 MB"),
        ("5 TB/s * 2 = 10 TB/s", "5 TB/s"),
        ("fma_pipe 99.9 %", "99.9 %"),
        ("local_loads: 12", "local_loads 12"),
    ],
)
def test_numbers_that_stand_nowhere_are_told(text: str, number: str) -> None:
    assert number in loose(text)


def test_what_the_profile_has_is_told() -> None:
    (found,) = loose_numbers("DRAM throughput is 40.2 %.", [launch()], (Figures(),) * 4)
    assert (found.metric, found.is_there, found.line) == ("dram_throughput", "88.6 %", 1)


def test_cited_numbers_are_let_pass() -> None:
    assert loose("Sectors have 48.5 KB.") == ["48.5 KB"]
    assert loose("Sectors have 48.5 KB.", cited="| size | 48.5 | KB |") == []


def test_limits_in_a_rule_are_no_statements() -> None:
    text = "Keep it below 75.5 us, or if DRAM throughput rises to 95 %; it is 77 us now."
    assert loose(text, conditions=True) == ["77 us"]
    assert loose(text) == ["75.5 us", "95 %", "77 us"]


def test_a_figure_is_found_by_its_value_and_name() -> None:
    figures = Figures()
    quantity = parse_quantity("3.35", "TB/s")
    assert quantity is not None
    figures.add(quantity, ("hbm_bandwidth",))
    for number, unit, found in (
        ("3,350", "GB/s", True),
        ("3.35", "TB/s", True),
        ("3.4", "TB/s", False),
        ("3", "TB/s", False),
    ):
        claim = parse_quantity(number, unit)
        assert claim is not None
        assert figures.has([claim]) is found
        assert figures.has([claim], ("hbm_bandwidth",)) is found
        assert not figures.has([claim], ("l2_bandwidth",))


def test_numbers_of_a_receipt_have_the_units_of_their_fields() -> None:
    found = list(receipt_figures({"median_us": 131.25, "series": {"us": [7.0]}, "gb_per_s": 3947.6, "ok": True}, ""))
    said = {(q.unit.dimension, q.base) for q in found}
    assert ("seconds", Decimal("131.25") * Decimal("1e-6")) in said
    assert ("bytes per second", Decimal("3947.6") * 10**9) in said
    assert all(base != 7 for _, base in said)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("67 TFLOPS / 4.8 TB/s = 13.96 FLOP/byte", True),
        ("67 TFLOPS / 4.8 TB/s = 14.96 FLOP/byte", False),
        ("88.6 % - 31.4 % = 57.2 %", True),
        ("(2 + 3) * 4 = 20", True),
        ("2 + 2 = 5", False),
    ],
)
def test_equations_are_computed_again(text: str, holds: bool) -> None:
    (found,) = equations(text)
    assert found.holds is holds


def test_a_result_may_be_used_again_and_one_from_nothing_may_not() -> None:
    known = measured([PROFILE], [])
    shown = derived("128.5 us / 2 = 64.25 us\n64.25 us / 2 = 32.125 us\n9 us / 3 = 3 us", (known,))
    assert [one.grounded for one in shown] == [True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "dram_throughput " * 12_000,
        "1 us " * 25_000,
        "registers per thread " * 8_000 + "5",
        "1.1.1" * 30_000,
        "= " * 60_000,
        " " * 150_000,
    ],
)
def test_hostile_text_takes_a_time_linear_in_its_length(text: str) -> None:
    start = time.process_time()
    list(loose_numbers(text, [launch()], (measured([PROFILE], []),) * 4))
    assert time.process_time() - start < 8


_parts = st.sampled_from(
    ["DRAM throughput", "88.6 %", "is", "12 us", "=", "*", "1e9", "GB/s", "\n", "registers", ":", "32", "%"]
)


@given(st.lists(st.one_of(_parts, st.text(max_size=5)), max_size=40).map(" ".join))
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_checked(text: str) -> None:
    lines = text.count("\n") + 1
    for found in loose_numbers(text, [launch()], (Figures(),) * 4):
        assert 1 <= found.line <= lines
        assert found.text


@given(st.decimals(min_value=1, max_value=99, places=1))
@settings(max_examples=100, deadline=None)
def test_a_metric_has_one_value(value: Decimal) -> None:
    assert (loose(f"DRAM throughput is {value} %.") == []) is (value == Decimal("88.6"))
