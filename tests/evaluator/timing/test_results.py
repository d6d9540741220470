"""What a race comes to: times that count, ratios by pair, what is held against the candidate, why nothing is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evaluator.receipt.plan import BaselineChoice, TimingPlan
from evaluator.receipt.timing import Physics
from evaluator.receipt.verdict import Improvement
from evaluator.request import Request
from evaluator.scan.hazards import Severity
from evaluator.source.source_file import SourceFile
from evaluator.timing.back_to_back import together
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.results import Found, Results, kept, quotients, timing_of, workload_timing
from evaluator.timing.timed_process import TimedProcess
from tests.evaluator import receipts
from tests.evaluator.timed_processes import clock, process

EAGER = BaselineChoice(name="eager", how="eager")
COMPILE = BaselineChoice(name="compile", how="compile")
AUDIT = CrossCheck(20, (2500.0, 2600.0), (500.0, 510.0))
"""100 us a call."""


def request(**changes: Any) -> Request:
    """A candidate on a GPU."""
    return Request(candidate=SourceFile(name="kernel.py", text="x"), device="cuda:0", **changes)


def benchmark(
    restarts: Sequence[Sequence[TimedProcess]], baselines: tuple[BaselineChoice, ...] = (EAGER,), **changes: Any
) -> Results:
    """Processes by restart, the candidate's first, with cross-checks that confirm the times."""
    fields: dict[str, Any] = {
        "dims": {"n": 64},
        "plan": TimingPlan(restarts=len(restarts), seconds=10.0, baselines=baselines),
        "restarts": [list(group) for group in restarts],
        "failed": {},
        "clock": clock(1980),
        "cross_check": AUDIT,
        "read_bytes": 150_000_000,
        "written_bytes": 50_000_000,
        "ceiling": None,
        "fixed": False,
        "notes": (),
        "seed": 5,
        "seconds": 12.5,
    }
    return Results(**{**fields, **changes})


def pairs(
    times: tuple[float, ...] = (150.0,) * 4, own: tuple[float, ...] = (100.0,) * 4, restarts: int = 3, **changes: Any
) -> list[list[TimedProcess]]:
    """A candidate and one baseline, equal in every restart."""
    return [[process(us=own, restart=n), process("eager", times, n, **changes)] for n in range(restarts)]


def concluded(results: Results, asked: Request | None = None, **physics: Any) -> Found:
    """With physics that have nothing to say."""
    said = receipts.physics(**physics) if physics else Physics(status="not checked")
    return workload_timing(results, asked or request(), lambda *_: said)


# --- times that count -------------------------------------------------------------------------------------------------


def test_a_race_by_hand() -> None:
    found = concluded(benchmark(pairs()))
    timing = found.timing
    assert found.hazards == []
    assert (timing.improvement, timing.against, timing.unstable) == (Improvement.FASTER, "eager", ())
    ratio = timing.baselines["eager"].ratio
    assert ratio is not None
    assert (ratio.median, ratio.ci_low, ratio.ci_high, ratio.pairs) == (1.5, 1.5, 1.5, 12)
    assert (ratio.restarts, ratio.noise, ratio.converged) == ((1.5, 1.5, 1.5), 0.0, True)
    assert (timing.spans, timing.audit.status, timing.confirmed) == (None, "confirmed", True)
    assert (timing.empty_us, timing.flush_bytes, timing.spin_us) == (1.5, 120 << 20, 112.0)
    assert (timing.read_bytes, timing.written_bytes, timing.seconds) == (150_000_000, 50_000_000, 12.5)
    assert (timing.dims, timing.notes) == ({"n": 64}, ())
    own = timing.candidate
    assert (own.name, own.status, own.detail, own.flags) == ("candidate", "timed", "", ("TF32 off",))
    assert own.summary is not None
    assert (own.summary.n, own.summary.median_us) == (12, 100.0)
    assert own.first_call_seconds == 2.5
    assert own.series.restart == (0,) * 4 + (1,) * 4 + (2,) * 4
    assert own.series.pair == (0, 1, 2, 3) * 3
    assert own.series.us == (100.0,) * 12
    assert own.series.enqueue_us == (20.0,) * 12


def test_turns_that_came_late_or_at_a_slow_clock_do_not_count() -> None:
    own = process(us=(100.0, 900.0, 800.0, 102.0), late=[False, True, False, False], clock_mhz=[1980, 1980, 1000, 0])
    timed = concluded(benchmark([[own]], baselines=())).timing.candidate
    assert timed.summary is not None
    assert (timed.summary.n, timed.summary.max_us) == (2, 102.0)
    assert (timed.late, timed.slow_clock) == (1, 1)
    assert timed.series.dropped == ("", "late", "clock", "")
    assert timed.series.us == (100.0, 900.0, 800.0, 102.0)
    assert timed.series.clock_mhz == (1980, 1980, 1000, 0)
    assert timed.series.kept() == kept(own, clock(1980)) == [100.0, 102.0]


def test_a_late_turn_at_a_slow_clock_is_late() -> None:
    own = process(us=(100.0, 900.0), late=[False, True], clock_mhz=[1980, 1000])
    assert concluded(benchmark([[own]], baselines=())).timing.candidate.series.dropped == ("", "late")


def test_a_restart_of_which_nothing_counts_is_no_restart() -> None:
    groups = pairs()
    groups[1][0].samples.late = [True] * 4
    timing = concluded(benchmark(groups)).timing
    ratio = timing.baselines["eager"].ratio
    assert ratio is not None
    assert (len(ratio.restarts), ratio.pairs, timing.candidate.late) == (2, 8, 4)


@pytest.mark.parametrize(
    ("late", "megahertz", "said"),
    [
        (True, 1980, "no turn counts by the rule, so all do: the host was late in 3, the clock too low in 0"),
        (False, 1000, "no turn counts by the rule, so all do: the host was late in 0, the clock too low in 3"),
    ],
)
def test_where_no_turn_counts_all_do_and_it_is_said(late: bool, megahertz: int, said: str) -> None:
    own = process(us=(100.0, 110.0, 120.0), late=[late] * 3, clock_mhz=[megahertz] * 3)
    timing = concluded(benchmark([[own, process("eager", (150.0,) * 3)]])).timing
    timed = timing.candidate
    assert timed.summary is not None
    assert (timed.summary.n, timed.summary.median_us, timed.detail) == (3, 110.0, said)
    assert (timed.late, timed.slow_clock, timed.series.dropped) == (0, 0, ("", "", ""))
    baseline = timing.baselines["eager"]
    assert (baseline.ratio, baseline.improvement) == (None, Improvement.UNSTABLE)
    assert (timing.against, timing.improvement) == ("", Improvement.UNSTABLE)
    assert timing.unstable == ("there is no pair of turns in which both sides count",)


# --- quotients --------------------------------------------------------------------------------------------------------


def test_quotients_are_of_turns_on_the_same_inputs() -> None:
    own = process(us=(10.0, 20.0, 40.0), pair=[1, 0, 2])
    other = process("eager", (60.0, 30.0, 80.0), pair=[0, 1, 3])
    assert quotients(other, own, clock(1980)) == [3.0, 3.0]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    "changes",
    [{"late": [True, False]}, {"clock_mhz": [1000, 1980]}, {"us": [0.0, 20.0]}],
)
def test_a_pair_counts_only_where_both_turns_do(side: int, changes: dict[str, Any]) -> None:
    both = [process(us=(10.0, 20.0)), process("eager", (20.0, 20.0))]
    for field, value in changes.items():
        setattr(both[side].samples, field, value)
    assert quotients(both[1], both[0], clock(1980)) == [1.0]


def test_quotients_are_of_one_restart() -> None:
    groups = [
        [process(us=(100.0, 100.0), restart=0), process("eager", (200.0, 200.0), 0)],
        [process(us=(50.0, 50.0), restart=1), process("eager", (200.0, 200.0), 1)],
    ]
    ratio = concluded(benchmark(groups)).timing.baselines["eager"].ratio
    assert ratio is not None
    assert ratio.restarts == (2.0, 4.0)


# --- baselines --------------------------------------------------------------------------------------------------------


def test_a_baseline_that_failed() -> None:
    groups = [[process(restart=n), process("compile", (100.0,) * 4, n)] for n in range(2)]
    timing = concluded(benchmark(groups, (EAGER, COMPILE), failed={"eager": "RuntimeError: no"})).timing
    failed = timing.baselines["eager"]
    assert (failed.timed.status, failed.timed.detail, failed.ratio) == ("failed", "RuntimeError: no", None)
    assert failed.improvement is Improvement.NOT_COMPARED
    assert list(timing.baselines) == ["eager", "compile"]
    assert (timing.against, timing.improvement) == ("compile", Improvement.SAME)


def test_a_baseline_that_failed_on_the_way_keeps_no_times() -> None:
    timing = concluded(benchmark(pairs(), failed={"eager": "it raised in the last turn"})).timing
    assert timing.baselines["eager"].timed.status == "failed"
    assert (timing.against, timing.improvement) == ("", Improvement.NOT_COMPARED)


def test_a_baseline_that_was_never_started() -> None:
    timing = concluded(benchmark([[process()]])).timing
    assert timing.baselines["eager"].timed.detail == "it was not started"
    assert timing.improvement is Improvement.NOT_COMPARED


def test_without_baselines_nothing_is_compared() -> None:
    timing = concluded(benchmark([[process()]], baselines=())).timing
    assert (timing.baselines, timing.against, timing.improvement) == ({}, "", Improvement.NOT_COMPARED)


def test_the_first_baseline_with_times_decides() -> None:
    groups = [
        [process(restart=n), process("eager", (150.0,) * 4, n), process("compile", (80.0,) * 4, n)] for n in range(3)
    ]
    timing = concluded(benchmark(groups, (EAGER, COMPILE))).timing
    assert timing.baselines["compile"].improvement is Improvement.SLOWER
    assert (timing.against, timing.improvement) == ("eager", Improvement.FASTER)
    timing = concluded(benchmark(groups, (COMPILE, EAGER))).timing
    assert (timing.against, timing.improvement) == ("compile", Improvement.SLOWER)


def test_whether_the_ratio_converged_depends_on_the_ticks_of_its_time() -> None:
    """Pairs that differ by 2 %, which of 4 us is less than three ticks."""
    for scale, converged in ((1.0, False), (0.04, True)):
        own = (100.0 * scale,) * 20
        groups = pairs(tuple(scale * t for t in (150.0, 153.0) * 10), own, restarts=2)
        ratio = concluded(benchmark(groups)).timing.baselines["eager"].ratio
        assert ratio is not None
        assert ratio.converged is converged


# --- why nothing is said ----------------------------------------------------------------------------------------------

SLOW_AUDIT = CrossCheck(20, (9500.0,), (500.0,))


def test_a_cross_check_that_refutes_is_held_against_it() -> None:
    found = concluded(benchmark(pairs(), cross_check=SLOW_AUDIT))
    rejected = [(name, words) for name, severity, words in found.hazards if severity is Severity.REJECT]
    assert [name for name, _ in rejected] == ["slower_than_claimed"]
    assert "a call took 450.0 us" in rejected[0][1]
    assert (found.timing.confirmed, found.timing.improvement) == (False, Improvement.UNSTABLE)
    notes = [words for name, severity, words in found.hazards if name == "device_time_unconfirmed"]
    assert notes == [rejected[0][1]]


def test_a_time_that_is_impossible_is_held_against_it() -> None:
    found = concluded(benchmark(pairs()), status="impossible", detail="100 us are fewer than …")
    assert found.hazards == [("impossible_time", Severity.REJECT, "100 us are fewer than …")]
    assert found.timing.physics.status == "impossible"


def test_physics_gets_the_cache_and_a_fast_turn() -> None:
    asked = []

    def physics(l2_bytes: int, fastest_us: float) -> Physics:
        asked.append((l2_bytes, fastest_us))
        return Physics(status="not checked")

    own = process(us=(90.0, 100.0, 110.0, 120.0, 130.0, 140.0))
    workload_timing(benchmark([[own]], baselines=()), request(), physics)
    assert asked == [(60 << 20, 100.0)]


@pytest.mark.parametrize(
    ("cross_check", "evidence"),
    [
        (CrossCheck(0, (), (), why="no room"), "no room"),
        (CrossCheck(2, (701.0,), (500.0,)), "2 calls are too short for the clock"),
    ],
)
def test_what_kopts_clock_does_not_confirm_is_unstable(cross_check: CrossCheck, evidence: str) -> None:
    found = concluded(benchmark(pairs(), cross_check=cross_check))
    assert found.timing.confirmed is False
    assert found.hazards == [("device_time_unconfirmed", Severity.NOTE, evidence)]
    assert found.timing.unstable == ("no clock cross-check confirms the device time",)
    assert found.timing.improvement is Improvement.UNSTABLE
    assert found.timing.baselines["eager"].ratio is not None


def test_inputs_that_never_change_say_nothing() -> None:
    timing = concluded(benchmark(pairs(), fixed=True)).timing
    assert timing.unstable == ("the inputs were the same in every turn",)
    assert timing.improvement is Improvement.UNSTABLE


# --- a baseline beside the candidate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("beside", "unstable"), [(157.5, False), (157.6, True), (280.0, True), (90.0, False)])
def test_a_baseline_that_is_slower_beside_the_candidate(beside: float, unstable: bool) -> None:
    """By 5 % nothing is said; by more, nothing is claimed. Others may use the device: nobody is accused."""
    groups = pairs((beside,) * 4, restarts=2, alone=[150.0, 149.0, 151.0])
    found = concluded(benchmark(groups))
    said = f"the baseline was {beside / 150:.2f} times as slow beside the candidate as alone"
    assert found.timing.unstable == ((said,) if unstable else ())
    assert found.hazards == ([("slows_baseline", Severity.NOTE, said)] if unstable else [])
    assert (found.timing.improvement is Improvement.UNSTABLE) is unstable


def test_turns_of_the_baseline_that_do_not_count_are_not_held_against_the_candidate() -> None:
    slow = (150.0, 150.0, 900.0, 900.0, 900.0)
    groups = pairs(slow, (100.0,) * 5, alone=[150.0] * 6, late=[False, False, True, True, True])
    assert concluded(benchmark(groups)).hazards == []


@pytest.mark.parametrize("alone", [[], [10.0], [0.0] * 6])
def test_too_little_alone_says_nothing(alone: list[float]) -> None:
    groups = pairs(restarts=1, alone=alone)
    found = concluded(benchmark(groups))
    assert (found.hazards, found.timing.unstable) == ([], ())


def test_only_the_first_baseline_is_looked_at() -> None:
    groups = [
        [process(restart=n), process("eager", alone=[100.0] * 6), process("compile", (500.0,) * 4, alone=[100.0] * 6)]
        for n in range(2)
    ]
    for n, group in enumerate(groups):
        for one in group:
            one.restart = n
    assert concluded(benchmark(groups, (EAGER, COMPILE))).hazards == []


# --- calls that wait, short ones, rare ratios -------------------------------------------------------------------------


def test_a_call_that_waits_for_the_device() -> None:
    groups = pairs()
    groups[1][0].waits = True
    found = concluded(benchmark(groups))
    assert found.hazards == [("host_bound", Severity.NOTE, "the call waits for the device by itself")]
    assert found.timing.notes == (
        "the call waits for the device by itself: its time includes the way back to the host",
    )
    assert found.timing.audit.allowed_us == 1.25 * 100 + 10 + (10 + 150) / 20
    assert found.timing.improvement is Improvement.FASTER


def test_what_the_host_needs_is_the_median_of_all_restarts() -> None:
    groups = pairs(restarts=3)
    for group, enqueue in zip(groups, (300.0, 200.0, 10.0), strict=True):
        group[0].samples.enqueue_us = [enqueue] * 4
    assert concluded(benchmark(groups)).timing.audit.allowed_us == 1.5 * 200 + (200 + 150) / 20


@pytest.mark.parametrize(("us", "short"), [(49.9, True), (50.0, False)])
def test_of_a_short_call_the_launch_is_a_large_part(us: float, short: bool) -> None:
    notes = concluded(benchmark(pairs((60.0,) * 4, (us,) * 4))).timing.notes
    assert notes == (
        ("below 50 us a launch is a large part: the device time says little of the whole",) if short else ()
    )


@pytest.mark.parametrize(("times", "rare"), [(1000.0, False), (1001.0, True)])
def test_a_rare_ratio_is_worth_a_second_look(times: float, rare: bool) -> None:
    notes = concluded(benchmark(pairs((times,) * 4))).timing.notes
    said = "a ratio of 10.0 is rare: look at the baseline, and at what the sanitizers say"
    assert notes == ((said,) if rare else ())


def test_notes_of_the_race_come_first() -> None:
    timing = concluded(benchmark(pairs((60.0,) * 4, (10.0,) * 4), notes=("the floor was not measured: no",))).timing
    assert len(timing.notes) == 2
    assert timing.notes[0] == "the floor was not measured: no"


# --- figures ----------------------------------------------------------------------------------------------------------


def test_bandwidth_by_hand() -> None:
    """200 MB in 100 us are 2000 GB/s."""
    floor = receipts.workload_timing().ceiling
    timing = concluded(benchmark(pairs(), ceiling=floor), peak=receipts.PEAK).timing
    assert (timing.bytes, timing.gb_per_s, timing.operations, timing.tflop_per_s) == (200_000_000, 2000.0, None, None)
    assert timing.of_peak == 2000.0 / 4800.0
    assert timing.of_ceiling == pytest.approx(1.309)
    assert timing.ceiling == floor
    bare = concluded(benchmark(pairs())).timing
    assert (bare.of_peak, bare.of_ceiling, bare.ceiling) == (None, None, None)


def test_declared_bytes_and_operations() -> None:
    asked = request(bytes="2*n*1000000", operations="n*n*n*1000")
    timing = concluded(benchmark(pairs()), asked).timing
    assert (timing.bytes, timing.read_bytes, timing.written_bytes) == (128_000_000, 150_000_000, 50_000_000)
    assert timing.gb_per_s == 1280.0
    assert (timing.operations, timing.tflop_per_s) == (262_144_000, 262_144_000 / 100 / 1e6)


def test_a_time_of_nothing_divides_nothing() -> None:
    floor = receipts.workload_timing().ceiling
    own = [[process(us=(0.0,) * 4)]]
    found = concluded(benchmark(own, baselines=(), ceiling=floor), request(operations="n"), peak=receipts.PEAK)
    timing = found.timing
    assert (timing.gb_per_s, timing.tflop_per_s, timing.of_ceiling, timing.of_peak) == (None, None, None, None)
    assert "slower_than_claimed" in [id for id, _, _ in found.hazards]


def test_a_time_of_nothing_is_compared_with_nothing() -> None:
    timing = concluded(benchmark(pairs(own=(0.0,) * 4))).timing
    assert (timing.baselines["eager"].ratio, timing.improvement) == (None, Improvement.UNSTABLE)


# --- all workloads ----------------------------------------------------------------------------------------------------


def test_several_workloads_together() -> None:
    plan = receipts.plan(device="cuda:0", workloads=({"n": 1}, {"n": 2}))
    one = receipts.workload_timing(dims={"n": 1}, baselines={"eager": receipts.baseline(median=2.0)}, seconds=3.0)
    two = receipts.workload_timing(dims={"n": 2}, baselines={"eager": receipts.baseline(median=0.5)}, seconds=4.0)
    found = timing_of(plan, [one, two], clock(1980, 1700))
    assert found is not None
    assert found.ratio is not None
    assert found.ratio.median == pytest.approx(1.0)
    assert (found.plan, found.against, found.seconds) == ("verdict", "eager", 7.0)
    assert (found.workloads, found.clocks.min_mhz) == ((one, two), 1700)


@pytest.mark.parametrize("where", [0, 1])
def test_a_baseline_that_failed_on_one_workload_has_no_ratio(where: int) -> None:
    plan = receipts.plan(device="cuda:0", workloads=({"n": 1}, {"n": 2}))
    both: list[dict[str, Any]] = [{"eager": receipts.baseline()}, {"eager": receipts.baseline()}]
    both[where] = {"eager": receipts.failed_baseline("eager")}
    timings = [
        receipts.workload_timing(dims={"n": n}, baselines=one, against="eager" if n - 1 != where else "")
        for n, one in enumerate(both, 1)
    ]
    found = timing_of(plan, timings, clock(1980))
    assert found is not None
    assert (found.against, found.ratio) == ("", None)


def test_nothing_of_workloads_that_were_not_all_timed() -> None:
    plan = receipts.plan(device="cuda:0", workloads=({"n": 1}, {"n": 2}))
    one = receipts.workload_timing(dims={"n": 1})
    assert timing_of(plan, [one], clock(1980)) is None
    assert timing_of(plan, [], clock(1980)) is None
    assert timing_of(receipts.plan(workloads=({"n": 1},)), [one], None) is None


# --- without a pause --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alone", "in_rows", "improvement", "said"),
    [
        (150.0, 1.4, Improvement.FASTER, ()),
        (150.0, 0.99, Improvement.FASTER, ()),
        (150.0, 0.97, Improvement.UNSTABLE, ("called without a pause it is 0.970 times as fast as eager",)),
        (80.0, 0.9, Improvement.SLOWER, ()),
        (80.0, 1.01, Improvement.SLOWER, ()),
        (80.0, 1.03, Improvement.UNSTABLE, ("called without a pause it is 1.030 times as fast as eager",)),
        (100.0, 0.5, Improvement.SAME, ()),
        (100.0, 2.0, Improvement.SAME, ()),
        (150.0, None, Improvement.FASTER, ()),
    ],
)
def test_a_ratio_that_turns_over_without_pauses_does_not_stand(
    alone: float, in_rows: float | None, improvement: Improvement, said: tuple[str, ...]
) -> None:
    found = receipts.back_to_back_of(in_rows)
    timing = concluded(benchmark(pairs((alone,) * 4), back_to_back=found)).timing
    assert (timing.improvement, timing.unstable, timing.back_to_back) == (improvement, said, found)
    assert timing.baselines["eager"].improvement is improvement


def test_rows_of_another_baseline_say_nothing_of_this_one() -> None:
    found = receipts.back_to_back_of(0.5, "compile")
    assert concluded(benchmark(pairs(), (EAGER, COMPILE), back_to_back=found)).timing.improvement is Improvement.FASTER


def test_a_ratio_that_is_unstable_anyway_turns_over_nowhere() -> None:
    found = receipts.back_to_back_of(0.5)
    timing = concluded(benchmark(pairs(), fixed=True, back_to_back=found)).timing
    assert timing.unstable == ("the inputs were the same in every turn",)
    assert timing.improvement is Improvement.UNSTABLE


@pytest.mark.parametrize(("in_rows", "improvement"), [(0.93, Improvement.FASTER), (0.87, Improvement.UNSTABLE)])
def test_a_short_row_contradicts_by_more_than_the_clock_cannot_tell(in_rows: float, improvement: Improvement) -> None:
    """150 us of 20 calls that took 100 us each are 7.5 %."""
    one, eager = receipts.row(calls=20, per_call_us=100.0), receipts.row("eager", calls=20, per_call_us=in_rows * 100.0)
    found = together(one, eager)
    timing = concluded(benchmark(pairs(), back_to_back=found, cross_check=AUDIT)).timing
    assert timing.improvement is improvement


@pytest.mark.parametrize(
    ("baseline_us", "status"), [(150.0, "refuted"), (180.0, "refuted"), (500.0, "not binding"), (None, "refuted")]
)
def test_a_row_refutes_nothing_where_the_baselines_took_as_much_longer(baseline_us: float | None, status: str) -> None:
    """450 us of 100 claimed: the device had other work if a baseline of 150 us took 500."""
    one = receipts.row(calls=20, per_call_us=450.0)
    eager = None if baseline_us is None else receipts.row("eager", calls=20, per_call_us=baseline_us, alone_us=150.0)
    found = concluded(benchmark(pairs(), back_to_back=together(one, eager), cross_check=SLOW_AUDIT))
    assert found.timing.audit.status == status
    assert ("slower_than_claimed" in {id for id, *_ in found.hazards}) is (status == "refuted")
    assert ("the device had other work" in found.timing.audit.detail) is (status == "not binding")
