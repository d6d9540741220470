"""Kernels called without a pause, candidate and baseline, by kopt's own clock.

A short kernel's calls are those of its cross-check. A long one's are many more, to see what a device at its power limit
makes of them. Between two timed samples inputs are drawn and results compared, so that a device has rest that it has
not in a program which calls a kernel again and again, nor under `triton.testing.do_bench`. Where a kernel draws more
power than the device may, its clock comes down after some tens of milliseconds; how far is a property of the kernel, so
that even the ratio of two kernels is another one then.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from evaluator.correctness.cases import Case, Cases
from evaluator.receipt.timing import BackToBack, Row, quotient
from evaluator.timing.clock_checks import CrossCheck
from evaluator.timing.cross_check import cross_check
from evaluator.timing.speed_of_light import traffic
from evaluator.timing.timed_process import FAILURES, TimedProcess
from kbs.common.errors import KoptError

LONG_US = 1000.0
"""Shorter kernels are not called so: what is between them in a program counts for more."""
HALF_US = 64_000.0
"""What each half of a row takes at the claim: clocks were seen to settle within 60 ms."""
LEAST_US = 30_000.0
"""With less in a half nothing is said."""
MOST_CALLS = 64
"""In a half."""
_MEMORY_PART = 1 / 3


@dataclass(eq=False)
class Rows:
    """The rows of one benchmark."""

    cases: Cases
    device: torch.device
    fresh: Iterator[Case]
    draw: random.Random
    found: BackToBack | None = None
    notes: list[str] = field(default_factory=list)
    long: bool = False
    """Whether the row is that of a long candidate."""

    def call(self, candidate: TimedProcess, places: int) -> None:
        """Measure the row of a long candidate. Raises as `cross_check` does.

        `places`: sets of memory that a sample's arguments are drawn from; with one, several calls' do not fit.
        """
        if statistics.median(candidate.samples.us) < LONG_US:
            return
        found = self._row(candidate, places)
        if found is None:
            self.notes.append(
                "not called without a pause: the device's memory has no room for so many calls' arguments"
            )
            return
        self.found, self.long = together(found, None), True

    def call_baseline(self, baselines: Sequence[TimedProcess], places: int) -> None:
        """The row of the first baseline, where the candidate has one: last of all, when the candidate's processes have
        gone. They can slow it no more, their memory is free, and its failure costs it none of its times."""
        if self.found is None or not self.long or not baselines:
            return
        try:
            self.found = together(self.found.candidate, self._row(baselines[0], places))
        except FAILURES as error:
            said = " ".join(str(error).split())[:500]
            self.notes.append(f"{baselines[0].name} was not timed without a pause: {said}")

    def add(self, candidate: TimedProcess, found: CrossCheck) -> None:
        """The candidate's cross-check is its row, where it has no longer one."""
        if not self.long and found.walls_us and found.per_call_us:
            self.found = together(_row_of(candidate, found), None)

    def add_baseline(self, baseline: TimedProcess, found: CrossCheck) -> None:
        """The first baseline's row, taken in the same way; of a long kernel there is one."""
        if self.found is None or self.long or not found.per_call_us:
            return
        if found.captured == self.found.candidate.captured:
            self.found = together(self.found.candidate, _row_of(baseline, found))
        else:
            self.notes.append(f"{baseline.name} could not be called as the candidate was: {found.uncaptured}")

    def _row(self, process: TimedProcess, places: int) -> Row | None:
        """None where there is no room for one that is long enough."""
        if places == 1:
            return None
        case = next(self.fresh)
        read, written = traffic(self.cases, case)
        torch.cuda.empty_cache()
        free = int(torch.cuda.mem_get_info(self.device)[0])
        calls = calls_in_half(statistics.median(process.samples.us), read + 2 * written, free)
        if not calls:
            return None
        try:
            return row(process, self.cases, self.fresh, calls, self.draw)
        except (KoptError, torch.OutOfMemoryError) as error:  # taken by others meanwhile: the times stand without it
            if isinstance(error, KoptError) and error.code != "out_of_memory":
                raise
            return None


def calls_in_half(claim_us: float, bytes_per_call: int, free_bytes: int) -> int:
    """How many calls there are in a half of a row; 0 where too few fit."""
    if MOST_CALLS * claim_us < LEAST_US:  # a baseline's process may claim nothing at all
        return 0
    fitting = int(free_bytes * _MEMORY_PART) // (2 * max(1, bytes_per_call))
    calls = min(math.ceil(HALF_US / claim_us), MOST_CALLS, fitting)
    return calls if calls * claim_us >= LEAST_US else 0


def row(process: TimedProcess, cases: Cases, fresh: Iterator[Case], calls: int, draw: random.Random) -> Row:
    """What a call takes by kopt's own clock in the longer half of a row; the median of three such rows.

    That is the second half, to which the first has brought the device, unless a kernel lets it rest in the first.
    Inputs and results are those of a cross-check. Raises as `cross_check` does.
    """
    with process.clock.watched() as seen:
        found = cross_check(
            process.kernel, cases, process.dims, fresh, calls, draw, before=calls, blamed=process.is_candidate
        )
    halves = [max(halves) for halves in zip(found.before_us, found.walls_us, strict=True)]
    whole = max(0.0, statistics.median(halves) - min(found.empty_us))
    return Row(
        name=process.name,
        calls=calls,
        per_call_us=whole / calls,
        alone_us=statistics.median(process.samples.us),
        min_mhz=min(seen.megahertz, default=0),
        throttled=seen.throttled(),
    )


def _row_of(process: TimedProcess, found: CrossCheck) -> Row:
    return Row(
        name=process.name,
        calls=found.calls,
        captured=found.captured,
        per_call_us=found.per_call_us,
        alone_us=statistics.median(process.samples.us),
    )


def together(candidate: Row, baseline: Row | None) -> BackToBack:
    """Both rows, and their ratio where there is one."""
    ratio = None if baseline is None else quotient(baseline.per_call_us, candidate.per_call_us)
    return BackToBack(candidate=candidate, baseline=baseline, ratio=ratio)
