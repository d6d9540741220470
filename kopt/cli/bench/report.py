"""The report of one evaluation for a person: what came of it, how near it was, and what was not looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing_text import improvement
from evaluator.receipt.verdict import Verdict
from evaluator.scan.hazards import Severity
from kbs.common.visible_text import visible
from kopt.cli.bench import times as bench_times

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.receipt.findings import Trial
    from evaluator.receipt.problem import DeclaredTolerance

_LABEL = 13


def report(console: Console, receipt: Receipt, path: Path) -> None:
    """Print it: the verdict first, then the evidence. Names and messages in it are the candidate's own words."""
    from rich.text import Text

    good = receipt.verdict is Verdict.ACCEPTED
    against = receipt.problem.reference.name if receipt.problem.reference else "itself (no reference)"
    where = receipt.environment.device_name if receipt.environment.device != "cpu" else "the CPU"
    what = visible(f"{receipt.candidate.name} ({receipt.candidate.backend}) against {against}, on {where}")
    verdict = Text(str(receipt.verdict).upper(), style="bold green" if good else "bold red")
    console.print(verdict.append(f"  {what}", style="not bold default"))
    console.print(visible(receipt.reason), markup=False)
    console.print("")
    for label, lines in _sections(receipt, path):
        for n, line in enumerate(lines):
            console.print(f"{label if n == 0 else '':<{_LABEL}} {visible(line)}", markup=False)


def _sections(receipt: Receipt, path: Path) -> Iterator[tuple[str, list[str]]]:
    yield "improvement", improvement(receipt.timing, receipt.improvement)
    if receipt.timing is not None:
        yield from bench_times.sections(receipt.timing)
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
