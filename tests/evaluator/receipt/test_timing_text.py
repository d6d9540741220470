"""Times in words: units and digits, and what each record says to a reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.receipt import timing_text as words
from evaluator.receipt.timing import Clocks
from evaluator.receipt.verdict import Improvement
from tests.evaluator import receipts
from tests.evaluator.receipts import (
    audit,
    baseline,
    clocks,
    failed_baseline,
    physics,
    ratio,
    spans,
    summary,
    timed,
    timing,
    workload_timing,
)

# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, "N/A"),
        (0.0, "0 µs"),
        (1.312, "1.312 µs"),
        (13.6, "13.60 µs"),
        (136.04, "136.0 µs"),
        (999.94, "999.9 µs"),
        (999.96, "1.000 ms"),
        (1000.0, "1.000 ms"),
        (12345.6, "12.35 ms"),
        (4.5e6, "4500 ms"),
        (1e-9, "0.000000 µs"),
    ],
)
def test_durations(us: float | None, said: str) -> None:
    assert words.duration(us) == said


@given(st.floats(1e-2, 1e9))
def test_a_duration_can_be_read_back(us: float) -> None:
    number, unit = words.duration(us).split()
    assert float(number) * {"µs": 1, "ms": 1000}[unit] == pytest.approx(us, rel=6e-4)
    assert (unit == "ms") == (float(number) * 1000 >= 1000 and us >= 999.9)


@given(st.floats(0.01, 1e6))
def test_a_ratio_can_be_read_back(value: float) -> None:
    assert float(words.times(value)) == pytest.approx(value, rel=6e-3)
    assert float(words.times(value)) == pytest.approx(value, abs=max(6e-4, 6e-4 * value))


@pytest.mark.parametrize(
    ("value", "said"), [(1.3125, "1.312"), (0.87, "0.870"), (1.0, "1.000"), (17.234, "17.23"), (0.012346, "0.01235")]
)
def test_ratios(value: float, said: str) -> None:
    assert words.times(value) == said


@pytest.mark.parametrize(("part", "said"), [(None, "N/A"), (0.9625, "96.2%"), (0.0042, "0.42%"), (0.0, "0.00%")])
def test_parts(part: float | None, said: str) -> None:
    assert words.percent(part) == said


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (999, "999 B"), (62914560, "62.91 MB"), (10**11, "100.0 GB")])
def test_bytes(count: int, said: str) -> None:
    assert words.size(count) == said


def test_a_summary_stays_in_one_unit() -> None:
    said = words.spread(summary(2000.0, std_us=3.5))
    assert said == "p20 1.996, p80 2.006, min 1.990, max 2.040, std 0.003500 ms; n 19"


def test_what_is_not_known_is_not_said() -> None:
    bare = workload_timing(gb_per_s=None, ceiling=None, of_ceiling=None, of_peak=None)
    assert words.reached(bare) == ""
    assert words.reached(workload_timing(tflop_per_s=12.5, of_peak=None)) == (
        "3948 GB/s, 12.50 TFLOP/s, 96.2% of the measured floor"
    )


def test_order_of_baselines_is_no_matter_of_reading() -> None:
    """A receipt that was read from its file has lost the order of keys."""
    known = {"eager": baseline(), "compile": baseline("compile"), "apex": baseline("apex")}
    there = workload_timing(baselines=known)
    back = workload_timing(baselines=dict(reversed(known.items())))
    assert [name for name, _ in words.baselines(there)] == ["eager", "apex", "compile"]
    assert words.baselines(there) == words.baselines(back)
    assert [found.name for found in words.kernels(there)] == ["candidate", "eager", "apex", "compile"]


# --- the improvement --------------------------------------------------------------------------------------------------

TIMES = timing()


@pytest.mark.parametrize("found", [Improvement.FASTER, Improvement.SAME, Improvement.SLOWER])
def test_an_improvement_comes_with_its_ratio(found: Improvement) -> None:
    assert words.improvement(TIMES, found) == [f"{found}: 1.312 times as fast as eager (95% interval 1.307 to 1.318)"]


def test_an_improvement_without_times() -> None:
    assert words.improvement(None, Improvement.NOT_TIMED) == ["not_timed"]


def test_nothing_to_compare_with() -> None:
    alone = timing(workload_timing(baselines={}, against=""))
    assert words.improvement(alone, Improvement.NOT_COMPARED) == [
        "not_compared: its time was taken, and there is no baseline to compare it with"
    ]


def test_an_unstable_one_says_why_and_that_its_ratio_is_not_to_be_relied_on() -> None:
    found = timing(workload_timing(unstable=("the interval is wider than 5%", "the inputs are fixed")))
    assert words.improvement(found, Improvement.UNSTABLE) == [
        "unstable: the interval is wider than 5%",
        "the inputs are fixed",
        "measured, and not to be relied on: 1.312 times as fast as eager (95% interval 1.307 to 1.318)",
    ]
    assert words.improvement(timing(workload_timing(baselines={}, against="")), Improvement.UNSTABLE) == ["unstable"]


def test_several_workloads_are_named() -> None:
    found = timing(
        workload_timing(dims={"n": 64, "m": 2}),
        workload_timing(dims={"n": 65}, unstable=("it is noisy",), baselines={"eager": baseline("eager", 1.0)}),
    )
    assert words.improvement(found, Improvement.FASTER) == [
        "faster: 1.146 times as fast as eager (95% interval 1.141 to 1.150, geometric mean of 2 workloads)"
    ]
    assert words.improvement(found, Improvement.UNSTABLE)[0] == "unstable: n=65: it is noisy"
    assert [words.where(found, workload) for workload in found.workloads] == ["m=2 n=64: ", "n=65: "]
    assert words.where(TIMES, TIMES.workloads[0]) == ""


# --- cross-checks, clocks, physics ------------------------------------------------------------------------------------


def test_spans() -> None:
    assert words.spans(spans()) == (
        "confirmed: 8 kernels and copies in 8 watched turns, all inside the timed window;"
        " they took 134.4 µs, claimed were 136.0 µs"
    )
    assert words.spans(spans(busy_us=None)).endswith("all inside the timed window")
    refuted = words.spans(spans(status="refuted", outside=3, detail="softmax ran outside the timed window"))
    assert refuted == (
        "refuted: softmax ran outside the timed window"
        " (8 kernels and copies in 8 watched turns, 3 of them outside the timed window)"
    )
    lost = spans(status="not run", turns=0, kernels=0, busy_us=None, claim_us=None, detail="there is no CUPTI")
    assert words.spans(lost) == "not run: there is no CUPTI"
    assert words.spans(lost.model_copy(update={"detail": ""})) == "not run"


def test_audit() -> None:
    assert words.audit(audit()) == (
        "confirmed: 30 calls in a row, 5 times: 131.0 µs a call by kopt's own clock, 136.0 µs claimed"
    )
    assert words.audit(audit(status="not binding", detail="below 50 us")) == (
        "not binding: below 50 us (30 calls in a row, 5 times: 131.0 µs a call by kopt's own clock, 136.0 µs claimed)"
    )
    assert words.audit(audit(status="refuted", detail="a call took 400 us")) == (
        "refuted: a call took 400 us (30 calls in a row, 5 times)"
    )
    assert words.audit(audit(status="not run", detail="no memory")) == "not run: no memory"


def test_the_cross_check_and_what_follows_from_it() -> None:
    assert words.cross_checks(workload_timing())[1] == "the device time is confirmed"
    assert words.cross_checks(workload_timing(confirmed=False))[1] == "the device time is not confirmed"
    assert [line.partition(":")[0] for line in words.cross_checks(workload_timing(spans=spans()))[:2]] == [
        "spans",
        "audit",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "1755 to 1980 MHz, median 1965 MHz; not locked; held back by power cap; at most 61 °C"),
        (
            {"locked": "yes", "throttled": (), "temperature_c": 0},
            "1755 to 1980 MHz, median 1965 MHz; locked; not held back",
        ),
        (
            {"locked": "unknown", "throttled": ("power cap", "heat")},
            "1755 to 1980 MHz, median 1965 MHz; not known whether locked; held back by power cap, heat; at most 61 °C",
        ),
    ],
    ids=["capped", "locked", "unknown"],
)
def test_clocks(changes: dict[str, object], said: str) -> None:
    assert words.clocks(clocks(**changes)) == said


def test_clocks_that_were_not_sampled() -> None:
    assert words.clocks(Clocks(status="not sampled", detail="there is no NVML")) == "not sampled: there is no NVML"


def test_physics() -> None:
    said = "536.9 MB need at least 98.74 µs at the cited peak if 62.91 MB of them lay in the L2 cache"
    assert words.physics(physics()) == f"possible: {said}; a fifth of the turns took 135.7 µs or less"
    wrong = physics(status="impossible", fastest_us=20.0, detail="faster than memory", l2_bytes=0)
    assert words.physics(wrong) == (
        "impossible: faster than memory: 536.9 MB need at least 98.74 µs at the cited peak;"
        " a fifth of the turns took 20.00 µs or less"
    )
    assert words.physics(physics(status="not checked", detail="no source")) == "not checked: no source"


def test_noise() -> None:
    assert words.noise(workload_timing()) == (
        "0.40% of eager's time; after 19 pairs in 5 restarts the interval is narrower than 1%,"
        " or a few ticks of the clock"
    )
    wide = baseline("eager", ratio=ratio(converged=False))
    assert "NOT narrower" in words.noise(workload_timing(baselines={"eager": wide}))
    assert words.noise(workload_timing(baselines={"eager": failed_baseline("eager")}, against="")) == ""


def test_dropped_turns() -> None:
    assert words.drops(timed()) == "candidate: 1 late of 20 turns"
    assert words.drops(timed(slow_clock=2)) == "candidate: 1 late and 2 at a slow clock of 22 turns"
    assert words.drops(timed(late=0)) == ""
    assert words.drops(timed(status="failed", summary=None, late=7)) == "candidate: 7 late of 7 turns"


def test_calls_without_a_pause() -> None:
    assert words.back_to_back(None) == []
    assert words.back_to_back(receipts.back_to_back()) == [
        "candidate: 1.988 ms a call, 1.106 times its median; 32 calls in a row behind as many others; clock down to"
        " 1395 MHz; held back by power cap",
        "eager: 1.620 ms a call, 1.160 times its median; 32 calls in a row behind as many others; clock down to"
        " 1395 MHz; held back by power cap",
        "so called, 0.815 times as fast as eager",
    ]
    alone = receipts.back_to_back(candidate=receipts.row(min_mhz=0, throttled=()), baseline=None, ratio=None)
    assert words.back_to_back(alone) == [
        "candidate: 1.988 ms a call, 1.106 times its median; 32 calls in a row behind as many others"
    ]
