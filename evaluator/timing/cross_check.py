"""The cross-check by kopt's own clock: several calls on as many inputs, back to back, without a flush or a spin."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

from evaluator.correctness.candidate import KernelProcess, fill
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.distributions import jitter
from evaluator.correctness.protocol import wrong_trial
from evaluator.correctness.reference import ReferenceProcess, _wait
from evaluator.sandbox.shared_buffers import SharedTensor, contiguous, shared_tensor
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.timed_process import WrongResultError

SAMPLES = 3
"""The fastest of them counts: kopt's clock sees everything else that the host does."""


def most_calls(case: Case) -> int:
    """How many calls' arguments a message holds."""
    return max(2, 800 // (len(case.values.tensors) + len(case.native)))


def cross_check(
    kernel: KernelProcess,
    cases: Cases,
    dims: dict[str, int],
    fresh: Iterator[Case],
    calls: int,
    draw: random.Random,
    *,
    before: int = 0,
    blamed: bool = True,
) -> CrossCheck:
    """Walls of cross-check samples of the candidate, and of samples without calls in the reference's process.

    In each sample one call, chosen at random, has inputs whose result is known. The inputs of the others are perturbed
    a little, so that no call was made before. All are filled in after the candidate's process has its arguments, so
    that nothing it does before the sample begins is of use. `before` calls of the same kind come first, timed apart.
    Raises `WrongResultError` if the known result is wrong; with `blamed`, it becomes one of the candidate's trials.
    """
    case = next(fresh)
    shape = cases.shape
    specs = [contiguous(spec) for spec in case.values.specs]
    returns = [contiguous(spec) for spec in shape.returned]
    sets: list[list[SharedTensor]] = []
    results: list[list[SharedTensor]] = []
    try:
        for _ in range(before + calls):
            sets.append([shared_tensor(spec, kernel.device) for spec in specs])
            results.append([shared_tensor(spec, kernel.device) for spec in returns])
        arguments = [[t.message for t in one] for one in sets]
        places = [[t.message for t in one] for one in results]
        built = {"tree": case.values.tree, "result": shape.result}
        every = {**built, "sets": arguments, "returns": places, "empty": False}
        none = {**built, "sets": [], "returns": places[before:], "empty": True}
        lent = [t for one in (*sets, *results) for t in one]
        copied = [t for one in results[before:] for t in one]
        walls, empty, first = [], [], []
        for n in range(SAMPLES):
            case = case if n == 0 else next(fresh)
            known = draw.randrange(before + calls)
            lend_sets(cases.reference, copied, none)
            empty.append(time_calls(cases.reference, calls))
            lend_sets(kernel, lent, every)
            fill_sets(sets, results, case, cases, known, draw)
            _wait(kernel.device)
            if before:
                first.append(time_calls(kernel, before))
            walls.append(time_calls(kernel, calls))
            outputs = [t.tensor for t in results[known]] + [sets[known][n].tensor for n in shape.written]
            _judge(cases, dims if blamed else None, case, outputs)
        return CrossCheck(calls, tuple(walls), tuple(empty), len(returns), before_us=tuple(first))
    finally:
        for shared in (t for one in (*sets, *results) for t in one):
            kernel.worker.forget([shared.buffer])
            cases.reference.worker.forget([shared.buffer])
            shared.close()


def fill_sets(
    sets: list[list[SharedTensor]],
    results: list[list[SharedTensor]],
    case: Case,
    cases: Cases,
    known: int,
    draw: random.Random,
) -> None:
    for number, one in enumerate(sets):
        for n, shared in enumerate(one):
            if n in cases.shape.filled:
                fill(shared.tensor, draw)
            elif number == known:
                shared.tensor.copy_(case.values.tensors[n])
            else:
                shared.tensor.copy_(jitter(case.values.tensors[n], cases.generator))
    for one in results:
        for shared in one:
            fill(shared.tensor, draw)


def lend_sets(asked: KernelProcess | ReferenceProcess, lent: list[SharedTensor], message: dict[str, Any]) -> None:
    asked.ask("lend", asked.call_seconds, lent, **message)


def time_calls(asked: KernelProcess | ReferenceProcess, calls: int) -> float:
    """Microseconds from the question to the answer, by this process's clock, of so many calls on what was lent."""
    began = time.perf_counter()
    asked.ask("cross_check", asked.call_seconds, calls=calls)
    return (time.perf_counter() - began) * 1e6


def _judge(cases: Cases, dims: dict[str, int] | None, case: Case, outputs: list[Any]) -> None:
    """`dims` of the candidate's trial; None: a wrong result is no fault of the candidate's."""
    for n, output in enumerate(outputs):
        compared = cases.compare(case, n, output)
        if compared.passed:
            continue
        if dims is not None:
            wrong_trial(cases, dims, "given, one call of many", n, compared, "", moved=True)
        said = compared.detail or "it is outside its bound"
        raise WrongResultError(f"{cases.shape.names[n]} of one call of many: {said}")
