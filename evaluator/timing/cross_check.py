"""The cross-check by kopt's own clock: several calls on as many inputs, back to back, without a flush or a spin."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from evaluator.correctness.candidate import CandidateError, KernelProcess, fill
from evaluator.correctness.cases import Case, Cases
from evaluator.correctness.distributions import jitter
from evaluator.correctness.protocol import wrong_trial
from evaluator.correctness.reference import ReferenceProcess, _wait
from evaluator.sandbox.shared_buffers import SharedRow, contiguous, laid_out, shared_row
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.timed_process import WrongResultError

SAMPLES = 3
JUDGED = 4
"""Calls of a sample whose result is known, but for one alone of a problem larger than `LARGE_ROW` bytes."""
LARGE_ROW = 256 << 20


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
    capture: bool = False,
) -> CrossCheck:
    """Walls of cross-check samples of the candidate, and of samples without calls in the reference's process.

    The inputs of all calls are one draw's, each perturbed a little by itself, so that no call was made before. Of a few
    calls in each sample, chosen at random, the result is known; nothing tells them from the others. All are filled in
    after the candidate's process has its arguments, so that nothing it does before the sample begins is of use.
    `before` calls of the same kind come first, timed apart.

    With `capture` the calls are captured into a graph before they have inputs, and the sample replays it: the device's
    work alone, whatever the host needs. What no graph can hold, or what a replay gets wrong, is called by the host.
    Raises `WrongResultError` if the known result is wrong; with `blamed`, it becomes one of the candidate's trials.
    """
    lent = _Lent(kernel, cases, fresh, draw, calls, before)
    try:
        if capture:
            try:
                return lent.samples(None, capture=True)
            except _UncapturedError as error:
                why = str(error)
            return replace(lent.samples(dims if blamed else None, capture=False), uncaptured=why)
        return lent.samples(dims if blamed else None, capture=False)
    finally:
        lent.close()


class _UncapturedError(Exception):
    """No graph holds the calls, or its replay gave something else; the text says why."""


class _Lent:
    """The memory of a row of calls, and the samples that are taken on it."""

    def __init__(
        self, kernel: KernelProcess, cases: Cases, fresh: Iterator[Case], draw: random.Random, calls: int, before: int
    ) -> None:
        self.kernel, self.cases, self.fresh, self.draw = kernel, cases, fresh, draw
        self.calls, self.before = calls, before
        self.case = next(fresh)
        self.arguments: list[SharedRow] = []
        self.returned: list[SharedRow] = []
        try:
            arguments, returned = map(laid_out, self.case.values.specs), map(contiguous, cases.shape.returned)
            for rows, specs in ((self.arguments, arguments), (self.returned, returned)):
                for spec in specs:
                    rows.append(shared_row(spec, before + calls, kernel.device, draw))
        except BaseException:
            self.close()
            raise
        self.sets = _by_call(self.arguments, before + calls)
        self.results = _by_call(self.returned, before + calls)

    def close(self) -> None:
        for row in (*self.arguments, *self.returned):
            self.kernel.worker.forget([row.buffer])
            self.cases.reference.worker.forget([row.buffer])
            row.close()

    def samples(self, dims: dict[str, int] | None, *, capture: bool) -> CrossCheck:
        """`dims` of the candidate's trial, where a wrong result is to become one."""
        cases, kernel = self.cases, self.kernel
        count = self.before + self.calls
        built = {"tree": self.case.values.tree, "result": cases.shape.result, "capture": capture}
        returns = [row.message(self.before) for row in self.returned]
        none = {**built, "sets": [], "returns": returns, "count": self.calls, "empty": True}
        sets = [row.message() for row in self.arguments]
        returns = [row.message() for row in self.returned]
        every = {**built, "sets": sets, "returns": returns, "count": count, "empty": False}
        walls, empty, first = [], [], []
        for n in range(SAMPLES + capture):  # the first replay of a graph brings it to the device, and does not count
            self.case = self.case if n == 0 else next(self.fresh)
            judged = 1 if cases.bytes > LARGE_ROW else min(JUDGED, count)
            known = {at: cases.near(self.case) for at in self.draw.sample(range(count), judged)}
            if n == 0 or not capture:
                lend(cases.reference, self.returned, none)
            empty.append(time_calls(cases.reference, self.calls))
            if n == 0 or not capture:
                told = lend(kernel, [*self.arguments, *self.returned], every)
                if capture and not told["captured"]:
                    raise _UncapturedError(told["why"])
            fill_sets(self.sets, self.results, self.case, cases, known, self.draw)
            _wait(kernel.device)
            if self.before:
                first.append(time_calls(kernel, self.before))
            try:
                walls.append(time_calls(kernel, self.calls))
            except CandidateError as error:
                if capture:
                    raise _UncapturedError(f"its replay failed: {error}") from error
                raise
            try:
                for call, case in known.items():
                    outputs = [*self.results[call], *(self.sets[call][at] for at in cases.shape.written)]
                    _judge(cases, dims, case, outputs)
            except WrongResultError as error:
                if capture:
                    raise _UncapturedError(f"its replay gave other results: {error}") from error
                raise
        walls, empty = walls[int(capture) :], empty[int(capture) :]
        returned = len(self.returned)
        return CrossCheck(self.calls, tuple(walls), tuple(empty), returned, before_us=tuple(first), captured=capture)


def _by_call(rows: Sequence[SharedRow], count: int) -> list[tuple[torch.Tensor, ...]]:
    return list(zip(*(row.tensors for row in rows), strict=True)) if rows else [()] * count


def fill_sets(
    sets: Sequence[tuple[torch.Tensor, ...]],
    results: Sequence[tuple[torch.Tensor, ...]],
    case: Case,
    cases: Cases,
    known: dict[int, Case],
    draw: random.Random,
) -> None:
    """The inputs of the known cases for their calls, others near `case` for the rest, and nothing right where results
    go."""
    for number, one in enumerate(sets):
        for n, tensor in enumerate(one):
            if n in cases.shape.filled:
                fill(tensor, draw)
            elif number in known:
                tensor.copy_(known[number].values.tensors[n])
            else:
                tensor.copy_(jitter(case.values.tensors[n], cases.generator))
    for places in results:
        for tensor in places:
            fill(tensor, draw)


def lend(asked: KernelProcess | ReferenceProcess, rows: Sequence[SharedRow], message: dict[str, Any]) -> dict[str, Any]:
    """Lend rows of memory, and say what will be done on them; the answer tells whether it was captured."""
    return asked.ask("lend", asked.load_seconds, rows, **message)


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
