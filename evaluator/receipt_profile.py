"""A receipt as a profile without counters: time, and bytes over time against the cited peak.

It is what can be said of a kernel that ncu has not seen, and everything made of it is called degraded.
"""

from __future__ import annotations

from decimal import Decimal

from evaluator.profile import DEVICE_NAME, Counter, Launch
from evaluator.receipt import Receipt
from kbs.errors import UsageError


def launch_of(receipt: Receipt) -> Launch:
    """The first workload's times. Raises `UsageError` (`receipt_without_times`)."""
    timing = receipt.timing
    summary = timing.workloads[0].candidate.summary if timing else None
    if timing is None or summary is None:
        raise UsageError(
            "the receipt has no times, so nothing says what bounds the kernel",
            code="receipt_without_times",
            hint="Run `kopt bench` on a GPU, or diagnose a profile of Nsight Compute.",
        )
    workload = timing.workloads[0]
    counters = {"gpu__time_duration.sum": _counter("receipt timing median_us", summary.median_us, "us")}
    if workload.of_peak is not None:
        counters["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] = _counter(
            "receipt timing of_peak: needed bytes over time, of the cited peak", workload.of_peak * 100, "%"
        )
    if workload.gb_per_s is not None:
        counters["dram__bytes.sum.per_second"] = _counter("receipt timing gb_per_s", workload.gb_per_s * 1e9, "B/s")
    name = receipt.environment.device_name
    counters[DEVICE_NAME] = Counter(DEVICE_NAME, name, "", None, None, "")
    return Launch(1, receipt.id, receipt.candidate.name, {}, counters)


def _counter(name: str, value: float, unit: str) -> Counter:
    amount = Decimal(repr(value))
    return Counter(name, repr(value), unit, amount, amount, unit)
