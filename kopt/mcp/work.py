"""Calls run in threads, so that the server stays responsive; they tell how far they are, and can be taken back."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
from anyio import from_thread, to_thread

from ingest.progress import Progress
from kopt.mcp.tool import Lane

Report = Callable[[float, str], Coroutine[Any, Any, None]]
"""Sends (a number that grows with each message, what is being done) to the client."""
T = TypeVar("T")

LIMITS: dict[Lane, int] = {"quick": 4, "sandbox": 2, "measure": 1}
"""Calls of a lane that run at once. Two measurements side by side would disturb each other."""
_EVERY = 0.2
"""Seconds between two messages about the same step."""


class Lanes:
    """The threads of a server."""

    def __init__(self) -> None:
        self._limits = {lane: anyio.CapacityLimiter(most) for lane, most in LIMITS.items()}

    async def run(self, lane: Lane, report: Report, work: Callable[[Progress], T]) -> T:
        """What `work` returns, from a thread. Where the client takes the call back, the work ends at its next step,
        and with it the processes that it started."""
        limit = self._limits[lane]
        if lane == "measure" and not limit.available_tokens:
            await report(0.0, "waiting for another measurement to end")
        return await to_thread.run_sync(lambda: work(_Progress(report)), limiter=limit)


class _Progress:
    """Called in the thread, with (step, done, total)."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._step, self._said, self._sent = "", 0.0, 0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Tell the client. Raises what ends the thread where the call was taken back."""
        from_thread.check_cancelled()
        now = time.monotonic()
        if step == self._step and now - self._said < _EVERY and done < total:
            return
        self._step, self._said = step, now
        self._sent += 1
        from_thread.run(self._report, float(self._sent), f"{step}: {done} of {total}" if total else step)
