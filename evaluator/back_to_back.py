"""Long kernels called without a pause, candidate and baseline: what a device at its power limit makes of them.

Between two timed turns inputs are drawn and results compared, so that a device has rest that it has not in a program
which calls a kernel again and again, nor under `triton.testing.do_bench`. Where a kernel draws more power than the
device may, its clock comes down after some tens of milliseconds; how far is a property of the kernel, so that even the
ratio of two kernels is another one then.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator

from evaluator.audit import audit_turns
from evaluator.cases import Case, Cases
from evaluator.racer import Racer
from evaluator.timing_records import BackToBack, Row, quotient

LONG_US = 1000.0
"""Shorter kernels are not called so: what is between them in a program counts for more."""
HALF_US = 64_000.0
"""What each half of a row takes at the claim: clocks were seen to settle within 60 ms."""
LEAST_US = 30_000.0
"""With less in a half nothing is said."""
MOST_CALLS = 64
"""In a half."""
_MEMORY_PART = 1 / 3


def calls_in_half(claim_us: float, bytes_per_call: int, free_bytes: int, most: int) -> int:
    """How many calls there are in a half of a row; 0 where too few fit. `most` is what a message holds of both."""
    if MOST_CALLS * claim_us < LEAST_US:  # a baseline's process may claim nothing at all
        return 0
    fitting = int(free_bytes * _MEMORY_PART) // (2 * max(1, bytes_per_call))
    calls = min(math.ceil(HALF_US / claim_us), MOST_CALLS, fitting, most // 2)
    return calls if calls * claim_us >= LEAST_US else 0


def row(racer: Racer, cases: Cases, fresh: Iterator[Case], calls: int, draw: random.Random) -> Row:
    """What a call takes by kopt's own clock in the longer half of a row; the median of three such rows.

    That is the second half, to which the first has brought the device, unless a contender lets it rest in the first.
    Inputs and results are those of an audit. Raises as `audit_turns` does.
    """
    with racer.clock.watched() as seen:
        found = audit_turns(
            racer.contender, cases, racer.dims, fresh, calls, draw, before=calls, blamed=racer.is_candidate
        )
    halves = [max(halves) for halves in zip(found.before_us, found.walls_us, strict=True)]
    whole = max(0.0, statistics.median(halves) - min(found.empty_us))
    return Row(
        name=racer.name,
        calls=calls,
        per_call_us=whole / calls,
        alone_us=statistics.median(racer.turns.us),
        min_mhz=min(seen.megahertz, default=0),
        throttled=seen.throttled(),
    )


def together(candidate: Row, baseline: Row | None) -> BackToBack:
    """Both rows, and their ratio where there is one."""
    ratio = None if baseline is None else quotient(baseline.per_call_us, candidate.per_call_us)
    return BackToBack(candidate=candidate, baseline=baseline, ratio=ratio)
