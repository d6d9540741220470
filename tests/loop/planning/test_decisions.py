"""What is kept, when a run has stalled, and when it stops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.plan import BaselineChoice, TimingPlan
from evaluator.receipt.verdict import Improvement, Verdict
from kbs.common.errors import UsageError
from loop.journal.events import Event, Extended, Stalled
from loop.journal.record import RunRecord
from loop.journal.state import RunState, replay
from loop.journal.version_state import VersionState
from loop.planning import decisions
from loop.planning.decisions import Standing
from loop.tools import Targets
from tests.evaluator import receipts
from tests.loop import events_made as made
from tests.loop.tools import run_record

FASTER = {"ratio": (1.25, 1.24, 1.26), "improvement": Improvement.FASTER, "median_us": 80.0}
SAME = {"ratio": (1.0, 0.99, 1.01), "improvement": Improvement.SAME, "median_us": 100.0}
SLOWER = {"ratio": (0.9, 0.89, 0.91), "improvement": Improvement.SLOWER, "median_us": 110.0}
NOW = "2026-11-21T15:05:00Z"


@pytest.fixture
def record(tmp_path: Path) -> RunRecord:
    return run_record(tmp_path, device="cuda:0", accept_unmeasured=False, iterations=9)


def after(*events: Event) -> RunState:
    return replay(made.entry(number, event) for number, event in enumerate(events, 1))


def about_to_close(found: dict[str, Any], *before: Event, parent: int = 0) -> tuple[RunState, VersionState]:
    """The state where the next version passed the gate."""
    number = max((event.version for event in before if isinstance(event, type(made.opened(0, None)))), default=0) + 1
    new = (made.opened(number, parent), made.submitted(number, 1, parent), made.evaluated(number, 1, **found))
    state = after(*made.baseline(), *before, *new, made.profiled(number), made.gated(number))
    assert state.current is not None
    return state, state.current


@pytest.mark.processes
@pytest.mark.parametrize(
    ("found", "kept", "said"),
    [
        (FASTER, True, "kept: 1.25x [1.24x, 1.26x] of v0's speed"),
        (SAME, False, "the receipt says same"),
        (SLOWER, False, "the receipt says slower"),
        ({**FASTER, "improvement": Improvement.UNSTABLE}, False, "the receipt says unstable"),
        ({**FASTER, "ratio": (1.02, 1.01, 1.03)}, False, "the lower bound is not above 1.01"),
        ({**FASTER, "ratio": (1.02, 1.0101, 1.03)}, True, "kept"),
        ({**FASTER, "ratio": None}, False, "its parent's time is not known"),
        ({}, False, "--accept-unmeasured was not given"),
    ],
)
def test_a_version_is_kept_for_a_lower_bound_above_the_minimum_effect(
    record: RunRecord, found: dict[str, Any], kept: bool, said: str
) -> None:
    state, version = about_to_close(found)
    decision = decisions.decide(state, record, version)
    assert decision.kept is kept
    assert said in decision.why


@pytest.mark.processes
def test_what_was_not_timed_is_kept_only_where_that_was_asked_for(record: RunRecord) -> None:
    state, version = about_to_close({})
    decision = decisions.decide(state, record.model_copy(update={"accept_unmeasured": True}), version)
    assert decision.kept
    assert "--accept-unmeasured" in decision.why


@pytest.mark.processes
@pytest.mark.parametrize(("median", "kept"), [(79.9, True), (80.0, False), (90.0, False), (None, False)])
def test_a_version_of_another_parent_must_beat_the_best_too(
    record: RunRecord, median: float | None, kept: bool
) -> None:
    first = made.iteration(1, 0, **FASTER)
    state, version = about_to_close({**FASTER, "median_us": median}, *first, parent=0)
    assert (state.best, version.parent) == (1, 0)
    assert decisions.decide(state, record, version).kept is kept


@pytest.mark.processes
def test_ratios_along_the_parents_are_multiplied(record: RunRecord) -> None:
    state = after(*made.baseline(), *made.iteration(1, 0, **FASTER), *made.iteration(2, 1, **FASTER))
    found = decisions.to_baseline(state, 2)
    assert found == pytest.approx((1.25**2, 1.24**2, 1.26**2))
    assert decisions.to_baseline(state, 0) == (1.0, 1.0, 1.0)
    unknown = after(*made.baseline(), *made.iteration(1, 0), *made.iteration(2, 1, **FASTER))
    assert decisions.to_baseline(unknown, 2) is None


def test_a_ratio_to_another_baseline_than_the_first_is_none_to_the_first() -> None:
    incumbent = (BaselineChoice(name="incumbent", how="eager"), BaselineChoice(name="eager", how="eager"))
    timed = receipts.timed_receipt()
    assert decisions.ratio_of(timed) is None  # its plan names no baselines
    choices = (BaselineChoice(name="eager", how="eager"),)
    plans = [TimingPlan(restarts=5, seconds=1.0, baselines=chosen) for chosen in (choices, incumbent)]
    found = [timed.model_copy(update={"plan": timed.plan.model_copy(update={"timing": plan})}) for plan in plans]
    assert decisions.ratio_of(found[0]) == pytest.approx((1.3125, 1.3125 * 0.996, 1.3125 * 1.004))
    assert decisions.ratio_of(found[1]) is None
    assert decisions.ratio_of(receipts.receipt()) is None


def test_ties_go_to_the_steadier_then_the_simpler_one() -> None:
    fast = Standing(1, (2.0, 1.9, 2.1), p80_us=50.0, std_us=3.0, size=100)
    steady = Standing(2, (1.95, 1.85, 2.05), p80_us=49.0, std_us=1.0, size=900)
    slow = Standing(3, (1.2, 1.1, 1.3), p80_us=40.0, std_us=0.1, size=1)
    assert decisions.ranked([slow, fast, steady]) == (2, 1, 3)
    assert decisions.ranked([replace(fast, p80_us=49.0, std_us=1.0), steady]) == (1, 2)
    assert decisions.ranked([replace(fast, ratio=None), steady, slow]) == (3, 2, 1)
    assert decisions.ranked([]) == ()


# --- stall and stop ---------------------------------------------------------------------------------------------------


def run_of(*found: dict[str, Any], kept: tuple[int, ...] = ()) -> list[Event]:
    """A baseline and an iteration for each; those in `kept` are the parents of what follows."""
    events, best = [*made.baseline()], 0
    for number, one in enumerate(found, 1):
        events += made.iteration(number, best, kept=number in kept, **one)
        best = number if number in kept else best
    return events


@pytest.mark.processes
def test_three_iterations_that_bring_less_than_three_percent_are_a_stall(record: RunRecord) -> None:
    small = {**FASTER, "ratio": (1.012, 1.011, 1.013)}
    assert not decisions.stalled(after(*run_of(SAME, SAME)), record)
    assert [v.number for v in decisions.stalled(after(*run_of(SAME, SLOWER, SAME)), record)] == [1, 2, 3]
    assert decisions.stalled(after(*run_of(small, SAME, small, kept=(1, 3))), record)
    assert not decisions.stalled(after(*run_of(small, small, small, kept=(1, 2, 3))), record)
    assert not decisions.stalled(after(*run_of(SAME, FASTER, SAME, kept=(2,))), record)


@pytest.mark.processes
def test_a_stall_is_noted_once_and_counts_anew(record: RunRecord) -> None:
    events = run_of(SAME, SAME, SAME)
    noted = [*events, Stalled(version=3, tried=(), untried=())]
    assert not decisions.stalled(after(*noted), record)
    for number in (4, 5):
        noted += made.iteration(number, 0, kept=False, **SAME)
        assert not decisions.stalled(after(*noted), record)
    noted += made.iteration(6, 0, kept=False, **SAME)
    assert [v.number for v in decisions.stalled(after(*noted), record)] == [4, 5, 6]
    last = record.model_copy(update={"iterations": 3})
    assert not decisions.stalled(after(*events), last)  # the run ends: nothing is to be reassessed


def test_a_partial_restart_masks_half_of_what_is_not_the_best() -> None:
    state = after(*run_of(SAME, FASTER, SAME, SAME, SAME, kept=(2,)))
    assert decisions.to_mask(state) == (1, 3)
    state.versions[1].masked = True
    assert decisions.to_mask(state) == (3,)


@pytest.mark.processes
def test_the_cap_is_a_reason_with_its_figures(record: RunRecord) -> None:
    capped = record.model_copy(update={"iterations": 2})
    events = run_of(FASTER, SAME, kept=(1,))
    assert decisions.stop(after(*events), record, NOW, None, None) is None
    found = decisions.stop(after(*events), capped, NOW, None, None)
    assert found == decisions.Stop("cap", "2 of 2 iterations are done; 1 were kept")
    assert decisions.stop(after(*events, Extended(iterations=1)), capped, NOW, None, None) is None


@pytest.mark.processes
def test_time_counts_from_the_start_or_from_the_last_extension(record: RunRecord) -> None:
    limited = record.model_copy(update={"seconds": 3600.0})
    state = after(*made.baseline())
    assert decisions.over_time(state, limited, "2026-11-21T15:04:59Z") is None
    found = decisions.over_time(state, limited, NOW)
    assert found is not None
    assert (found.reason, found.evidence) == (
        "time",
        "3600 s have passed since 2026-11-21T14:05:00Z, and the limit is 3600 s",
    )
    state.apply(made.entry(len(state.entries) + 1, Extended(iterations=1), "2026-11-21T14:35:00Z"))
    assert decisions.over_time(state, limited, NOW) is None
    assert decisions.over_time(state, record, "2036-11-21T15:05:00Z") is None


@pytest.mark.processes
@pytest.mark.parametrize(("target", "stops"), [("1.2x", True), ("1.24x", True), ("1.25x", False), ("2x", False)])
def test_a_speedup_is_reached_with_its_lower_bound(record: RunRecord, target: str, stops: bool) -> None:
    wanted = record.model_copy(update={"target": target})
    found = decisions.stop(after(*run_of(FASTER, kept=(1,))), wanted, NOW, receipts.receipt(), None)
    assert (found is not None and found.reason == "target_reached") is stops
    if found is not None:
        assert "1.25x [1.24x, 1.26x]" in found.evidence


def targets(floor_us: float | None) -> Targets:
    return Targets(
        specs=(), lines=(), bytes=None, operations=None, bound="", floor_us=floor_us, target_us=None, gaps=()
    )  # fmt: skip


@pytest.mark.processes
def test_near_the_measured_ceiling_the_run_stops_with_the_figure(record: RunRecord) -> None:
    state = after(*run_of(FASTER, kept=(1,)))
    near = receipts.timed_receipt()  # 96 % of the ceiling
    found = decisions.stop(state, record, NOW, near, None)
    assert found is not None
    assert found.reason == "floor"
    assert "96.2% of the ceiling measured in its session" in found.evidence
    far = receipts.timed_receipt(receipts.timing(receipts.workload_timing(of_ceiling=0.5)))
    assert decisions.stop(state, record, NOW, far, targets(130.0)) is None  # what was measured counts, not the spec


@pytest.mark.processes
def test_without_a_ceiling_the_cited_floor_counts(record: RunRecord) -> None:
    state = after(*run_of(FASTER, kept=(1,)))
    unknown = receipts.workload_timing(of_ceiling=None)
    receipt = receipts.timed_receipt(receipts.timing(unknown))  # 136 us
    assert decisions.stop(state, record, NOW, receipt, None) is None
    assert decisions.stop(state, record, NOW, receipt, targets(122.3)) is None
    found = decisions.stop(state, record, NOW, receipt, targets(122.5))
    assert found is not None
    assert found.reason == "floor"
    half = record.model_copy(update={"target": "50%"})
    found = decisions.stop(state, half, NOW, receipt, targets(70.0))
    assert found is not None
    assert found.reason == "target_reached"


@pytest.mark.processes
def test_three_new_directions_in_vain_after_a_stall_end_the_run(record: RunRecord) -> None:
    events = [*run_of(SAME, SAME, SAME), Stalled(version=3, tried=("tiling_smem",), untried=())]

    def tried(number: int, method: str) -> list[Event]:
        made_of = list(made.iteration(number, 0, kept=False, **SAME))
        made_of[1] = made.submitted(number, 1, 0, (method,))
        return made_of

    for number, method in ((4, "tiling_smem"), (5, "split_k"), (6, "split_k"), (7, "data_layout")):
        events += tried(number, method)
        assert decisions.stop(after(*events), record, NOW, None, None) is None
    found = decisions.stop(after(*events, *tried(8, "cuda_graphs")), record, NOW, None, None)
    assert found is not None
    assert found.reason == "directions_exhausted"
    assert found.evidence.endswith("split_k (v5), data_layout (v7), cuda_graphs (v8)")


@pytest.mark.processes
def test_what_the_gate_rejected_or_nobody_timed_is_no_direction_in_vain(record: RunRecord) -> None:
    events = [*run_of(SAME, SAME, SAME), Stalled(version=3, tried=("tiling_smem",), untried=())]
    for number, method in ((4, "split_k"), (5, "data_layout"), (6, "cuda_graphs"), (7, "reduction")):
        tried: list[Event] = [made.opened(number, 0), made.submitted(number, 1, 0, (method,))]
        if number % 2:
            tried += [made.evaluated(number, 1, **SAME), made.profiled(number), made.gated(number, passed=False)]
            tried += [made.closed(number, kept=False, outcome="failed")]
        else:
            tried += [made.evaluated(number, 1), made.profiled(number), made.gated(number)]
            tried += [made.closed(number, kept=False)]
        events += [*tried, made.recorded(number), made.committed(number)]
    state = after(*events)
    assert [version.judged for version in state.versions[1:]] == [True] * 3 + [False] * 4
    assert decisions.stop(state, record, NOW, None, None) is None


@pytest.mark.parametrize(
    ("text", "target"),
    [("2.0x", ("x", 2.0)), (" 1.5X ", ("x", 1.5)), ("90%", ("%", 0.9)), ("100 %", ("%", 1.0)), ("", None)],
)
def test_targets_are_read(text: str, target: object) -> None:
    assert decisions.target_of(text) == target


@pytest.mark.parametrize("text", ["x", "1x", "0.5x", "0%", "101%", "-5%", "nanx", "infx", "2", "fast", "2,0x"])
def test_a_target_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        decisions.target_of(text)
    assert caught.value.code == "target_invalid"


@pytest.mark.processes
def test_a_final_measurement_agrees_where_it_says_faster_again(record: RunRecord) -> None:
    plan = TimingPlan(restarts=5, seconds=1.0, baselines=(BaselineChoice(name="eager", how="eager"),))

    def measured(median: float) -> Any:
        workload = receipts.workload_timing(baselines={"eager": receipts.baseline("eager", median)})
        workload = workload.model_copy(update={"improvement": workload.baselines["eager"].improvement})
        found = receipts.timed_receipt(receipts.timing(workload), improvement=workload.improvement)
        return found.model_copy(update={"plan": found.plan.model_copy(update={"timing": plan})})

    assert decisions.agrees(measured(1.3), record)[0]
    assert not decisions.agrees(measured(1.012), record)[0]  # its lower bound is 1.008
    assert decisions.agrees(receipts.receipt(), record) == (True, "right again; nothing was timed")
    wrong = receipts.receipt(verdict=Verdict.INCORRECT, reason="off", correctness=(receipts.trial(passed=False),))
    assert decisions.agrees(wrong, record) == (False, "the final measurement says incorrect: off")
