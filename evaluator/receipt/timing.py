"""Times as a receipt keeps them: every sample, what was made of them, and the cross-checks of them.

Times are in microseconds on the device unless a name says otherwise.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from evaluator.receipt.plan import Dims
from evaluator.receipt.verdict import Improvement
from kbs.common.canonical_json import Line, Seconds
from kbs.common.json_model import Record

Micros = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A time in microseconds."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Series(Record):
    """Every sample of one kernel, in the order in which it was made: one entry a sample in each field."""

    restart: tuple[int, ...] = ()
    """Number of the process, from 0."""
    pair: tuple[int, ...] = ()
    """Number of the pair within the restart: samples of one number had the same inputs."""
    us: tuple[Micros, ...] = ()
    """Device time between the two events, the empty pair's included."""
    enqueue_us: tuple[Micros, ...] = ()
    """Time that the host needed until the call had returned."""
    clock_mhz: tuple[int, ...] = ()
    """Clock of the multiprocessors right after the sample; 0 where NVML did not say."""
    dropped: tuple[Literal["", "late", "clock"], ...] = ()
    """Why a sample does not count: `late`, the host was slower than the spin kernel; `clock`, below 75 % of the highest
    clock seen. Empty for those that count."""

    @model_validator(mode="after")
    def _one_entry_a_turn(self) -> Self:
        lengths = {len(getattr(self, name)) for name in type(self).model_fields}
        if len(lengths) > 1:
            raise ValueError("the fields of a series differ in length")
        return self

    def kept(self) -> list[float]:
        """The times that count."""
        return [t for t, why in zip(self.us, self.dropped, strict=True) if not why]


class Summary(Record):
    """Times that count, summed up."""

    n: int = Field(ge=1)
    """How many."""
    median_us: Micros
    """Their median."""
    p20_us: Micros
    """A fifth is faster."""
    p80_us: Micros
    """A fifth is slower."""
    min_us: Micros
    """The fastest."""
    max_us: Micros
    """The slowest."""
    std_us: Micros
    """Standard deviation of the sample; 0 for one."""
    ci_low_us: Micros
    """Lower end of the 95 % interval of the median: restarts are resampled, then samples."""
    ci_high_us: Micros
    """Upper end of it."""


class Timed(Record):
    """One kernel's times, or why there are none."""

    name: Line
    """`candidate`, `eager`, `compile`, or what the user called it."""
    status: Literal["timed", "failed"]
    """`failed`: it has no times; `detail` says why."""
    detail: Line = ""
    """Why there are none, or what a reader should know."""
    flags: tuple[Line, ...] = ()
    """Settings that it ran under, such as `TF32 off`."""
    summary: Summary | None = None
    """None where it failed."""
    first_call_seconds: Seconds = 0.0
    """Longest first call of a process: what is compiled when it is called is compiled in it. No part of any time."""
    late: int = Field(default=0, ge=0)
    """Samples dropped since the host was slower than the spin kernel."""
    slow_clock: int = Field(default=0, ge=0)
    """Samples dropped for the device's clock."""
    series: Series = Series()
    """Every sample."""

    @model_validator(mode="after")
    def _timed_with_times(self) -> Self:
        if (self.status == "timed") != (self.summary is not None):
            raise ValueError("a kernel has a summary exactly if it was timed")
        return self

    @property
    def samples_us(self) -> list[float]:
        """The times that count."""
        return self.series.kept()


class Ratio(Record):
    """A baseline's time over the candidate's: above 1 the candidate is faster."""

    median: Positive
    """Median over all pairs; over several workloads, the geometric mean of their medians."""
    ci_low: Positive
    """Lower end of the 95 % interval: restarts are resampled, then pairs."""
    ci_high: Positive
    """Upper end of it."""
    pairs: int = Field(ge=1)
    """Pairs of samples on the same inputs."""
    restarts: tuple[Positive, ...]
    """Median of each restart."""
    noise: float = Field(ge=0, allow_inf_nan=False)
    """Noise floor: how far one process of the baseline was from the others, as a part of its time."""
    converged: bool
    """Whether the interval came to be narrower than 1 % of the median, or than a few ticks of the events, in time."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.ci_low <= self.median <= self.ci_high:
            raise ValueError("the median lies outside its interval")
        return self


class Baseline(Record):
    """What the candidate was compared with."""

    timed: Timed
    """Its times."""
    ratio: Ratio | None
    """Its time over the candidate's; None where it failed."""
    improvement: Improvement
    """What the ratio says."""


class SpanWitness(Record):
    """Spans of device work as the driver's profiling interface (CUPTI) saw them, held against the timed window. Old
    receipts have it; kopt's own clock took its place."""

    status: Literal["confirmed", "refuted", "not run"]
    """`refuted`: work lay outside the window, or the claimed time is shorter than the spans."""
    turns: int = Field(ge=0)
    """Samples that were watched; their times count for nothing else."""
    kernels: int = Field(ge=0)
    """Kernels and copies of the candidate that were seen in them."""
    outside: int = Field(ge=0)
    """Those of them that began before the window or ended after it."""
    busy_us: Micros | None
    """Median time in which at least one of them ran; None where none was seen."""
    claim_us: Micros | None
    """The candidate's claimed median that this was held against."""
    detail: Line = ""
    """What was wrong, or why it did not run."""


class AuditWitness(Record):
    """Samples of several calls on as many inputs, with no flush and no spin, timed by kopt's own clock."""

    captured: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether the device replayed the calls from a graph that was made before their inputs."""

    status: Literal["confirmed", "refuted", "not binding", "not run"]
    """`not binding`: the host or the resolution of the clock leaves room for anything."""
    calls: int = Field(ge=0)
    """Calls in a sample."""
    turns: int = Field(ge=0)
    """How many such samples; the median counts."""
    per_call_us: Micros | None
    """Wall time of a call, less that of a sample of the reference's process with no calls in it."""
    empty_us: Micros | None
    """Wall time of that empty sample."""
    claim_us: Micros | None
    """The candidate's claimed median."""
    allowed_us: Micros | None
    """What a call could take at that claim, if the host was the slower one; more refutes it."""
    detail: Line = ""
    """What was wrong, or why it does not bind or did not run."""


def quotient(baseline_us: float, candidate_us: float) -> float | None:
    """A baseline's time over a candidate's; None where one of them is zero."""
    return baseline_us / candidate_us if baseline_us > 0 and candidate_us > 0 else None


class Row(Record):
    """A kernel's calls one behind the other, on as many inputs; of long kernels, in two halves."""

    name: Line
    """`candidate`, or the baseline's name."""
    calls: int = Field(ge=1)
    """Calls in a half, or in all."""
    captured: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether the device replayed them from a graph."""
    per_call_us: Micros
    """Wall time of a call by kopt's own clock, less that of a sample with no calls: of a long kernel in the longer
    half, the median of three rows; else in the fastest of three."""
    alone_us: Positive
    """Its median over all timed samples of the same process, with the rest between them."""
    min_mhz: int = Field(default=0, ge=0)
    """Lowest clock of the multiprocessors meanwhile; 0 where NVML did not say."""
    throttled: tuple[Line, ...] = ()
    """Why the device held its clock back meanwhile."""


class BackToBack(Record):
    """Calls without a pause, by kopt's own clock: a ratio that they contradict is `unstable`."""

    candidate: Row
    """The candidate's row."""
    baseline: Row | None
    """The first baseline's; None where there was none, it failed, or there was no room for one that is long enough."""
    ratio: Positive | None
    """The baseline's time of a call over the candidate's; None where there is one row, or a time of zero."""

    @model_validator(mode="after")
    def _ratio_of_the_rows(self) -> Self:
        found = None if self.baseline is None else quotient(self.baseline.per_call_us, self.candidate.per_call_us)
        if self.ratio != found:
            raise ValueError("the ratio is not that of the rows")
        return self


class Clocks(Record):
    """The device's clocks and limits during the samples, sampled through NVML."""

    status: Literal["sampled", "not sampled"]
    """Whether NVML answered."""
    detail: Line = ""
    """Why not."""
    max_mhz: int = Field(default=0, ge=0)
    """Highest clock of the multiprocessors that was seen."""
    median_mhz: int = Field(default=0, ge=0)
    """Median clock."""
    min_mhz: int = Field(default=0, ge=0)
    """Lowest clock."""
    locked: Literal["yes", "no", "unknown"] = "unknown"
    """Whether the clock was held fixed. kopt never changes it."""
    throttled: tuple[Line, ...] = ()
    """Reasons for which the device held its clock back, such as `power cap`."""
    temperature_c: int = Field(default=0, ge=0)
    """Highest temperature, in degrees Celsius."""


class Figure(Record):
    """One measured ceiling."""

    name: Line
    """Such as `copy 512 MiB` or `bf16 matmul 8192`."""
    value: Positive
    """The figure."""
    unit: Literal["GB/s", "TFLOP/s", "us"]
    """Its unit; GB/s count bytes read and written."""
    us: Positive
    """Median time of a sample."""
    n: int = Field(ge=1)
    """Samples."""


class Ceiling(Record):
    """The fastest that this device moves the problem's bytes, measured in the same session by the same protocol."""

    floor_us: Positive
    """Median time of the fastest kernels that read and write as many bytes."""
    made_of: Line
    """Those kernels, such as `copy` or `copy, then read`."""
    read_bytes: int = Field(ge=0)
    """Bytes read by them."""
    written_bytes: int = Field(ge=0)
    """Bytes written by them."""
    n: int = Field(ge=1)
    """Samples."""


class CitedPeak(Record):
    """A peak rate of the device from a cited source."""

    product: Line
    """The product that the source speaks of."""
    gb_per_s: Positive
    """Peak memory bandwidth in 10⁹ bytes a second."""
    citation: Line
    """The line that says so."""


class Physics(Record):
    """The candidate's time held against what no device of this kind can do."""

    status: Literal["possible", "impossible", "not checked"]
    """`impossible`: fewer microseconds than the bytes need at the cited peak."""
    bytes: int = Field(default=0, ge=0)
    """Compulsory bytes: distinct inputs that the results depend on, and the results."""
    l2_bytes: int = Field(default=0, ge=0)
    """Size of the L2 cache, which may hold that much beforehand."""
    least_us: Micros | None = None
    """(bytes - L2) / peak."""
    fastest_us: Micros | None = None
    """The candidate's 20th percentile."""
    peak: CitedPeak | None = None
    """The peak; None where no source was found."""
    detail: Line = ""
    """Why it was not checked, or what was impossible."""


class WorkloadTiming(Record):
    """One workload's times."""

    dims: Dims
    """The workload."""
    candidate: Timed
    """The candidate's times."""
    baselines: dict[str, Baseline]
    """By name, in the order in which they were asked for."""
    improvement: Improvement
    """Against the first baseline that has times."""
    against: Line
    """Its name; empty where there is none."""
    unstable: tuple[Line, ...] = ()
    """Why nothing can be said, where the improvement is `unstable`."""
    spans: SpanWitness | None = None
    """Cross-check by the driver's profiling interface; None in all but old receipts."""
    audit: AuditWitness
    """Cross-check by kopt's own clock."""
    confirmed: bool
    """Whether kopt's own clock confirms the device time; in old receipts, whether one of the two does."""
    empty_us: Micros
    """Median time of a pair of events with nothing between; never subtracted."""
    flush_bytes: int = Field(ge=0)
    """Bytes written before each sample, so that the cache holds nothing of the call's."""
    spin_us: Micros
    """Length of the spin kernel before the candidate's samples."""
    read_bytes: int = Field(ge=0)
    """Bytes of the inputs and weights."""
    written_bytes: int = Field(ge=0)
    """Bytes of the results."""
    bytes: int = Field(ge=0)
    """Bytes that the bandwidth counts: declared ones, else the two sums above."""
    operations: int | None = Field(default=None, ge=0)
    """Declared operations; None where none were declared."""
    gb_per_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Bytes over the candidate's median."""
    tflop_per_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Declared operations over the candidate's median."""
    ceiling: Ceiling | None = None
    """Measured in the same session; None where it was not."""
    of_ceiling: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The floor's time over the candidate's median."""
    of_peak: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """The candidate's bandwidth over the cited peak."""
    physics: Physics
    """What is possible."""
    back_to_back: BackToBack | None = Field(default=None, exclude_if=lambda value: value is None)
    """Only of kernels of 1 ms and more, and only where their arguments have room; absent otherwise."""
    notes: tuple[Line, ...] = ()
    """What a reader should know."""
    seconds: Seconds
    """Time that the samples and the start of their processes took."""

    @model_validator(mode="after")
    def _rows_of_its_contenders(self) -> Self:
        rows = self.back_to_back
        if rows is not None and rows.candidate.name != self.candidate.name:
            raise ValueError("the candidate's row without a pause is not the candidate's")
        if rows is not None and rows.baseline is not None and rows.baseline.name not in self.baselines:
            raise ValueError("a row without a pause is of no baseline")
        return self


class Timing(Record):
    """All times of an evaluation."""

    plan: Literal["signal", "verdict"]
    """`signal` has no baselines and accepts nothing."""
    workloads: tuple[WorkloadTiming, ...] = Field(min_length=1)
    """One for each."""
    against: Line
    """The baseline that `ratio` speaks of; empty where there is none."""
    ratio: Ratio | None
    """Baseline's time over candidate's: the geometric mean over the workloads."""
    clocks: Clocks
    """Of the device during all samples."""
    seconds: Seconds
    """The workloads' together."""

    @model_validator(mode="after")
    def _ratio_of_the_workloads(self) -> Self:
        found = [w.baselines[self.against].ratio for w in self.workloads if self.against in w.baselines]
        medians = [r.median for r in found if r is not None]
        if self.ratio is None:
            if self.against:
                raise ValueError("a baseline is named, and there is no ratio to it")
            return self
        if len(medians) != len(self.workloads):
            raise ValueError("the ratio speaks of a baseline that not every workload has")
        mean = math.exp(math.fsum(map(math.log, medians)) / len(medians))
        if not math.isclose(mean, self.ratio.median, rel_tol=1e-9):
            raise ValueError("the ratio is not the geometric mean of the workloads'")
        return self
