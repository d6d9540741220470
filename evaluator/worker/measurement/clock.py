"""Device time of one call, between two events on the default stream.

One sample: the cache is flushed, a spin kernel keeps the device busy while the host enqueues the rest, then come start
event, call, end event. Everything that measures is bound when this module is imported, before any candidate, so that
replacing a name of torch later changes nothing. The time is still only a claim, since the candidate's process measures
it; `evaluator/timing/clock_checks.py` compares it with independent evidence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

_Event: Any = getattr(torch._C, "_CudaEventBase", None)
_now = time.perf_counter
_record: Any = getattr(_Event, "record", None)
_elapsed: Any = getattr(_Event, "elapsed_time", None)
_query: Any = getattr(_Event, "query", None)
_wait_event: Any = getattr(_Event, "synchronize", None)
_sleep: Any = getattr(torch._C, "_cuda_sleep", None)
_set_stream: Any = getattr(torch._C, "_cuda_setStream", None)
_zero = torch._C.TensorBase.zero_
_default_stream = torch.cuda.default_stream
_EMPTY_PAIRS = 20
_EMPTY_SPIN_US = 100.0
_FEWEST_FLUSH = 64 << 20
"""Bytes written where the driver does not say how large the L2 cache is."""


class Clock:
    """Times calls in this process."""

    def __init__(self, device: torch.device, flush_bytes: int = 0) -> None:
        """`flush_bytes` 0: what `flush_of` says of the L2 cache that the driver reports."""
        properties = torch.cuda.get_device_properties(device)
        self.l2_bytes = int(getattr(properties, "L2_cache_size", 0))
        self.flush_bytes = flush_bytes or flush_of(self.l2_bytes)
        self.megahertz = int(getattr(properties, "clock_rate", 0)) / 1e3 or 2000.0
        self._stream = _default_stream(device)
        self._flushed = torch.empty(self.flush_bytes, dtype=torch.uint8, device=device)
        self._start = _Event(enable_timing=True)
        self._end = _Event(enable_timing=True)

    def empty_pairs(self) -> list[float]:
        """Microseconds between two events with nothing between them."""
        return [float(self.finish(self.sample(lambda: None, _EMPTY_SPIN_US)[0])["us"]) for _ in range(_EMPTY_PAIRS)]

    def sample(self, call: Callable[[], Any], spin_us: float) -> tuple[dict[str, Any], Any]:
        """(`enqueue_us` on the host and `late`; the call's result). Returns before the device has come to the end, so
        that copies can be enqueued behind it; `finish` tells the time.

        `late`: the spin kernel ended before the call had returned, so that the device may have waited for the host.
        """
        self._on_default_stream()
        _zero(self._flushed)
        _sleep(int(spin_us * self.megahertz))
        _record(self._start, self._stream)
        began = _now()
        result = call()
        enqueued = _now() - began
        late = bool(_query(self._start))
        self._on_default_stream()
        _record(self._end, self._stream)
        return {"enqueue_us": enqueued * 1e6, "late": late}, result

    def finish(self, measured: dict[str, Any]) -> dict[str, Any]:
        """The same with `us`, the time on the device, once the end event has passed."""
        _wait_event(self._end)
        return {**measured, "us": float(_elapsed(self._start, self._end)) * 1e3}

    def _on_default_stream(self) -> None:
        """Whatever stream the candidate left current, the events belong to the default one."""
        stream = self._stream
        _set_stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)


def flush_of(l2_bytes: int) -> int:
    """Bytes that are written before a sample, so that an L2 cache of this size holds nothing of the call's."""
    return max(2 * l2_bytes, _FEWEST_FLUSH)
