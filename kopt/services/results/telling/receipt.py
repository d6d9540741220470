"""A receipt as text: its verdict, and the evidence in sections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from evaluator.receipt import timing_text as words
from evaluator.receipt.findings import Trial
from evaluator.receipt.problem import DeclaredTolerance
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Baseline, Timing, WorkloadTiming
from evaluator.scan.hazards import Severity
from evaluator.source.languages import language_words
from kbs.common.visible_text import visible

_LABEL = 13
_LONG = (
    *("cross-checks", "back to back", "clocks", "dropped", "overhead", "noise floor", "physics", "about times"),
    *("told apart", "not tried", "really ran"),
)
"""Sections of the long report alone: what is needed to doubt a verdict, not to read it."""


def receipt_lines(receipt: Receipt, path: Path) -> Iterator[str]:
    """The verdict first, then what it is read by."""
    yield f"{str(receipt.verdict).upper()}  {judged(receipt)}"
    yield visible(receipt.reason)
    yield ""
    yield from section_lines(sections(receipt, path, long=False))


def judged(receipt: Receipt) -> str:
    """What was compared with what, and where. Names and messages in a receipt are the candidate's own words."""
    against = receipt.problem.reference.name if receipt.problem.reference else "itself (no reference)"
    where = receipt.environment.device_name if receipt.environment.device != "cpu" else "the CPU"
    language = language_words(receipt.candidate.source, receipt.candidate.backend)
    return visible(f"{receipt.candidate.name} ({language}) against {against}, on {where}")


def sections(receipt: Receipt, path: Path, *, long: bool) -> Iterator[tuple[str, list[str]]]:
    """(label, lines): all evidence, or what a verdict is read by."""
    return _sections(receipt, path) if long else _short(receipt, path)


def section_lines(found: Iterable[tuple[str, list[str]]]) -> Iterator[str]:
    """Each label beside the first of its lines."""
    for label, lines in found:
        for n, line in enumerate(lines):
            yield f"{label if n == 0 else '':<{_LABEL}} {visible(line)}"


def _sections(receipt: Receipt, path: Path) -> Iterator[tuple[str, list[str]]]:
    yield "improvement", words.improvement(receipt.timing, receipt.improvement)
    if receipt.timing is not None:
        yield from time_sections(receipt.timing)
    if receipt.problem.tolerance is not None:
        yield "tolerance", [_declared(receipt.problem.tolerance)]
    yield "inputs", list(_trials(receipt.correctness)) or ["no call came to an end"]
    if receipt.task_check and receipt.task_check.told_apart:
        told = receipt.task_check.told_apart
        yield "told apart", [f"{what}: {'yes' if seen else 'no'}" for what, seen in told.items()]
    yield "not tried", [f"{entry.what}: {entry.why}" for entry in receipt.not_tried]
    yield "hazards", [f"{h.id}: {h.evidence}" + _line(h.line) for h in receipt.hazards if h.severity is Severity.REJECT]
    yield "notes", [f"{h.id}: {h.evidence}" + _line(h.line) for h in receipt.hazards if h.severity is Severity.NOTE]
    yield (
        "sanitizers",
        [f"{run.tool}: {run.status}{': ' + run.detail if run.detail else ''}" for run in receipt.sanitizers],
    )
    yield "really ran", list(_ran(receipt))
    yield "not checked", list(receipt.not_checked)
    sealed = "sealed with your key" if receipt.seal else "not sealed"
    yield "receipt", [f"{path} ({sealed}; {receipt.seconds:.1f} s)"]


def _short(receipt: Receipt, path: Path) -> Iterator[tuple[str, list[str]]]:
    """The sections that a verdict is read by; of the inputs, those that a result was wrong on."""
    for label, lines in _sections(receipt, path):
        if label == "inputs":
            trials = receipt.correctness
            wrong = [line for line in lines if "  FAILED " in line]
            calls, kinds = len({trial.index for trial in trials}), len({trial.distribution for trial in trials})
            right = [f"all results of {calls} calls are right, on {kinds} kinds of inputs"] if trials else lines
            yield label, wrong or right
        elif label not in _LONG:
            yield label, lines


def _declared(tolerance: DeclaredTolerance) -> str:
    wider = {True: ", looser than the evaluator's own", False: "", None: ""}[tolerance.looser]
    return f"atol {tolerance.atol:g}, rtol {tolerance.rtol:g}, declared by the {tolerance.declared_by}{wider}"


def _line(number: int) -> str:
    return f" (line {number})" if number else ""


def _trials(trials: Iterable[Trial]) -> Iterator[str]:
    """One line for each distribution: calls, and the error nearest to its allowance."""
    ordered = sorted(trials, key=lambda trial: (sorted(trial.dims.items()), trial.distribution))
    for (dims, distribution), group in groupby(ordered, key=lambda trial: (trial.dims, trial.distribution)):
        found = list(group)
        failed = [trial for trial in found if not trial.passed]
        calls = len({trial.index for trial in found})
        sizes = " ".join(f"{name}={size}" for name, size in dims.items())
        head = f"{distribution:<20} {calls} {'call ' if calls == 1 else 'calls'} {sizes}".rstrip()
        if failed:
            worst = failed[0]
            said = worst.detail or f"element {worst.worst} is {worst.got:g}, right is {worst.expected:g}"
            yield f"{head}  FAILED {len(failed)} of {len(found)}: {said}"
            continue
        near = max((trial.nearness for trial in found), default=math.nan)
        yield f"{head}  ok, error at most {near:.0%} of the allowance" if math.isfinite(near) else f"{head}  ok, equal"


def _ran(receipt: Receipt) -> Iterator[str]:
    for kernel in receipt.kernels[:6]:
        took = f", {kernel.microseconds:.1f} µs" if kernel.microseconds is not None else ""
        yield f"{kernel.name[:80]} ({kernel.calls} x{took}{', of a library' if kernel.library else ''})"
    for operation in receipt.library_operations[:4]:
        yield f"{operation.name} ({operation.calls} x, {operation.share:.0%} of the problem's bytes)"


# --- times ----------------------------------------------------------------------------------------------------------


def time_sections(timing: Timing) -> Iterator[tuple[str, list[str]]]:
    """Everything about times except the improvement, which stands above. Texts in it may be the candidate's."""
    yield "time", [line for workload in timing.workloads for line in _time(timing, workload)]
    yield "baselines", [line for workload in timing.workloads for line in _baselines(timing, workload)]
    yield "cross-checks", _each(timing, words.cross_checks)
    yield "back to back", _each(timing, lambda workload: words.back_to_back(workload.back_to_back))
    yield "clocks", [words.clocks(timing.clocks)]
    yield "dropped", _each(timing, lambda workload: [words.drops(timed) for timed in words.kernels(workload)])
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
