"""A device that NVML knows, and kernels whose times are made up."""

from __future__ import annotations

from typing import Any, cast

from evaluator.timing.gpu_clocks import DeviceClock
from evaluator.timing.timed_process import TimedProcess


class NvmlError(Exception):
    """What NVML raises."""


class Nvml:
    """NVML with one device. Functions named in `broken` raise; `clocks` are told one after the other, the last for
    good."""

    NVMLError = NvmlError
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *clocks: int, **changes: Any) -> None:
        self.clocks = list(clocks) or [1980]
        self.reasons: list[int] = changes.get("reasons", [1])
        self.celsius: list[int] = changes.get("celsius", [40])
        self.applications: tuple[int, int] = changes.get("applications", (1980, 1980))
        self.uuids: tuple[str | bytes, ...] = changes.get("uuids", ())
        self.broken: set[str] = set(changes.get("broken", ()))
        self.calls: list[tuple[str, Any]] = []

    def _called(self, name: str, asked: Any = None) -> None:
        self.calls.append((name, asked))
        if name in self.broken:
            raise NvmlError(f"{name} is not supported")

    def nvmlDeviceGetHandleByUUID(self, uuid: str | bytes) -> str:
        self._called("nvmlDeviceGetHandleByUUID", uuid)
        if not any(type(uuid) is type(known) for known in self.uuids):
            raise TypeError("another spelling is wanted")
        if uuid not in self.uuids:
            raise NvmlError("not found")
        return "by uuid"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        self._called("nvmlDeviceGetHandleByIndex", index)
        return f"by index {index}"

    def nvmlDeviceGetApplicationsClock(self, handle: str, kind: int) -> int:
        self._called("nvmlDeviceGetApplicationsClock", (handle, kind))
        return self.applications[0]

    def nvmlDeviceGetDefaultApplicationsClock(self, handle: str, kind: int) -> int:
        self._called("nvmlDeviceGetDefaultApplicationsClock", (handle, kind))
        return self.applications[1]

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        self._called("nvmlDeviceGetClockInfo", (handle, kind))
        return self._next(self.clocks)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        self._called("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return self._next(self.reasons)

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        self._called("nvmlDeviceGetTemperature", (handle, sensor))
        return self._next(self.celsius)

    @staticmethod
    def _next(values: list[int]) -> int:
        return values.pop(0) if len(values) > 1 else values[0]


def clock(*megahertz: int) -> DeviceClock:
    """A clock that has been sampled so."""
    made = DeviceClock(0, nvml=Nvml(*megahertz))
    for _ in megahertz:
        made.sample()
    return made


def process(
    name: str = "candidate", us: tuple[float, ...] = (100.0,) * 4, restart: int = 0, **changes: Any
) -> TimedProcess:
    """A kernel with these times, in pairs of one number with the others'; `changes` are lists of its turns, or
    fields of its own."""
    made = TimedProcess(name, restart, cast(Any, None), cast(Any, None), clock(1980), {"n": 64})
    samples = made.samples
    samples.us = list(us)
    samples.pair = list(range(len(us)))
    samples.enqueue_us = [20.0] * len(us)
    samples.clock_mhz = [1980] * len(us)
    samples.late = [False] * len(us)
    made.empty_us = [1.5, 1.25, 1.75]
    made.first_call_seconds = 0.5 + restart
    made.flush_bytes, made.l2_bytes = 120 << 20, 60 << 20
    made.spin_us = 110.0 + restart
    for field, value in changes.items():
        setattr(samples if hasattr(samples, field) else made, field, value)
    return made
