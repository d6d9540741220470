"""Two receipts of one candidate held against each other: what a replay found that the original did not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from evaluator.receipt.environment import Environment
from evaluator.receipt.findings import Trial
from evaluator.receipt.plan import Dims
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Ratio, Timing
from evaluator.receipt.timing_text import interval, times
from evaluator.scan.hazards import Severity

LEAST_APART = 0.01
"""Two ratios are told apart only where their intervals are further from each other than this part, and than the noise
floors: the part by which a candidate has to be faster to be called so."""


def differences(original: Receipt, again: Receipt) -> list[str]:
    """In what two receipts differ, one sentence each; empty where the replay confirms the original.

    Each begins with what kind of difference it is: `subject:` (not the same was measured, so that the rest proves
    nothing), `result:` (the same was measured and came out otherwise) or `environment:` (a possible reason).
    """
    return [
        *(f"subject: {text}" for text in _subject(original, again)),
        *(f"result: {text}" for text in _result(original, again)),
        *(f"environment: {text}" for text in _environment(original.environment, again.environment)),
    ]


def _subject(original: Receipt, again: Receipt) -> list[str]:
    pairs = {
        "the problem": (original.problem.hash, again.problem.hash),
        "the candidate's text": (original.candidate.hash, again.candidate.hash),
        "the seed": (original.seed, again.seed),
        "the plan's name": (original.plan.name, again.plan.name),
        "the device": (original.plan.device.partition(":")[0], again.plan.device.partition(":")[0]),
    }
    return [_changed(what, was[:16], now[:16]) for what, (was, now) in pairs.items() if was != now]


def _result(original: Receipt, again: Receipt) -> list[str]:
    found = _changes(
        {
            "the verdict": (original.verdict, again.verdict),
            "the improvement": (original.improvement, again.improvement),
        }
    )
    if original.timing is not None and again.timing is not None:
        found += _times(original.timing, again.timing)
    before, after = _trials(original), _trials(again)
    for name, trial in before.items():
        now = after.get(name)
        if now is None:
            found.append(f"{name} {_outcome(trial)}, and was not made again")
        elif now.passed != trial.passed:
            found.append(_changed(name, _outcome(trial), _outcome(now)))
    # A later kopt tries more: what passed there contradicts nothing.
    found += [f"{name} is new and failed" for name, trial in after.items() if name not in before and not trial.passed]
    hazards = {hazard.id for hazard in original.hazards}, {hazard.id for hazard in again.hazards}
    found += [f"the hazard {id} was not found again" for id in sorted(hazards[0] - hazards[1])]
    notes = {hazard.id for hazard in again.hazards if hazard.severity is Severity.NOTE}
    found += [f"the hazard {id} is new" for id in sorted(hazards[1] - hazards[0] - notes)]
    return found


def _times(original: Timing, again: Timing) -> list[str]:
    """Ratios that the replay does not confirm: each workload's to each baseline, and the mean over the workloads."""
    before, after = _ratios(original), _ratios(again)
    found = []
    for name, ratio in before.items():
        if name not in after:
            found.append(f"{name} was {_shown(ratio)}, and was not measured again")
        elif _apart(ratio, after[name]):
            found.append(_changed(name, _shown(ratio), _shown(after[name])))
    return found


def _ratios(timing: Timing) -> dict[str, Ratio]:
    found = {}
    for workload in timing.workloads:
        for name, baseline in workload.baselines.items():
            if baseline.ratio is not None:
                found[f"the ratio to {name}{_sizes(workload.dims)}"] = baseline.ratio
    if timing.ratio is not None and len(timing.workloads) > 1:
        found[f"the ratio to {timing.against} over all workloads"] = timing.ratio
    return found


def _apart(one: Ratio, other: Ratio) -> bool:
    lower, upper = sorted((one, other), key=lambda ratio: ratio.median)
    return upper.ci_low > lower.ci_high * (1 + max(LEAST_APART, one.noise, other.noise))


def _shown(ratio: Ratio) -> str:
    return f"{times(ratio.median)} ({interval(ratio)})"


def _environment(original: Environment, again: Environment) -> list[str]:
    pairs = {
        "device": (original.device_name, again.device_name),
        "driver": (original.driver, again.driver),
        "CUDA": (original.worker.cuda, again.worker.cuda),
        "nvcc": (original.nvcc, again.nvcc),
        "torch": (original.worker.torch, again.worker.torch),
        "triton": (original.worker.triton, again.worker.triton),
        "python": (original.worker.python, again.worker.python),
        "kopt": (original.kopt, again.kopt),
    }
    return _changes(pairs)


def _trials(receipt: Receipt) -> dict[str, Trial]:
    """The trials under names that do not depend on the order in which they were made."""
    seen, named = Counter[str](), dict[str, Trial]()
    for trial in receipt.correctness:
        name = f"output {trial.output} on {trial.distribution}{_sizes(trial.dims)}, repeat {trial.repeat}"
        seen[name] += 1
        named[name if seen[name] == 1 else f"{name}, call {seen[name]} of this kind"] = trial
    return named


def _outcome(trial: Trial) -> str:
    return "passed" if trial.passed else "failed"


def _sizes(dims: Dims) -> str:
    """A workload's dims in brackets; empty where it has none."""
    return f" ({', '.join(f'{name}={size}' for name, size in sorted(dims.items()))})" if dims else ""


def _changes(pairs: Mapping[str, tuple[str | None, str | None]]) -> list[str]:
    return [_changed(what, was, now) for what, (was, now) in pairs.items() if was != now]


def _changed(what: str, was: str | None, now: str | None) -> str:
    return f"{what} was {was or 'none'} and is {now or 'none'}"
