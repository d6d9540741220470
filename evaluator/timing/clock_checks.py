"""Cross-checks of a device time that the candidate's own process measured.

Several calls on as many inputs, back to back, timed by kopt's own clock, which no candidate can reach. They are
captured before the inputs are there, and replayed: the host has no part in it. Where no graph can hold them, the host
calls them, and may hide what the device does.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from evaluator.receipt.timing import AuditWitness

TOLERATED = 1.25
"""A call may take this much longer than claimed: back to back, calls share caches and memory with each other."""
REFUTES = 1.5
"""Captured calls that take this much longer refute a claim: 1.23 times was seen of an honest kernel whose results, of
the size of the L2 cache, are written back while the next calls run."""
SHORT_US = 50.0
"""Below this the host's share of a call hides the device's."""
LEAST_US = 1000.0
"""What a sample of several calls must take at the claim for the parent's clock to say something."""
MOST_CALLS = 1024
"""Of a sample."""
LAUNCH_US = 10.0
"""What a call of a candidate that waits for the device costs besides: its launch is not hidden under a spin kernel."""
HOST_VARIES = 1.5
"""How much longer than in its samples the host may need in a row of calls: 1.45 times was seen of an honest kernel."""
COPY_US = 10.0
"""What launching the copy of one result may cost the host."""
NODE_US = 2.0
"""What the device may need from one captured call to the next."""
_JITTER_US = 150.0
"""Part of a message's way that differs from one sample to the next."""


@dataclass(frozen=True)
class CrossCheck:
    """Wall times of rows of calls, in microseconds by kopt's own clock."""

    calls: int
    walls_us: Sequence[float]
    empty_us: Sequence[float]
    """With no calls, and as many results copied, all of them by one launch."""
    results: int = 0
    """How many a call returns."""
    why: str = ""
    """Why there are none."""
    before_us: Sequence[float] = ()
    """Of the calls that come before each sample, where there are some."""
    captured: bool = False
    """Whether the device replayed the calls, in place of a host that launched them."""
    uncaptured: str = ""
    """Why it did not, where it was to."""

    @property
    def per_call_us(self) -> float:
        """What a call takes, of the median sample, without the copies and the message. Of the fastest, a candidate that
        leaves calls out of one sample would gain."""
        return max(0.0, statistics.median(self.walls_us) - statistics.median(self.empty_us)) / self.calls

    @property
    def resolution(self) -> float:
        """What cannot be told from a call's time, as a part of it."""
        return _JITTER_US / self.calls / self.per_call_us if self.per_call_us else math.inf


def judge_cross_check(found: CrossCheck, claim_us: float, enqueue_us: float, *, waits: bool) -> AuditWitness:
    """Judge cross-check samples by their median. `waits`: the call itself waits for the device.

    What fits the device's claim alone confirms it. Where the calls were captured, anything else refutes it; else, what
    the host could not have needed either, launches of the copies among it. While the device works those launches cost
    nothing, so that they are no reason to confirm.
    """
    made = partial(
        AuditWitness, calls=found.calls, turns=len(found.walls_us), claim_us=claim_us, captured=found.captured
    )
    if found.why or not found.walls_us or not found.empty_us:
        said = found.why or "no audit turn was made"
        return made(status="not run", per_call_us=None, empty_us=None, allowed_us=None, detail=said)
    empty = statistics.median(found.empty_us)
    per_call = found.per_call_us
    if found.captured:
        fits, allowed = (part * claim_us + NODE_US + _JITTER_US / found.calls for part in (TOLERATED, REFUTES))
        measured = partial(made, per_call_us=per_call, empty_us=empty, allowed_us=allowed)
        if per_call > allowed:
            return measured(status="refuted", detail=_too_long(per_call, claim_us, allowed))
        if found.calls * claim_us < LEAST_US:
            return measured(status="not binding", detail=f"{found.calls} calls are too short for the clock")
        if per_call > fits:
            said = f"a call took {per_call:.1f} us by kopt's clock, more than the {fits:.1f} us that confirm"
            return measured(status="not binding", detail=said)
        return measured(status="confirmed")
    device = TOLERATED * claim_us + (LAUNCH_US if waits else 0.0)
    host = LAUNCH_US if waits else enqueue_us
    fits = device + (min(host, device) + _JITTER_US) / found.calls
    slowest = device if waits else max(device, HOST_VARIES * max(host, LAUNCH_US))
    allowed = slowest + COPY_US * found.results + (host + _JITTER_US) / found.calls
    status: Literal["confirmed", "refuted", "not binding"] = "confirmed"
    detail = ""
    if per_call > allowed:
        status = "refuted"
        detail = _too_long(per_call, claim_us, allowed)
    elif claim_us < SHORT_US:
        status, detail = "not binding", f"below {SHORT_US:.0f} us the launch hides what the device does"
    elif found.calls * claim_us < LEAST_US:
        status, detail = "not binding", f"{found.calls} calls are too short for the clock"
    elif per_call > fits:
        status = "not binding"
        detail = (
            f"a call took {per_call:.1f} us by kopt's clock, and {fits:.1f} us fit, unless the host was the slower one"
        )
    return made(status=status, per_call_us=per_call, empty_us=empty, allowed_us=allowed, detail=detail)


def _too_long(per_call: float, claim_us: float, allowed: float) -> str:
    return f"a call took {per_call:.1f} us by kopt's clock, and at {claim_us:.1f} us claimed {allowed:.1f} us fit"


def cross_check_calls(claim_us: float, bytes_per_call: int, free_bytes: int) -> int:
    """How many calls a cross-check sample has: long enough for the clock, and no more than memory allows; 0 where not
    even one fits beside a result of its own and one to copy."""
    wanted = min(MOST_CALLS, max(2, math.ceil(4 * LEAST_US / max(claim_us, 1.0))))
    fitting = free_bytes // 4 // max(1, bytes_per_call)
    return min(wanted, fitting) if fitting >= 2 else int(2 * bytes_per_call <= free_bytes)
