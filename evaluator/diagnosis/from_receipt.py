"""Turn a receipt into a profile without counters: time, and bytes over time against the cited peak.

This is what is known about a kernel that was not profiled with ncu; a diagnosis made from it is marked degraded.
"""

from __future__ import annotations

from decimal import Decimal

from evaluator.profiling.profile import DEVICE_NAME, Counter, Launch
from evaluator.receipt.receipt import Receipt
from kbs.common.errors import UsageError


def launch_of(receipt: Receipt, place: int = 0) -> Launch:
    """The times of one workload, by its place from 0. Raises `UsageError` (`receipt_without_times`)."""
    timing = receipt.timing
    summary = timing.workloads[place].candidate.summary if timing else None
    if timing is None or summary is None:
        raise UsageError(
            "the receipt has no times, so the bottleneck cannot be determined",
            code="receipt_without_times",
            hint="Run `kopt bench` on a GPU, or diagnose a profile of Nsight Compute.",
        )
    workload = timing.workloads[place]
    counters = {"gpu__time_duration.sum": _counter("receipt timing median_us", summary.median_us, "us")}
    if workload.of_peak is not None:
        counters["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] = _counter(
            "receipt timing of_peak: needed bytes over time, of the cited peak", workload.of_peak, "%", 100
        )
    if workload.gb_per_s is not None:
        counters["dram__bytes.sum.per_second"] = _counter("receipt timing gb_per_s", workload.gb_per_s, "B/s", 10**9)
    name = receipt.environment.device_name
    counters[DEVICE_NAME] = Counter(DEVICE_NAME, name, "", None, None, "")
    needed = workload.read_bytes, workload.written_bytes
    return Launch(1, receipt.id, receipt.candidate.name, {}, counters, needed=needed)


def _counter(name: str, value: float, unit: str, times: int = 1) -> Counter:
    amount = Decimal(repr(value)) * times
    return Counter(name, f"{amount:f}", unit, amount, amount, unit)
