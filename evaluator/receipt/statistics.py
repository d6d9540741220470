"""Medians of times and of their ratios, with intervals that take the restart of a process for the unit of chance.

The hierarchical (two-stage) bootstrap: restarts are drawn with replacement, then pairs within each drawn restart, and
the median of all that was drawn is one outcome; the 2.5th and 97.5th percentiles of the outcomes are the interval.
Source: A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 3.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evaluator.receipt.timing import Ratio, Summary
from evaluator.receipt.verdict import Improvement

RESAMPLES = 2000
_AT_ONCE = 1 << 20
"""Values that are held in memory at once: an hour of samples, resampled as a whole, would need tens of gigabytes."""
LEVEL = 0.95
NARROW = 0.01
"""Sampling stops when the interval is narrower than this part of the median."""
TICK_US = 0.032
"""Resolution of CUDA events: every time that was read on an H200 is a multiple of it."""
LEAST_EFFECT = 0.01
"""No smaller difference is called one."""
LEAST_RESTARTS = 5
"""Processes of each side that a verdict needs: the noise floor of fewer is too often smaller than the noise."""
FEW_EFFECT = 0.10
"""With fewer, no smaller difference is called one."""
TOO_WIDE = 0.05
"""An interval wider than this, than twice the noise, and than what two processes differ by, says nothing."""
PROCESS_US = 0.3
"""By how much the medians of one process lie from those of another that runs the same kernel, however short: on an H200
those of 30 processes of one kernel lay between 3.55 and 3.87 us."""

Groups = Sequence[Sequence[float]]
"""Values, one sequence a restart; none of them empty."""


def interval(groups: Groups, seed: int, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """(median, lower end, upper end) of the 95 % interval of the median. Raises `ValueError` where there is nothing."""
    kept = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    if not kept:
        raise ValueError("there is nothing to take the median of")
    median = float(np.median(np.concatenate(kept)))
    size = max(len(group) for group in kept)
    generator = np.random.default_rng(seed)
    table = np.stack([np.resize(group, size) for group in kept])
    lengths = np.array([len(group) for group in kept])
    chosen = generator.integers(0, len(kept), size=(resamples, len(kept)))
    drawn = np.empty(resamples)
    some = max(1, _AT_ONCE // (len(kept) * size))
    for first in range(0, resamples, some):
        rows = chosen[first : first + some]
        # Each drawn restart gives as many values as the longest has: restarts weigh the same.
        inside = (generator.random((len(rows), len(kept), size)) * lengths[rows][..., None]).astype(np.int64)
        drawn[first : first + some] = np.median(table[rows[..., None], inside].reshape(len(rows), -1), axis=1)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return median, min(float(low), median), max(float(high), median)


def summary(groups: Groups, seed: int) -> Summary:
    """Times of one kernel, one sequence a restart."""
    median, low, high = interval(groups, seed)
    every = np.concatenate([np.asarray(group, dtype=np.float64) for group in groups])
    p20, p80 = np.quantile(every, [0.2, 0.8])
    return Summary(
        n=len(every),
        median_us=median,
        p20_us=float(p20),
        p80_us=float(p80),
        min_us=float(every.min()),
        max_us=float(every.max()),
        std_us=float(every.std(ddof=1)) if len(every) > 1 else 0.0,
        ci_low_us=low,
        ci_high_us=high,
    )


def ratio(pairs: Groups, baseline: Groups, seed: int, *, median_us: float) -> Ratio:
    """The ratio from paired quotients (baseline over candidate) and from the baseline's own times, by restart.
    `median_us` is the candidate's median."""
    median, low, high = interval(pairs, seed)
    return Ratio(
        median=median,
        ci_low=low,
        ci_high=high,
        pairs=sum(map(len, pairs)),
        restarts=tuple(float(np.median(group)) for group in pairs if len(group)),
        noise=noise(baseline),
        converged=is_narrow(median, low, high, median_us=median_us),
    )


def is_narrow(median: float, low: float, high: float, *, median_us: float) -> bool:
    """Whether more samples would say nothing new. Of a time that is a few of the events' ticks, its interval cannot be
    narrower than those."""
    return high - low < max(NARROW, 3 * TICK_US / max(median_us, TICK_US)) * median


def next_look(blocks: int) -> int:
    """After how many blocks of pairs the interval is looked at next, so many having been made: later and later, since
    each look takes longer, and its time is taken from the samples'."""
    return blocks + max(2, blocks // 10)


def noise(baseline: Groups) -> float:
    """How far one process of the baseline was from its others: the largest deviation of a restart's median from the
    median of the restarts' medians. The same code in other processes: whatever differs is noise."""
    medians = np.array([float(np.median(group)) for group in baseline if len(group)])
    if len(medians) < 2:
        return 0.0
    middle = float(np.median(medians))
    return float(np.abs(medians / middle - 1).max()) if middle > 0 else 0.0


def improvement(found: Ratio, median_us: float) -> Improvement:
    """What a ratio says: beyond the least effect and the noise, in the interval and in each restart alone.

    `median_us` is the candidate's median.
    """
    effect = LEAST_EFFECT if len(found.restarts) >= LEAST_RESTARTS else FEW_EFFECT
    least = 1 + max(effect, found.noise)
    if found.ci_low > least and all(r > 1 for r in found.restarts):
        return Improvement.FASTER
    if found.ci_high < 1 / least and all(r < 1 for r in found.restarts):
        return Improvement.SLOWER
    between = 2 * PROCESS_US / max(median_us, TICK_US)  # of both sides
    if found.ci_high - found.ci_low > max(TOO_WIDE, 2 * found.noise, between) * found.median:
        return Improvement.UNSTABLE
    return Improvement.SAME


def combined(ratios: Sequence[Ratio]) -> Ratio:
    """The geometric mean over workloads, and of the ends of their intervals: never narrower than it may be."""
    if len(ratios) == 1:
        return ratios[0]
    restarts = min(len(r.restarts) for r in ratios)
    return Ratio(
        median=geometric_mean([r.median for r in ratios]),
        ci_low=geometric_mean([r.ci_low for r in ratios]),
        ci_high=geometric_mean([r.ci_high for r in ratios]),
        pairs=sum(r.pairs for r in ratios),
        restarts=tuple(geometric_mean([r.restarts[n] for r in ratios]) for n in range(restarts)),
        noise=max(r.noise for r in ratios),
        converged=all(r.converged for r in ratios),
    )


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive numbers."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def together(found: Sequence[Improvement]) -> Improvement:
    """Over several workloads: faster only if none is slower and none unstable; slower as soon as one is."""
    for one in (Improvement.SLOWER, Improvement.UNSTABLE, Improvement.NOT_COMPARED, Improvement.NOT_TIMED):
        if one in found:
            return one
    return Improvement.FASTER if Improvement.FASTER in found else Improvement.SAME
