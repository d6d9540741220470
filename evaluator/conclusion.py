"""The conclusions of an evaluation: its verdict, its improvement, and what it does not say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaluator.receipt import statistics as intervals
from evaluator.receipt.findings import UNSUPPORTED, Findings, SanitizerRun, TaskCheck
from evaluator.receipt.plan import Dims, SeedOrigin
from evaluator.receipt.timing import Timing
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.request import Request
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.scan.hazards import Severity
from evaluator.source.forms import Backend, Recognised


def verdict(
    found: Findings,
    task: TaskCheck | None,
    sanitizers: Sequence[SanitizerRun],
    lost: WorkerLostError | None,
    unplaced: str,
) -> tuple[Verdict, str]:
    """(the verdict, its main reason). `lost`: the candidate's process ended; `unplaced`: weights without a place."""
    rejects = [h for h in found.hazards if h.severity is Severity.REJECT]
    if rejects:
        where = f" (line {rejects[0].line})" if rejects[0].line else ""
        return Verdict.CHEATING, f"{rejects[0].id}: {rejects[0].evidence}{where}"
    if task is not None and task.refused:
        return Verdict.TASK_REFUSED, "the problem is passed without solving it: " + "; ".join(task.reasons)
    if lost is not None:
        return (Verdict.TIMEOUT if lost.kind == "timeout" else Verdict.CRASHED), lost.detail
    if found.failure is not None and found.failure[0] != UNSUPPORTED:
        stage, words = found.failure
        return (Verdict.COMPILE_ERROR if stage == "compile" else Verdict.CRASHED), words
    if unplaced:
        return Verdict.INCORRECT, unplaced
    failed = [t for t in found.trials if not t.passed]
    if failed:
        worst = failed[0]
        detail = worst.detail or f"{worst.got:g} where {worst.expected:g} is right"
        sizes = ", ".join(f"{name}={n}" for name, n in worst.dims.items()) if worst.dims != found.trials[0].dims else ""
        where = f" at {sizes}" if sizes else ""
        return Verdict.INCORRECT, f"{worst.output} on {worst.distribution} inputs{where}: {detail}"
    unsound = [s for s in sanitizers if s.status == "failed"]
    if unsound:
        return Verdict.INCORRECT, f"{unsound[0].tool}: {unsound[0].detail}"
    if found.failure is not None:
        return Verdict.NOT_SUPPORTED_HERE, found.failure[1]
    calls = len({t.index for t in found.trials})
    refused = f", though it raises at {found.raised_at}" if found.raised_at else ""
    where = " at this size only" if found.at_this_size_only else refused
    if found.only_with:
        where += (" and" if where else "") + f" with this value of {' and '.join(found.only_with[:3])} only"
    if any(hazard.id == "weights_cached" for hazard in found.hazards):
        where += (" and" if where else "") + " with its first weights only"
    return Verdict.ACCEPTED, f"right in all {calls} calls{where}, and nothing speaks against it"


def improvement(found: Verdict, timing: Timing | None) -> Improvement:
    """Over all workloads. What is not accepted is not faster, whatever its time."""
    if timing is None:
        return Improvement.NOT_TIMED
    if found is not Verdict.ACCEPTED:
        return Improvement.UNSTABLE
    each = intervals.together([workload.improvement for workload in timing.workloads])
    if timing.ratio is None:
        return Improvement.UNSTABLE if each is Improvement.UNSTABLE else Improvement.NOT_COMPARED
    return Improvement.SAME if each is Improvement.FASTER and timing.ratio.ci_low <= 1 else each


def not_checked(
    request: Request,
    recognised: Recognised,
    origin: SeedOrigin,
    workloads: Sequence[Dims],
    times: Timing | str,
    sanitizers: Sequence[SanitizerRun],
    workers: Sequence[Worker],
) -> Iterator[str]:
    """What a reader may miss in a receipt, in sentences. `times`: why there are none, where it is text."""
    timing = None if isinstance(times, str) else times
    if request.device == "cpu":
        yield "speed: nothing is timed on the CPU"
        if recognised.backend is Backend.TRITON:
            yield "the compiled kernel: Triton's interpreter ran it, with neither its compiler nor a GPU"
    else:
        if timing is None:
            yield f"speed: {times or 'what is not accepted is not timed'}"
        elif request.plan == "signal":
            yield "speed against anything: a signal times the kernel alone, in one process, and accepts nothing"
        elif not timing.against:
            yield "speed against anything: there is no baseline with times"
        if not sanitizers:
            yield "races and memory errors by compute-sanitizer: --sanitize asks for them"
    if not request.vary and len(workloads) == 1:
        yield "other sizes: --vary and --workloads ask for them"
    if recognised.oracle == "original kernel":
        yield "the kernel's meaning: there is no reference, so it is its own oracle"
    if origin != "secret":
        yield "secrecy of the inputs: their seed was given"
    layers = [layer.name for worker in workers[:1] for layer in worker.layers if not layer.applied]
    if layers:
        yield "isolation: not in force were " + ", ".join(layers)
