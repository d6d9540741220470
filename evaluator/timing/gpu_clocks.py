"""The device's clocks, temperature and limits through NVML. They are read and never changed.

Source: NVML API reference, nvmlDeviceGetClockInfo, nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetTemperature.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluator.receipt.environment import load_nvml
from evaluator.receipt.timing import Clocks

SLOW = 0.75
"""Turns at less than this part of the highest clock seen do not count."""
WATCH_SECONDS = 0.005
"""Between two readings while something runs."""
_EVERY = 8
"""Reasons and temperature are asked for once in so many samples."""
_REASONS = {
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "temperature",
    0x040: "hardware temperature",
    0x080: "power brake",
    0x100: "display clocks",
}
"""Why a clock is held back; an idle GPU is no reason."""


@dataclass
class Watched:
    """What was read while something ran."""

    megahertz: list[int] = field(default_factory=list)
    reasons: int = 0

    def throttled(self) -> tuple[str, ...]:
        """Why the clock was held back."""
        return tuple(text for bit, text in _REASONS.items() if self.reasons & bit)


class DeviceClock:
    """Samples of one device."""

    def __init__(self, index: int, uuid: str = "", nvml: Any = None) -> None:
        """`uuid` finds the device where CUDA numbers devices otherwise than NVML does; `nvml` is for tests."""
        self.megahertz: list[int] = []
        self.why = ""
        self._reasons = 0
        self._celsius = 0
        self._locked = "unknown"
        self._nvml = nvml if nvml is not None else load_nvml()
        self._handle: Any = None
        if self._nvml is None:
            self.why = "NVML is not there"
            return
        try:
            self._handle = self._find(index, uuid)
            self._locked = self._is_locked()
        except self._nvml.NVMLError as error:
            self.why = f"NVML: {error}"

    def _find(self, index: int, uuid: str) -> Any:
        for spelling in (uuid, uuid.encode()) if uuid else ():
            with contextlib.suppress(self._nvml.NVMLError, TypeError):
                return self._nvml.nvmlDeviceGetHandleByUUID(spelling)
        return self._nvml.nvmlDeviceGetHandleByIndex(index)

    def _is_locked(self) -> str:
        """Whether the applications clock or a locked range holds it; NVML says neither for every device."""
        try:
            now = self._nvml.nvmlDeviceGetApplicationsClock(self._handle, self._nvml.NVML_CLOCK_SM)
            usual = self._nvml.nvmlDeviceGetDefaultApplicationsClock(self._handle, self._nvml.NVML_CLOCK_SM)
        except self._nvml.NVMLError:
            return "unknown"
        return "no" if now == usual else "yes"

    @property
    def locked(self) -> str:
        """`yes`, `no` or `unknown`: whether an applications clock other than the usual one is set."""
        return self._locked

    def sample(self) -> int:
        """The clock of the multiprocessors in MHz; 0 where NVML does not say."""
        if self._handle is None:
            return 0
        try:
            found = self._megahertz()
        except self._nvml.NVMLError as error:
            self._handle, self.why = None, f"NVML: {error}"
            return 0
        if len(self.megahertz) % _EVERY == 0:
            self._sample_limits()
        self.megahertz.append(found)
        return found

    def _megahertz(self) -> int:
        return int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def _sample_limits(self) -> None:
        """Why the clock is held back, and the temperature. Not every device says them: its clock counts without."""
        try:
            self._reasons |= int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
            celsius = int(self._nvml.nvmlDeviceGetTemperature(self._handle, self._nvml.NVML_TEMPERATURE_GPU))
            self._celsius = max(self._celsius, celsius)
        except self._nvml.NVMLError as error:
            self.why = f"NVML: {error}"

    @contextlib.contextmanager
    def watched(self) -> Iterator[Watched]:
        """Clock and limits every few milliseconds, in a thread, until the block ends; no part of `record`."""
        seen, over = Watched(), threading.Event()

        def read() -> None:
            while self._handle is not None:
                try:
                    seen.megahertz.append(self._megahertz())
                    seen.reasons |= int(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle))
                except self._nvml.NVMLError:
                    return  # what it said until then stands
                if over.wait(WATCH_SECONDS):
                    return

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            over.set()
            thread.join()

    def too_slow(self, megahertz: int) -> bool:
        """Whether a sample at this clock counts for nothing."""
        return 0 < megahertz < SLOW * max(self.megahertz, default=0)

    def record(self) -> Clocks:
        """What was seen."""
        if not self.megahertz:
            return Clocks(status="not sampled", detail=self.why or "no turn was made")
        return Clocks(
            status="sampled",
            detail=self.why,
            max_mhz=max(self.megahertz),
            median_mhz=int(statistics.median(self.megahertz)),
            min_mhz=min(self.megahertz),
            locked=self._locked,  # type: ignore[arg-type]  # one of its three words
            throttled=Watched(reasons=self._reasons).throttled(),
            temperature_c=self._celsius,
        )
