"""Medians, ratios and their intervals: what restarts of a process have to do with chance."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.receipt import statistics as intervals
from evaluator.receipt.statistics import (
    LEAST_EFFECT,
    TICK_US,
    combined,
    geometric_mean,
    improvement,
    interval,
    is_narrow,
    noise,
    ratio,
    summary,
    together,
)
from evaluator.receipt.timing import Ratio
from evaluator.receipt.verdict import Improvement
from tests.evaluator import receipts

TIMES = st.floats(min_value=0.5, max_value=1e6)
GROUPS = st.lists(st.lists(TIMES, min_size=1, max_size=12), min_size=1, max_size=5)
SEEDS = st.integers(min_value=0, max_value=2**63 - 1)


# --- the interval -----------------------------------------------------------------------------------------------------


def test_one_value_has_an_interval_of_no_width() -> None:
    assert interval([[3.0]], 1) == (3.0, 3.0, 3.0)
    assert interval([[3.0] * 40, [3.0]], 1) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize("groups", [[], [[]], [[], []]])
def test_of_nothing_there_is_no_median(groups: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="nothing"):
        interval(groups, 1)


def test_a_restart_without_times_is_left_out() -> None:
    assert interval([[1.0, 2.0], [], [4.0]], 9) == interval([[1.0, 2.0], [4.0]], 9)


def test_two_values_worked_by_hand() -> None:
    """Both are drawn the same (1/4 each) or not: the ends are the values themselves, the middle their mean."""
    assert interval([[10.0, 20.0]], 7) == (15.0, 10.0, 20.0)


def test_two_restarts_are_two_chances_however_many_their_turns() -> None:
    """Each restart is drawn twice in a quarter of the cases: the interval goes from one to the other."""
    assert interval([[10.0] * 500, [20.0] * 500], 3) == (15.0, 10.0, 20.0)


def test_restarts_weigh_the_same_whatever_their_number_of_turns() -> None:
    """Of three restarts the one with a single turn is drawn twice or more in 7 of 27 cases, and is the median then."""
    median, low, high = interval([[1.0] * 100, [1.0] * 100, [2.0]], 5)
    assert (median, low) == (1.0, 1.0)
    assert high == 2.0


def test_one_restart_follows_the_order_statistics() -> None:
    """The bootstrap of one sample's median, n = 101: about the 41st and the 61st value, from the binomial."""
    median, low, high = interval([[float(n) for n in range(101)]], 11, resamples=20_000)
    assert median == 50.0
    assert 39 <= low <= 42
    assert 58 <= high <= 61


@settings(deadline=None, max_examples=60)
@given(GROUPS, SEEDS)
def test_the_interval_lies_among_the_values_and_holds_the_median(groups: list[list[float]], seed: int) -> None:
    every = [value for group in groups for value in group]
    median, low, high = interval(groups, seed, resamples=100)
    assert min(every) <= low <= median <= high <= max(every)
    assert median == float(np.median(every))


@settings(deadline=None, max_examples=40)
@given(GROUPS, SEEDS, st.sampled_from([0.25, 2.0, 8.0]))
def test_scale_carries_over(groups: list[list[float]], seed: int, factor: float) -> None:
    plain = interval(groups, seed, resamples=50)
    scaled = interval([[factor * value for value in group] for group in groups], seed, resamples=50)
    assert scaled == pytest.approx(tuple(factor * end for end in plain), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(GROUPS, SEEDS, st.data())
def test_slower_times_never_make_a_faster_interval(groups: list[list[float]], seed: int, data: Any) -> None:
    slower = [[value + data.draw(st.floats(min_value=0, max_value=100)) for value in group] for group in groups]
    before, after = interval(groups, seed, resamples=50), interval(slower, seed, resamples=50)
    assert all(a <= b for a, b in zip(before, after, strict=True))


def test_many_turns_are_resampled_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [np.random.default_rng(n).normal(100, 1, 900 + n).tolist() for n in range(5)]
    whole = interval(groups, 3, resamples=400)
    monkeypatch.setattr(intervals, "_AT_ONCE", 50_000)
    tracemalloc.start()
    try:
        assert interval(groups, 3, resamples=400) == whole
        assert tracemalloc.get_traced_memory()[1] < 4 << 20  # the whole is 400 × 5 × 904 values of 8 bytes, thrice
    finally:
        tracemalloc.stop()


def test_the_seed_makes_the_interval() -> None:
    groups = [list(np.random.default_rng(n).normal(100, 5, 23)) for n in range(5)]
    assert interval(groups, 1) == interval(groups, 1)
    assert len({interval(groups, seed)[1:] for seed in range(8)}) > 1
    assert len({interval(groups, seed)[0] for seed in range(8)}) == 1


@pytest.mark.parametrize(("between", "within"), [(0.02, 0.01), (0.0, 0.02), (0.02, 0.0)])
def test_it_covers_the_truth_where_restarts_differ(between: float, within: float) -> None:
    """Nominally 95 %. Of five restarts the percentile bootstrap covers less, and far more than one that takes all
    turns for independent (below half of the runs where restarts differ by twice what turns do)."""
    draw = np.random.default_rng(17)
    runs, covered, naive = 200, 0, 0
    for run in range(runs):
        offsets = draw.normal(0, between, 5)
        groups = [list(100 * (1 + offset + draw.normal(0, within, 30))) for offset in offsets]
        _, low, high = interval(groups, run, resamples=300)
        covered += low <= 100 <= high
        _, low, high = interval([list(itertools.chain(*groups))], run, resamples=300)
        naive += low <= 100 <= high
    assert covered >= 0.80 * runs
    if between > within > 0:
        assert naive < 0.6 * runs


# --- summaries --------------------------------------------------------------------------------------------------------


def test_a_summary_worked_by_hand() -> None:
    found = summary([[1.0, 2.0], [3.0, 4.0, 10.0]], 1)
    assert (found.n, found.median_us, found.min_us, found.max_us) == (5, 3.0, 1.0, 10.0)
    assert (found.p20_us, found.p80_us) == pytest.approx((1.8, 5.2))
    assert found.std_us == pytest.approx(math.sqrt((9 + 4 + 1 + 0 + 36) / 4))
    assert found.ci_low_us <= 3.0 <= found.ci_high_us


def test_a_summary_of_one_turn() -> None:
    found = summary([[5.0]], 1)
    assert (found.n, found.std_us, found.p20_us, found.p80_us) == (1, 0.0, 5.0, 5.0)


@settings(deadline=None, max_examples=40)
@given(GROUPS, SEEDS)
def test_the_figures_of_a_summary_are_in_order(groups: list[list[float]], seed: int) -> None:
    found = summary(groups, seed)
    assert found.min_us <= found.p20_us <= found.median_us <= found.p80_us <= found.max_us
    assert found.min_us <= found.ci_low_us <= found.median_us <= found.ci_high_us <= found.max_us


# --- ratios and noise -------------------------------------------------------------------------------------------------


def test_a_ratio_by_restart() -> None:
    found = ratio([[2.0, 2.0, 2.2], [], [1.8]], [[100.0, 100.0], [104.0], [97.0]], 1, median_us=50.0)
    assert (found.median, found.pairs, found.restarts) == (2.0, 4, (2.0, 1.8))
    assert found.noise == pytest.approx(0.04)
    assert found.ci_low == 1.8
    assert not found.converged
    assert ratio([[2.0] * 5] * 5, [[100.0]] * 5, 1, median_us=50.0).converged


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([[100.0, 100.0], [103.0, 103.0], [98.0, 98.0]], 0.03),
        ([[100.0, 500.0, 100.0], [100.0], [95.0]], 0.05),
        ([[100.0], [], [110.0]], 5 / 105),
        ([[100.0, 300.0]], 0.0),
        ([], 0.0),
        ([[0.0], [0.0], [5.0]], 0.0),
    ],
)
def test_noise_is_the_restart_that_lies_farthest(groups: list[list[float]], expected: float) -> None:
    assert noise(groups) == pytest.approx(expected)


def test_an_interval_is_narrow_at_one_part_in_a_hundred() -> None:
    assert is_narrow(1.5, 1.4930, 1.5079, median_us=1000.0)
    assert not is_narrow(1.5, 1.4924, 1.5076, median_us=1000.0)


def test_of_a_few_ticks_no_interval_can_be_narrower_than_those() -> None:
    """Of 1.6 us, which are 50 ticks, three ticks are 6 %."""
    short = 50 * TICK_US
    assert is_narrow(1.0, 0.98, 1.0395, median_us=short)
    assert not is_narrow(1.0, 0.98, 1.0405, median_us=short)
    assert not is_narrow(1.0, 0.98, 1.0395, median_us=300 * TICK_US)
    assert is_narrow(1.0, 0.5, 3.0, median_us=0.0)


# --- what a ratio says ------------------------------------------------------------------------------------------------


def found(low: float, high: float, *, restarts: tuple[float, ...] = (), level: float = 0.0) -> Ratio:
    """A ratio with that interval, and the noise `level`."""
    middle = (low + high) / 2
    return receipts.ratio(middle, ci_low=low, ci_high=high, restarts=restarts or (middle,) * 5, noise=level)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (found(1.0101, 1.02), Improvement.FASTER),
        (found(1.0099, 1.02), Improvement.SAME),
        (found(1.08, 1.10, level=0.05), Improvement.FASTER),
        (found(1.045, 1.08, level=0.05), Improvement.SAME),
        (found(1.02, 1.10, restarts=(1.1, 1.1, 0.999, 1.1)), Improvement.UNSTABLE),
        (found(1.02, 1.06, restarts=(1.1, 1.1, 1.0, 1.1)), Improvement.SAME),
        (found(0.97, 0.99), Improvement.SLOWER),
        (found(0.97, 0.9902), Improvement.SAME),
        (found(0.90, 0.92, level=0.05), Improvement.SLOWER),
        (found(0.93, 0.96, level=0.05), Improvement.SAME),
        (found(0.96, 0.98, restarts=(0.96, 1.001)), Improvement.SAME),
        (found(0.90, 0.98, restarts=(0.96, 1.0)), Improvement.UNSTABLE),
        (found(0.99, 1.01), Improvement.SAME),
        (found(0.976, 1.024), Improvement.SAME),
        (found(0.974, 1.026), Improvement.UNSTABLE),
        (found(0.95, 1.05, level=0.06), Improvement.SAME),
        (found(0.93, 1.07, level=0.06), Improvement.UNSTABLE),
        (found(1.5, 9.0), Improvement.FASTER),
        (found(1.101, 1.12, restarts=(1.11,) * 4), Improvement.FASTER),
        (found(1.099, 1.12, restarts=(1.11,) * 4), Improvement.SAME),
        (found(1.099, 1.12, restarts=(1.11,) * 5), Improvement.FASTER),
        (found(0.90, 0.908, restarts=(0.904, 0.905)), Improvement.SLOWER),
        (found(0.90, 0.910, restarts=(0.904, 0.905)), Improvement.SAME),
    ],
)
def test_what_a_ratio_says(given: Ratio, said: Improvement) -> None:
    assert improvement(given, 100.0) is said


@pytest.mark.parametrize(
    ("half", "median_us", "said"),
    [
        (0.064, 3.6, Improvement.SAME),
        (0.082, 3.6, Improvement.SAME),
        (0.085, 3.6, Improvement.UNSTABLE),
        (0.064, 4.6, Improvement.SAME),
        (0.064, 4.8, Improvement.UNSTABLE),
        (0.026, 11.0, Improvement.SAME),
        (0.026, 12.0, Improvement.UNSTABLE),
        (0.9, 0.0, Improvement.SAME),
    ],
)
def test_of_a_few_microseconds_an_interval_may_be_as_wide_as_processes_differ(
    half: float, median_us: float, said: Improvement
) -> None:
    """0.3 us on either side: 17 % of 3.6 us, and less than the usual 5 % from 12 us up."""
    assert improvement(found(1 - half, 1 + half), median_us) is said


def test_a_short_kernel_needs_no_smaller_a_difference() -> None:
    assert improvement(found(1.02, 1.12), 3.6) is Improvement.FASTER
    assert improvement(found(1.005, 1.12), 3.6) is Improvement.SAME


@pytest.mark.parametrize("restarts", [2, 3, 5])
@pytest.mark.parametrize("between", [0.003, 0.01, 0.03])
def test_the_same_code_on_both_sides_is_hardly_ever_called_faster_or_slower(restarts: int, between: float) -> None:
    """Processes that differ by 1 % made two restarts call a win or a loss in 6 of 100 comparisons, by 3 % in 25."""
    random, wrong, runs = np.random.default_rng(7), 0, 100
    for run in range(runs):
        levels = np.exp(random.normal(0, between, (2, restarts, 1)))
        baseline, own = 100 * levels * np.exp(random.normal(0, 0.005, (2, restarts, 10)))
        said = improvement(ratio((baseline / own).tolist(), baseline.tolist(), run, median_us=100.0), 100.0)
        wrong += said in (Improvement.FASTER, Improvement.SLOWER)
    assert wrong <= 1


@settings(deadline=None)
@given(st.floats(1.0, 3.0), st.floats(0.0, 0.3), st.floats(0.0, 0.2))
def test_nothing_within_the_noise_is_called_an_improvement(middle: float, half: float, level: float) -> None:
    said = improvement(found(max(0.01, middle - half), middle + half, level=level), 100.0)
    if said is Improvement.FASTER:
        assert middle - half > 1 + max(level, LEAST_EFFECT)
    assert said is not Improvement.SLOWER or middle + half < 1


@settings(deadline=None)
@given(st.floats(0.2, 5.0), st.floats(1.0, 1.3), st.floats(0.0, 0.2))
def test_faster_and_slower_are_each_others_mirror(middle: float, spread: float, level: float) -> None:
    forth = found(middle / spread, middle * spread, level=level, restarts=(middle,))
    back = found(1 / (middle * spread), spread / middle, level=level, restarts=(1 / middle,))
    mirror = {Improvement.FASTER: Improvement.SLOWER, Improvement.SLOWER: Improvement.FASTER}
    here, there = improvement(forth, 100.0), improvement(back, 100.0)
    if here in mirror and abs(math.log(middle / spread)) > 1e-9:
        edge = 1 + max(level, LEAST_EFFECT)
        ends = (middle / spread, middle * spread)
        if all(abs(end - edge) > 1e-9 and abs(end - 1 / edge) > 1e-9 for end in ends):
            assert there is mirror[here]


# --- several workloads ------------------------------------------------------------------------------------------------


def test_one_workload_is_its_own_mean() -> None:
    only = receipts.ratio(1.3)
    assert combined([only]) is only


def test_ratios_of_several_workloads_by_hand() -> None:
    one = receipts.ratio(2.0, ci_low=1.0, ci_high=4.0, pairs=10, restarts=(2.0, 8.0, 3.0), noise=0.01, converged=True)
    two = receipts.ratio(0.5, ci_low=0.25, ci_high=1.0, pairs=7, restarts=(0.5, 2.0), noise=0.03, converged=False)
    mean = combined([one, two])
    assert (mean.median, mean.ci_low, mean.ci_high) == pytest.approx((1.0, 0.5, 2.0))
    assert mean.restarts == pytest.approx((1.0, 4.0))
    assert (mean.pairs, mean.noise, mean.converged) == (17, 0.03, False)


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=9))
def test_the_geometric_mean_lies_between_and_multiplies(values: list[float]) -> None:
    mean = geometric_mean(values)
    assert min(values) * (1 - 1e-12) <= mean <= max(values) * (1 + 1e-12)
    assert mean ** len(values) == pytest.approx(math.prod(values), rel=1e-9)


F, S, N, U = Improvement.FASTER, Improvement.SAME, Improvement.SLOWER, Improvement.UNSTABLE
C, T = Improvement.NOT_COMPARED, Improvement.NOT_TIMED


@pytest.mark.parametrize(
    ("each", "said"),
    [
        ([F, F], F),
        ([F, S], F),
        ([S, S], S),
        ([F, N], N),
        ([N, U], N),
        ([F, U, S], U),
        ([U, C], U),
        ([F, C], C),
        ([C, T], C),
        ([F, T], T),
        ([F], F),
    ],
)
def test_several_workloads_together(each: list[Improvement], said: Improvement) -> None:
    assert together(each) is said
    assert together(each[::-1]) is said
