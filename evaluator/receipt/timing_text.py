"""Times and their cross-checks as text, the same in the terminal and in benchmark.md.

Nothing is measured or judged here. Texts of the record (details, names) are passed on as they are. Reports of finished
runs are compared with what this renders, so a change of wording here makes old ones differ.
"""

from __future__ import annotations

import math

from evaluator.receipt.plan import Dims
from evaluator.receipt.timing import (
    AuditWitness,
    BackToBack,
    Baseline,
    Ceiling,
    CitedPeak,
    Clocks,
    Physics,
    Ratio,
    Row,
    SpanWitness,
    Summary,
    Timed,
    Timing,
    WorkloadTiming,
)
from evaluator.receipt.verdict import Improvement

_MILLI = 1000.0
_HALF_US = 30_000.0
"""Rows of at least this much have a half before them (`evaluator/timing/back_to_back.py`)."""


def significant(value: float, digits: int = 4) -> str:
    """A number with so many significant digits, never fewer than its whole part has, and at most six decimals."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])  # of the rounded number
    decimals = digits - 1 - exponent
    return f"{value:.{min(6, max(0, decimals))}f}"


def unit_of(us: float) -> str:
    """The unit in which a time is written: µs below 1 ms, else ms."""
    return "ms" if float(significant(us)) >= _MILLI else "µs"


def figure(us: float, unit: str) -> str:
    """A time in a unit, without the unit."""
    return significant(us / _MILLI if unit == "ms" else us)


def duration(us: float | None) -> str:
    """A time with its unit; N/A where there is none."""
    return "N/A" if us is None else f"{figure(us, unit_of(us))} {unit_of(us)}"


def times(value: float) -> str:
    """A ratio: three decimals, fewer of a large one."""
    return significant(value) if value >= 1 or value < 0.1 else f"{value:.3f}"


def interval(ratio: Ratio) -> str:
    """A ratio's 95 % interval."""
    return f"{times(ratio.ci_low)} to {times(ratio.ci_high)}"


def percent(part: float | None) -> str:
    """A part in per cent; N/A where there is none."""
    return "N/A" if part is None else f"{100 * part:.{1 if part >= 0.01 else 2}f}%"


def rate(value: float | None, unit: str) -> str:
    """A rate with its unit; N/A where there is none."""
    return "N/A" if value is None else f"{significant(value)} {unit}"


def size(count: int) -> str:
    """Bytes in the unit that fits."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{significant(count / factor)} {unit}"
    return f"{count} B"


def sizes(dims: Dims) -> str:
    """A workload's dims by name; empty where it has none."""
    return " ".join(f"{name}={length}" for name, length in sorted(dims.items()))


def baselines(workload: WorkloadTiming) -> list[tuple[str, Baseline]]:
    """The baseline that the improvement speaks of, then the others by name: a receipt that was read keeps no order."""
    return sorted(workload.baselines.items(), key=lambda found: (found[0] != workload.against, found[0]))


def kernels(workload: WorkloadTiming) -> list[Timed]:
    """All of a workload: the candidate first."""
    return [workload.candidate, *(baseline.timed for _, baseline in baselines(workload))]


def spread(summary: Summary) -> str:
    """All figures of a summary beside its median, in the median's unit."""
    unit = unit_of(summary.median_us)
    shown = {
        "p20": summary.p20_us,
        "p80": summary.p80_us,
        "min": summary.min_us,
        "max": summary.max_us,
        "std": summary.std_us,
    }
    said = ", ".join(f"{name} {figure(us, unit)}" for name, us in shown.items())
    return f"{said} {unit}; n {summary.n}"


def improvement(timing: Timing | None, found: Improvement) -> list[str]:
    """What an improvement says, its reasons below it where it is unstable."""
    if timing is None:
        return [str(found)]
    ratio = ""
    if timing.ratio is not None:
        over = "" if len(timing.workloads) == 1 else f", geometric mean of {len(timing.workloads)} workloads"
        ratio = (
            f"{times(timing.ratio.median)} times as fast as {timing.against}"
            f" (95% interval {interval(timing.ratio)}{over})"
        )
    if found is Improvement.NOT_COMPARED:
        return [f"{found}: its time was taken, and there is no baseline to compare it with"]
    if found is not Improvement.UNSTABLE:
        return [f"{found}: {ratio}"]
    reasons = [f"{where(timing, w)}{why}" for w in timing.workloads for why in w.unstable]
    head = [f"{found}: {reasons[0]}", *reasons[1:]] if reasons else [str(found)]
    return [*head, f"measured, and not to be relied on: {ratio}"] if ratio else head


def where(timing: Timing, workload: WorkloadTiming) -> str:
    """What a line about one workload begins with where there are several."""
    return f"{sizes(workload.dims)}: " if len(timing.workloads) > 1 else ""


def reached(workload: WorkloadTiming) -> str:
    """Rates of the candidate, and what they are of the floor and of the peak; empty where none is known."""
    said = []
    if workload.gb_per_s is not None:
        said.append(rate(workload.gb_per_s, "GB/s"))
    if workload.tflop_per_s is not None:
        said.append(rate(workload.tflop_per_s, "TFLOP/s"))
    if workload.of_ceiling is not None:
        said.append(f"{percent(workload.of_ceiling)} of the measured floor")
    if workload.of_peak is not None:
        said.append(f"{percent(workload.of_peak)} of the cited peak")
    return ", ".join(said)


def ceiling(found: Ceiling) -> str:
    """A measured floor in one line."""
    return (
        f"{duration(found.floor_us)} ({found.made_of}, {size(found.read_bytes)} read and"
        f" {size(found.written_bytes)} written, n {found.n})"
    )


def peak(found: CitedPeak) -> str:
    """A cited peak in one line, which ends with the citation."""
    return f"{rate(found.gb_per_s, 'GB/s')}; {found.citation}"


def drops(timed: Timed) -> str:
    """Which samples of a kernel do not count; empty where all do."""
    causes = [f"{timed.late} late"] if timed.late else []
    causes += [f"{timed.slow_clock} at a slow clock"] if timed.slow_clock else []
    turns = timed.late + timed.slow_clock + (0 if timed.summary is None else timed.summary.n)
    return f"{timed.name}: {' and '.join(causes)} of {turns} turns" if causes else ""


def spans(found: SpanWitness) -> str:
    """What the spans under the profiler say, in an old receipt."""
    if found.status == "not run":
        return _said("not run", found.detail)
    seen = f"{found.kernels} kernels and copies in {found.turns} watched turns"
    if found.status == "refuted":
        return f"{_said('refuted', found.detail)} ({seen}, {found.outside} of them outside the timed window)"
    held = ""
    if found.busy_us is not None and found.claim_us is not None:
        held = f"; they took {duration(found.busy_us)}, claimed were {duration(found.claim_us)}"
    return f"confirmed: {seen}, all inside the timed window{held}"


def audit(found: AuditWitness) -> str:
    """What the calls timed by kopt's own clock say."""
    if found.status == "not run":
        return _said("not run", found.detail)
    seen = f"{found.calls} calls in a row{' captured' if found.captured else ''}, {found.turns} times"
    if found.status == "refuted":
        return f"{_said('refuted', found.detail)} ({seen})"
    if found.per_call_us is not None and found.claim_us is not None:
        seen += f": {duration(found.per_call_us)} a call by kopt's own clock, {duration(found.claim_us)} claimed"
    return f"confirmed: {seen}" if found.status == "confirmed" else f"{_said(found.status, found.detail)} ({seen})"


def cross_checks(workload: WorkloadTiming) -> list[str]:
    """The cross-check of the device time, of an old receipt both, and what follows."""
    old = [] if workload.spans is None else [f"spans: {spans(workload.spans)}"]
    whole = "is confirmed" if workload.confirmed else "is not confirmed"
    return [*old, f"audit: {audit(workload.audit)}", f"the device time {whole}"]


def back_to_back(found: BackToBack | None) -> list[str]:
    """What calls without a pause take; nothing where there were none."""
    if found is None:
        return []
    said = [row(found.candidate)]
    if found.baseline is not None:
        said.append(row(found.baseline))
        if found.ratio is not None:
            said.append(f"so called, {times(found.ratio)} times as fast as {found.baseline.name}")
    return said


def row(found: Row) -> str:
    """One kernel's calls without a pause."""
    beside = found.per_call_us / found.alone_us
    clock = [f"clock down to {found.min_mhz} MHz"] if found.min_mhz else []
    held = [f"held back by {', '.join(found.throttled)}"] if found.throttled else []
    took = f"{found.name}: {duration(found.per_call_us)} a call, {times(beside)} times its median"
    halves = "behind as many others" if found.calls * found.per_call_us >= _HALF_US else "by the host"
    how = "captured" if found.captured else halves
    return "; ".join([took, f"{found.calls} calls in a row {how}", *clock, *held])


def _said(status: str, detail: str) -> str:
    return f"{status}: {detail}" if detail else status


def clocks(found: Clocks) -> str:
    """Clocks during the samples in one line."""
    if found.status == "not sampled":
        return _said("not sampled", found.detail)
    fixed = {"yes": "locked", "no": "not locked", "unknown": "not known whether locked"}[found.locked]
    held = f"held back by {', '.join(found.throttled)}" if found.throttled else "not held back"
    warm = f"; at most {found.temperature_c} °C" if found.temperature_c else ""
    return f"{found.min_mhz} to {found.max_mhz} MHz, median {found.median_mhz} MHz; {fixed}; {held}{warm}"


def overhead(workload: WorkloadTiming) -> str:
    """What a sample costs beside the call."""
    return (
        f"an empty pair of events reads {duration(workload.empty_us)}, not subtracted; before each turn"
        f" {size(workload.flush_bytes)} are written and a spin kernel runs for {duration(workload.spin_us)}"
    )


def noise(workload: WorkloadTiming) -> str:
    """The noise floor, and whether sampling came to an end; empty where there is nothing to compare with."""
    baseline = workload.baselines.get(workload.against)
    ratio = None if baseline is None else baseline.ratio
    if ratio is None:
        return ""
    ended = "narrower" if ratio.converged else "NOT narrower"
    return (
        f"{percent(ratio.noise)} of {workload.against}'s time; after {ratio.pairs} pairs in {len(ratio.restarts)}"
        f" restarts the interval is {ended} than 1%, or a few ticks of the clock"
    )


def physics(found: Physics) -> str:
    """Whether the time is possible."""
    if found.status == "not checked":
        return _said("not checked", found.detail)
    least = f"{size(found.bytes)} need at least {duration(found.least_us)} at the cited peak"
    least += f" if {size(found.l2_bytes)} of them lay in the L2 cache" if found.l2_bytes else ""
    took = f"a fifth of the turns took {duration(found.fastest_us)} or less"
    return _said(found.status, found.detail if found.status == "impossible" else "") + f": {least}; {took}"
