"""What a run will cost in time, from figures that were recorded on one GPU: an estimate, with what it assumes."""

from __future__ import annotations

from dataclasses import dataclass

from loop.journal.record import Grade
from loop.journal.version_state import BEST
from loop.planning.budget import MOST

SIGNAL = (3.0, 3.0)
"""Seconds, from and to, of a signal: decision 0038."""
VERDICT = (15.0, 28.0)
"""Of a verdict with 10 s of timed samples: benchmarks/results/loop/h200 and the receipts of docs/cases/softmax."""
PROFILE = (10.0, 16.0)
"""Of ncu and the machine code of a version: the journals of benchmarks/results/loop/h200."""
TIMED = 10.0
"""Seconds of timed samples in that verdict."""
WHERE = "as recorded for a softmax on an H200; larger inputs, slower compilers and other GPUs take longer"


@dataclass(frozen=True)
class Cost:
    """Time of a run without the proposer's own."""

    shown: str
    """`4 to 7 min`, or `UNKNOWN`."""
    assumed: str
    """What it is the sum of, and where the figures are from."""


def cost_of(
    *, device: str, grade: Grade, iterations: int, branches: int, several: bool, workloads: int, timing_seconds: float
) -> Cost:
    """What a run costs if each version takes one attempt with all its candidates.

    `several`: whether versions may have several methods, each with an ablation; `workloads`: sets of sizes;
    `timing_seconds`: of timed samples for each.
    """
    if device == "cpu":
        return Cost("UNKNOWN", "on the CPU the time is that of Triton's interpreter, and no figure of it is recorded")
    more = timing_seconds * max(1, workloads) - TIMED
    verdict = (max(0.0, VERDICT[0] + more), max(0.0, VERDICT[1] + more))
    profile = PROFILE if grade == "full" else (0.0, 0.0)
    signals, verdicts = branches, min(BEST, branches)
    if several:
        signals, verdicts = 1, 1 + MOST  # several methods have no branches
    first = [SIGNAL[n] + verdict[n] + profile[n] for n in (0, 1)]
    each = [signals * SIGNAL[n] + verdicts * verdict[n] + profile[n] for n in (0, 1)]
    total = [first[n] + iterations * each[n] + verdict[n] for n in (0, 1)]
    parts = [
        f"{signals} signal{'s' * (signals != 1)} of {SIGNAL[0]:g} s",
        f"{verdicts} verdict{'s' * (verdicts != 1)} of {verdict[0]:g} to {verdict[1]:g} s",
        *([f"a profile of {PROFILE[0]:g} to {PROFILE[1]:g} s"] if grade == "full" else []),
    ]
    said = f"at most for each version, with one attempt: {', '.join(parts)}; {WHERE}"
    return Cost(f"{_minutes(total[0])} to {_minutes(total[1])} min", f"{said}; a proposer's own time is not in it")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f}" if seconds >= 600 else f"{seconds / 60:.1f}"
