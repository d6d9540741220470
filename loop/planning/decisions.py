"""Decides from receipts and the journal which version is kept, when a run has stalled, and when it stops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Summary
from evaluator.receipt.verdict import Improvement, Verdict
from kbs.common.errors import UsageError
from loop.journal.events import StopReason
from loop.journal.language_model import exhausted
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.journal.version_state import VersionState
from loop.tools import Targets

STALL_ITERATIONS = 3
STALL_EFFECT = 0.03
"""The run has stalled if that many iterations together gained less than this."""
DIRECTIONS = 3
"""The run stops when that many methods failed after a stall."""
NEAR = 0.9
"""A time of at most floor / NEAR is near the peak."""
Interval = tuple[float, float, float]
"""Median, lower and upper bound."""


@dataclass(frozen=True)
class Decision:
    """Whether a version becomes the best one."""

    kept: bool
    why: str


@dataclass(frozen=True)
class Stop:
    """Why no further version is opened."""

    reason: StopReason
    evidence: str


def ratio_of(receipt: Receipt) -> Interval | None:
    """Time of the receipt's first planned baseline over the candidate's time; None if it was not measured.

    If the first baseline failed, the ratio is to a later one, and does not count.
    """
    timing, planned = receipt.timing, receipt.plan.timing
    if timing is None or timing.ratio is None or planned is None or not planned.baselines:
        return None
    if timing.against != planned.baselines[0].name:
        return None
    return timing.ratio.median, timing.ratio.ci_low, timing.ratio.ci_high


def median_of(receipt: Receipt) -> float | None:
    """Median time of the first workload in microseconds; None if none was taken."""
    summary = summary_of(receipt)
    return None if summary is None else summary.median_us


def summary_of(receipt: Receipt) -> Summary | None:
    """Times of the first workload; None if none were taken."""
    return None if receipt.timing is None else receipt.timing.workloads[0].candidate.summary


def decide(state: RunState, record: RunRecord, version: VersionState) -> Decision:
    """Whether a version that passed the gate becomes the best one."""
    found = version.result
    assert found is not None, version.number
    if version.number == 0:
        kernel = f"{record.first.words}" if record.first else "the user's kernel"
        return Decision(True, f"{kernel}: what every version is compared with in the end")
    if found.improvement is Improvement.NOT_TIMED:
        if record.accept_unmeasured:
            return Decision(True, "right, and kept without a time (--accept-unmeasured): nothing is timed on the CPU")
        return Decision(False, "right, and not kept: no time was taken, and --accept-unmeasured was not given")
    if found.ratio is None:
        return Decision(False, f"not kept: its parent's time is not known ({found.improvement})")
    said = f"{words(found.ratio)} of v{version.parent}'s speed"
    bound = 1 + record.minimum_effect
    if found.improvement is not Improvement.FASTER:
        return Decision(False, f"not kept: {said}, and the receipt says {found.improvement}")
    if found.ratio[1] <= bound:
        return Decision(False, f"not kept: {said}, and the lower bound is not above {bound:.4g}")
    if state.best is not None and version.parent != state.best:
        best = state.versions[state.best].result
        before = None if best is None else best.median_us
        if before is None or found.median_us is None or found.median_us >= before:
            return Decision(False, f"not kept: {said}, and not faster than the best version, v{state.best}")
    return Decision(True, f"kept: {said}, with the lower bound above {bound:.4g}")


def words(ratio: Interval) -> str:
    """`1.31x [1.30x, 1.32x]`"""
    return f"{ratio[0]:.3g}x [{ratio[1]:.3g}x, {ratio[2]:.3g}x]"


def to_baseline(state: RunState, number: int) -> Interval | None:
    """Version 0's time over a version's: the product of the ratios along its parents; None if one is missing.

    The bounds are multiplied too, so the interval is wider than that of a direct measurement.
    """
    product, version = (1.0, 1.0, 1.0), state.versions[number]
    while version.number > 0:
        found = version.result
        if found is None or found.ratio is None or version.parent is None:
            return None
        product = (product[0] * found.ratio[0], product[1] * found.ratio[1], product[2] * found.ratio[2])
        version = state.versions[version.parent]
    return product


@dataclass(frozen=True)
class Standing:
    """What a kept version, or a candidate of an attempt, is ranked by."""

    version: int
    """Its number; of a candidate, its place among those that are compared."""
    ratio: Interval | None
    """To version 0."""
    p80_us: float | None
    std_us: float | None
    size: int
    """Bytes of its kernel: of two equally fast ones, the simpler one comes first."""


def ranked(standings: Sequence[Standing]) -> tuple[int, ...]:
    """Versions, the best first. If intervals overlap with the best's, lower p80 and std decide, then simpler code.

    Without times, later versions come first: each was kept over the earlier ones.
    """
    if any(one.ratio is None for one in standings):
        return tuple(one.version for one in sorted(standings, key=lambda one: -one.version))
    left, found = list(standings), list[int]()
    while left:
        top = max(left, key=lambda one: one.ratio[0] if one.ratio else 0.0)
        tied = [one for one in left if one is top or (one.ratio and top.ratio and one.ratio[2] >= top.ratio[1])]
        first = min(tied, key=lambda one: (_or_inf(one.p80_us), _or_inf(one.std_us), one.size, one.version))
        found.append(first.version)
        left.remove(first)
    return tuple(found)


def champion(standings: Sequence[Standing]) -> int:
    """The best of an attempt's candidates, ranked as versions are; without times, the first one."""
    return ranked(standings)[0] if all(one.ratio is not None for one in standings) else standings[0].version


def _or_inf(value: float | None) -> float:
    return float("inf") if value is None else value


def agrees(receipt: Receipt, record: RunRecord) -> tuple[bool, str]:
    """(whether a final measurement against version 0 also says that the version is faster, why)"""
    if receipt.verdict is not Verdict.ACCEPTED:
        return False, f"the final measurement says {receipt.verdict}: {receipt.reason}"
    if receipt.improvement is Improvement.NOT_TIMED:
        return True, "right again; nothing was timed"
    ratio, bound = ratio_of(receipt), 1 + record.minimum_effect
    if ratio is None:
        return False, "version 0's time is not known in the final measurement"
    if ratio[1] <= bound:
        return False, f"{words(ratio)} of v0's speed in the final measurement: its lower bound is not above {bound:.4g}"
    return True, f"{words(ratio)} of v0's speed in the final measurement"


# --- stall and stop ---------------------------------------------------------------------------------------------------


def stalled(state: RunState, record: RunRecord) -> tuple[VersionState, ...]:
    """The last iterations if they gained less than `STALL_EFFECT` together since the last stall; else none."""
    after = state.stalls[-1].version if state.stalls else 0
    since = [v for v in state.versions[1:] if v.number > after and v.closed is not None]
    last = since[-STALL_ITERATIONS:]
    if len(last) < STALL_ITERATIONS or last[-1] is not state.current or state.iterations >= state.cap(record):
        return ()
    gained = 1.0
    for version in last:
        found = version.result
        if version.kept:
            gained *= found.ratio[0] if found is not None and found.ratio is not None else 1 + STALL_EFFECT
    return tuple(last) if gained < 1 + STALL_EFFECT else ()


def to_mask(state: RunState) -> tuple[int, ...]:
    """The versions that a partial restart masks: the older half, without v0, the best and those already masked."""
    others = [v.number for v in state.versions[1:] if v.number != state.best and not v.masked and v.closed is not None]
    return tuple(others[: len(others) // 2])


def stop(state: RunState, record: RunRecord, now: str, best: Receipt | None, targets: Targets | None) -> Stop | None:
    """Why the run stops now, with the figures; None if it continues.

    `now` is the time in UTC, `best` the receipt of the best version.
    """
    late = over_time(state, record, now)
    if late is not None:
        return late
    if state.best is None:
        return None
    for found in (_target(state, record, best, targets), _floor(state, best, targets), _directions(state)):
        if found is not None:
            return found
    if state.iterations >= state.cap(record):
        kept = sum(version.kept for version in state.versions[1:])
        return Stop("cap", f"{state.iterations} of {state.cap(record)} iterations are done; {kept} were kept")
    return over_budget(state, record)


def over_time(state: RunState, record: RunRecord, now: str) -> Stop | None:
    """The time limit, counted from the start of the run or from its last extension."""
    if record.seconds is None or not state.clock_from:
        return None
    passed = (datetime.fromisoformat(now) - datetime.fromisoformat(state.clock_from)).total_seconds()
    if passed < record.seconds:
        return None
    return Stop("time", f"{passed:.0f} s have passed since {state.clock_from}, and the limit is {record.seconds:.0f} s")


def over_budget(state: RunState, record: RunRecord) -> Stop | None:
    """The limits of a language model: on its calls, its tokens and their cost."""
    said = "" if record.model is None else exhausted(record.model, state.spent)
    return Stop("budget", said) if said else None


def target_of(text: str) -> tuple[Literal["x", "%"], float] | None:
    """`2.0x` → ("x", 2.0), `90%` → ("%", 0.9), empty → None. Raises `UsageError` (`target_invalid`)."""
    written = text.strip().lower()
    if not written:
        return None
    try:
        number = Decimal(written[:-1].strip())
    except InvalidOperation:
        number = Decimal(0)
    if written[-1] in "x×" and number.is_finite() and 1 < number <= 1_000_000:
        return "x", float(number)
    if written[-1] == "%" and number.is_finite() and 0 < number <= 100:
        return "%", float(number / 100)
    raise UsageError(
        f"the target {text[:40]!r} is neither a speedup nor a part of what the hardware allows",
        code="target_invalid",
        hint="Such as --target 2.0x (over version 0) or --target 90% (of the measured ceiling, else of the floor).",
    )


def _target(state: RunState, record: RunRecord, best: Receipt | None, targets: Targets | None) -> Stop | None:
    target = target_of(record.target)
    if target is None or best is None or state.best is None:
        return None
    kind, wanted = target
    if kind == "x":
        ratio = to_baseline(state, state.best)
        if ratio is None or ratio[1] < wanted:
            return None
        return Stop("target_reached", f"v{state.best} has {words(ratio)} of v0's speed; the target was {record.target}")
    part = _of_floor(best, targets)
    if part is None or part[0] < wanted:
        return None
    return Stop("target_reached", f"v{state.best} reaches {part[1]}; the target was {record.target}")


def _floor(state: RunState, best: Receipt | None, targets: Targets | None) -> Stop | None:
    part = None if best is None else _of_floor(best, targets)
    if part is None or part[0] < NEAR:
        return None
    return Stop("floor", f"v{state.best} is near the peak, t <= floor / {NEAR}: it reaches {part[1]}")


def _of_floor(receipt: Receipt, targets: Targets | None) -> tuple[float, str] | None:
    """(floor over median time, as text): by the measured ceiling of every workload, else by the cited specs."""
    if receipt.timing is None:
        return None
    workloads = receipt.timing.workloads
    measured = [w.of_ceiling for w in workloads if w.of_ceiling is not None]
    if len(measured) == len(workloads):
        return min(measured), f"{min(measured):.1%} of the ceiling measured in its session"
    median = median_of(receipt)
    if targets is None or targets.floor_us is None or not median or len(workloads) > 1:
        return None
    part = targets.floor_us / median
    return part, f"{part:.1%} of the floor of step 0 ({targets.floor_us:.4g} us of {median:.4g} us)"


def _directions(state: RunState) -> Stop | None:
    """Methods that failed since the last stall."""
    if not state.stalls:
        return None
    after = max(state.stalls[-1].version, state.best or 0)
    tried: dict[str, int] = {}
    for version in state.versions[after + 1 :]:
        if version.judged and not version.kept:
            for method in version.methods:
                tried.setdefault(method, version.number)
    before = {method for v in state.versions[1 : after + 1] for method in v.methods}
    fresh = {method: number for method, number in tried.items() if method not in before}
    if len(fresh) < DIRECTIONS:
        return None
    named = ", ".join(f"{method} (v{number})" for method, number in fresh.items())
    return Stop("directions_exhausted", f"since the reassessment after v{state.stalls[-1].version}, in vain: {named}")
