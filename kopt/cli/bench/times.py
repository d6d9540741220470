"""Times in the report of an evaluation, for a person at a terminal: sections, each a label and its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from evaluator.receipt import timing_text as words
from evaluator.receipt.timing import Baseline, Timing, WorkloadTiming


def sections(timing: Timing) -> Iterator[tuple[str, list[str]]]:
    """All that there is to say of times but the improvement, which stands above. Texts in it may be the candidate's."""
    yield "time", [line for workload in timing.workloads for line in _time(timing, workload)]
    yield "baselines", [line for workload in timing.workloads for line in _baselines(timing, workload)]
    yield "witnesses", _each(timing, words.witnesses)
    yield "back to back", _each(timing, lambda workload: words.back_to_back(workload.back_to_back))
    yield "clocks", [words.clocks(timing.clocks)]
    yield "dropped", _each(timing, _dropped)
    yield "overhead", _each(timing, lambda workload: [words.overhead(workload)])
    yield "noise floor", _each(timing, lambda workload: [words.noise(workload)])
    yield "physics", _each(timing, lambda workload: [words.physics(workload.physics)])
    yield "about times", _each(timing, lambda workload: list(workload.notes))


def _time(timing: Timing, workload: WorkloadTiming) -> Iterator[str]:
    summary = workload.candidate.summary
    where = words.where(timing, workload)
    if summary is None:
        yield f"{where}none: {workload.candidate.detail}"
        return
    baseline = workload.baselines.get(workload.against)
    against = f"; {_compared(baseline)}" if where and baseline is not None else ""
    yield f"{where}median {words.duration(summary.median_us)} ({words.spread(summary)}){against}"
    reached = words.reached(workload)
    if reached:
        yield f"{where}{reached}"
    if workload.ceiling is not None:
        yield f"{where}measured floor: {words.ceiling(workload.ceiling)}"
    if workload.physics.peak is not None:
        yield f"{where}cited peak: {words.peak(workload.physics.peak)}"


def _baselines(timing: Timing, workload: WorkloadTiming) -> Iterator[str]:
    where = words.where(timing, workload)
    width = max(map(len, workload.baselines), default=0)
    for name, baseline in words.baselines(workload):
        timed = baseline.timed
        flags = f" ({', '.join(timed.flags)})" if timed.flags else ""
        if timed.summary is None:
            yield f"{where}{name:<{width}}  failed: {timed.detail}{flags}"
            continue
        more = f"; {timed.detail}" if timed.detail else ""
        median = words.duration(timed.summary.median_us)
        yield f"{where}{name:<{width}}  {median}, {_compared(baseline)}{flags}{more}"


def _compared(baseline: Baseline) -> str:
    """What a baseline's ratio says of the candidate."""
    if baseline.ratio is None:
        return str(baseline.improvement)
    ratio = f"{words.times(baseline.ratio.median)} ({words.interval(baseline.ratio)})"
    return f"{baseline.improvement}: ratio to {baseline.timed.name} {ratio}"


def _dropped(workload: WorkloadTiming) -> list[str]:
    every = words.kernels(workload)
    return [words.drops(timed) for timed in every]


def _each(timing: Timing, lines: Callable[[WorkloadTiming], list[str]]) -> list[str]:
    """A section's lines, workload by workload; what all of them say alike is said once."""
    said = [[line for line in lines(workload) if line] for workload in timing.workloads]
    if all(found == said[0] for found in said):
        return said[0]
    return [
        f"{words.where(timing, workload)}{line}"
        for workload, found in zip(timing.workloads, said, strict=True)
        for line in found
    ]
