"""The conclusions from a benchmark: summaries, ratios, what the cross-checks say, and the improvement that follows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evaluator.receipt import statistics as intervals
from evaluator.receipt.plan import Plan, TimingPlan
from evaluator.receipt.statistics import Groups
from evaluator.receipt.timing import (
    AuditWitness,
    BackToBack,
    Baseline,
    Ceiling,
    Physics,
    Series,
    Timed,
    Timing,
    WorkloadTiming,
)
from evaluator.receipt.verdict import Improvement
from evaluator.request import Request
from evaluator.scan.hazards import Severity
from evaluator.timing.clock_checks import (
    REFUTES,
    SHORT_US,
    TOLERATED,
    CrossCheck,
    judge_cross_check,
)
from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.timing.timed_process import TimedProcess
from evaluator.workloads import declared

SLOWED = 1.05
"""A baseline that is slower by this beside the candidate makes the comparison unstable."""
LARGE = 10.0
"""A ratio above this is worth a second look."""
CONTRADICTED = 0.02
"""By how much a ratio without pauses must lie on the other side of 1 to count against the one with pauses."""
_FLAGS = ("TF32 off",)


@dataclass
class Results:
    """All measurements of one workload, written down while they are taken."""

    dims: dict[str, int]
    plan: TimingPlan
    clock: DeviceClock
    seed: int
    restarts: list[list[TimedProcess]] = field(default_factory=list)
    """By restart: the candidate's, then those of the baselines that have not failed."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why a baseline has no times, by its name."""
    cross_check: CrossCheck = field(default_factory=lambda: CrossCheck(0, (), (), why="no turn was made"))
    read_bytes: int = 0
    written_bytes: int = 0
    ceiling: Ceiling | None = None
    fixed: bool = False
    """Whether the inputs were the same in all samples."""
    notes: Sequence[str] = ()
    seconds: float = 0.0
    """Time that it all took."""
    back_to_back: BackToBack | None = None
    """Rows of calls without a pause, where there were some."""


@dataclass
class Found:
    """The record, and the hazards that follow from it."""

    timing: WorkloadTiming
    hazards: list[tuple[str, Severity, str]] = field(default_factory=list)


def workload_timing(results: Results, request: Request, physics: Callable[[int, float], Physics]) -> Found:
    """Draw the conclusions. `physics` takes the L2 cache's bytes and the candidate's 20th percentile."""
    candidates = [processes[0] for processes in results.restarts]
    first = candidates[0]
    timed = _timed("candidate", candidates, results)
    own = timed.summary
    assert own is not None  # it is `timed`
    enqueue = statistics.median(t for process in candidates for t in process.samples.enqueue_us)
    waits = any(process.waits for process in candidates)
    claim = own.median_us
    audit = _excused(judge_cross_check(results.cross_check, claim, enqueue, waits=waits), results.back_to_back)
    possible = physics(first.l2_bytes, own.p20_us)
    confirmed = audit.status == "confirmed"
    hazards = _against(audit, possible)
    notes = list(results.notes)
    unstable = []
    if not confirmed:
        unstable.append("no clock cross-check confirms the device time")
        hazards.append(("device_time_unconfirmed", Severity.NOTE, audit.detail or "no cross-check"))
    if timed.late > own.n:
        unstable.append("more than half of the candidate's turns were dropped, by its own word")
    if results.fixed:
        unstable.append("the inputs were the same in every turn")
    slowed = _slowed(results)
    if slowed > SLOWED:
        unstable.append(f"the baseline was {slowed:.2f} times as slow beside the candidate as alone")
        hazards.append(("slows_baseline", Severity.NOTE, unstable[-1]))
    if waits:
        notes.append("the call waits for the device by itself: its time includes the way back to the host")
        hazards.append(("host_bound", Severity.NOTE, "the call waits for the device by itself"))
    if own.median_us < SHORT_US:
        notes.append(f"below {SHORT_US:.0f} us a launch is a large part: the device time says little of the whole")
    baselines = _baselines(results, unstable, own.median_us)
    against = next((name for name, one in baselines.items() if one.ratio is not None), "")
    if against and (said := _contradicted(baselines[against], results.back_to_back, results.cross_check)):
        unstable.append(said)
        baselines = _baselines(results, unstable, own.median_us)
    improvement = baselines[against].improvement if against else Improvement.NOT_COMPARED
    if not against and any(one.timed.status == "timed" for one in baselines.values()):
        unstable.append("there is no pair of turns in which both sides count")
        improvement = Improvement.UNSTABLE
    ratio = baselines[against].ratio if against else None
    if ratio is not None and ratio.median > LARGE:
        notes.append(f"a ratio of {ratio.median:.1f} is rare: look at the baseline, and at what the sanitizers say")
    named, operations = declared(request, results.dims)
    size = results.read_bytes + results.written_bytes if named is None else named
    bandwidth = size / claim / 1e3 if claim else None
    timing = WorkloadTiming(
        dims=results.dims,
        candidate=timed,
        baselines=baselines,
        improvement=improvement,
        against=against,
        unstable=tuple(unstable),
        audit=audit,
        confirmed=confirmed,
        empty_us=statistics.median(t for process in candidates for t in process.empty_us),
        flush_bytes=first.flush_bytes,
        spin_us=max(process.spin_us for process in candidates),
        read_bytes=results.read_bytes,
        written_bytes=results.written_bytes,
        bytes=size,
        operations=operations,
        gb_per_s=bandwidth,
        tflop_per_s=operations / claim / 1e6 if operations is not None and claim else None,
        ceiling=results.ceiling,
        of_ceiling=results.ceiling.floor_us / claim if results.ceiling and claim else None,
        of_peak=bandwidth / possible.peak.gb_per_s if bandwidth is not None and possible.peak else None,
        physics=possible,
        back_to_back=results.back_to_back,
        notes=tuple(notes),
        seconds=results.seconds,
    )
    return Found(timing, hazards)


def _excused(audit: AuditWitness, rows: BackToBack | None) -> AuditWitness:
    """A row that took too long refutes nothing if the baseline's did too, when the candidate's processes had gone: then
    the device had other work."""
    if audit.status != "refuted" or audit.per_call_us is None or not audit.claim_us or rows is None:
        return audit
    baseline = rows.baseline
    slower = baseline.per_call_us / baseline.alone_us if baseline is not None else 1.0
    if slower <= TOLERATED or audit.per_call_us > REFUTES * slower * audit.claim_us:
        return audit
    said = f"{audit.detail}; but the baseline's took {slower:.2f} times its median as well: the device had other work"
    return audit.model_copy(update={"status": "not binding", "detail": said})


def _against(audit: AuditWitness, physics: Physics) -> list[tuple[str, Severity, str]]:
    found = {
        "slower_than_claimed": audit.detail if audit.status == "refuted" else None,
        "impossible_time": physics.detail if physics.status == "impossible" else None,
    }
    return [(id, Severity.REJECT, said) for id, said in found.items() if said is not None]


def kept(process: TimedProcess, clock: DeviceClock) -> list[float]:
    """Its times that count."""
    return list(process.samples.counted(clock).values())


def _timed(name: str, processes: Sequence[TimedProcess], results: Results) -> Timed:
    """One kernel's times over all restarts. Where each sample was dropped, all of them count, and it is said."""
    dropped = [why for r in processes for why in r.samples.dropped(results.clock)]
    detail = ""
    groups: Groups = [kept(process, results.clock) for process in processes]
    if not any(groups):
        late, slow = dropped.count("late"), dropped.count("clock")
        detail = f"no turn counts by the rule, so all do: the host was late in {late}, the clock too low in {slow}"
        groups = [list(process.samples.us) for process in processes]
        dropped = [""] * len(dropped)
    return Timed(
        name=name,
        status="timed",
        detail=detail,
        flags=_FLAGS,
        summary=intervals.summary([g for g in groups if len(g)], results.seed),
        first_call_seconds=max(r.first_call_seconds for r in processes),
        late=dropped.count("late"),
        slow_clock=dropped.count("clock"),
        series=Series(
            restart=tuple(r.restart for r in processes for _ in r.samples.us),
            pair=tuple(p for r in processes for p in r.samples.pair),
            us=tuple(round(t, 3) for r in processes for t in r.samples.us),
            enqueue_us=tuple(round(t, 1) for r in processes for t in r.samples.enqueue_us),
            clock_mhz=tuple(m for r in processes for m in r.samples.clock_mhz),
            dropped=tuple(dropped),  # type: ignore[arg-type]  # its three words
        ),
    )


def _baselines(results: Results, unstable: Sequence[str], median_us: float) -> dict[str, Baseline]:
    return {choice.name: _baseline(choice.name, results, unstable, median_us) for choice in results.plan.baselines}


def _contradicted(baseline: Baseline, found: BackToBack | None, own: CrossCheck) -> str:
    """Why the improvement over a baseline does not stand without pauses; empty where it does, or nothing is known."""
    if found is None or found.ratio is None or found.baseline is None or found.baseline.name != baseline.timed.name:
        return ""
    told = CONTRADICTED + (own.resolution if own.walls_us and found.candidate.calls == own.calls else 0.0)
    lost = baseline.improvement is Improvement.FASTER and found.ratio < 1 - told
    won = baseline.improvement is Improvement.SLOWER and found.ratio > 1 + told
    said = f"called without a pause it is {found.ratio:.3f} times as fast as {baseline.timed.name}"
    return said if lost or won else ""


def _baseline(name: str, results: Results, unstable: Sequence[str], median_us: float) -> Baseline:
    processes = [r for group in results.restarts for r in group[1:] if r.name == name]
    if name in results.failed or not processes:
        detail = results.failed.get(name, "it was not started")
        return Baseline(
            timed=Timed(name=name, status="failed", detail=detail), ratio=None, improvement=Improvement.NOT_COMPARED
        )
    timed = _timed(name, processes, results)
    candidates = {group[0].restart: group[0] for group in results.restarts}
    pairs = [quotients(process, candidates[process.restart], results.clock) for process in processes]
    times = [kept(process, results.clock) for process in processes]
    if not any(pairs):
        return Baseline(timed=timed, ratio=None, improvement=Improvement.UNSTABLE)
    ratio = intervals.ratio([p for p in pairs if p], [t for t in times if t], results.seed, median_us=median_us)
    improvement = Improvement.UNSTABLE if unstable else intervals.improvement(ratio, median_us)
    return Baseline(timed=timed, ratio=ratio, improvement=improvement)


def quotients(baseline: TimedProcess, candidate: TimedProcess, clock: DeviceClock) -> list[float]:
    """Baseline over candidate, for each pair in which both samples count."""
    own = candidate.samples.counted(clock)
    return [t / own[pair] for pair, t in baseline.samples.counted(clock).items() if own.get(pair, 0) > 0 and t > 0]


def _slowed(results: Results) -> float:
    """How many times slower the first baseline was beside the candidate than alone; 1 where there is none."""
    processes = [group[1] for group in results.restarts if len(group) > 1 and group[1].alone]
    alone = [t for process in processes for t in process.alone]
    beside = [t for process in processes for t in kept(process, results.clock)]
    if len(alone) < 3 or not beside or not (usual := statistics.median(alone)):
        return 1.0
    return statistics.median(beside) / usual


def timing_of(plan: Plan, timings: Sequence[WorkloadTiming], clock: DeviceClock | None) -> Timing | None:
    """All workloads' times together; None unless each has some."""
    if clock is None or not timings or len(timings) != len(plan.workloads):
        return None
    against = timings[0].against
    found = [workload.baselines[against].ratio for workload in timings if against in workload.baselines]
    ratios = [ratio for ratio in found if ratio is not None]
    whole = bool(against) and len(ratios) == len(timings)
    return Timing(
        plan=plan.name,
        workloads=tuple(timings),
        against=against if whole else "",
        ratio=intervals.combined(ratios) if whole else None,
        clocks=clock.record(),
        seconds=sum(workload.seconds for workload in timings),
    )
