"""Times in the JSON that `kopt bench` prints: what a receipt keeps of them, with one list of samples per kernel."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasPath, Field

from evaluator.receipt.timing import Baseline, Clocks, Ratio, Timing
from kbs.common.json_model import JsonModel


class SummaryData(JsonModel):
    """Times of one kernel, in microseconds on the device: flat, and without the samples that do not count."""

    name: str
    """`candidate`, `eager`, `compile`, or what the user called it."""
    status: Literal["timed", "failed"]
    """`failed`: it has no times; `detail` says why."""
    detail: str
    flags: list[str]
    """Settings that it ran under, such as `TF32 off`."""
    n: int = Field(0, validation_alias=AliasPath("summary", "n"))
    """Samples that count."""
    median_us: float | None = Field(None, validation_alias=AliasPath("summary", "median_us"))
    """None, like all figures below, where it failed."""
    p20_us: float | None = Field(None, validation_alias=AliasPath("summary", "p20_us"))
    p80_us: float | None = Field(None, validation_alias=AliasPath("summary", "p80_us"))
    min_us: float | None = Field(None, validation_alias=AliasPath("summary", "min_us"))
    max_us: float | None = Field(None, validation_alias=AliasPath("summary", "max_us"))
    std_us: float | None = Field(None, validation_alias=AliasPath("summary", "std_us"))
    ci_low_us: float | None = Field(None, validation_alias=AliasPath("summary", "ci_low_us"))
    """Lower end of the 95 % interval of the median."""
    ci_high_us: float | None = Field(None, validation_alias=AliasPath("summary", "ci_high_us"))
    """Upper end of it."""
    first_call_seconds: float
    """Longest first call of a process, in which what is compiled when it is called is compiled. No part of any time."""
    late: int
    """Samples dropped since the host was slower than the spin kernel."""
    slow_clock: int
    """Samples dropped for the device's clock."""
    samples_us: list[float]
    """Every sample that counts, in the order in which they were made."""


class BaselineData(SummaryData):
    """Times of one baseline, and what they say of the candidate."""

    ratio: Ratio | None
    """Its time over the candidate's; None where it failed."""
    improvement: str
    """What the ratio says: faster, same, slower, unstable or not_compared."""

    @classmethod
    def of(cls, baseline: Baseline) -> BaselineData:
        """From the receipt's."""
        times = SummaryData.from_domain(baseline.timed).model_dump()
        return cls(**times, ratio=baseline.ratio, improvement=baseline.improvement.value)


class TimingData(JsonModel):
    """Times of an evaluation. `candidate` and `baselines` are those of the first workload."""

    plan: Literal["signal", "verdict"]
    candidate: SummaryData
    baselines: dict[str, BaselineData]
    """By name."""
    ratio: Ratio | None
    """To the baseline `against`: the geometric mean over all workloads. None where nothing was compared."""
    against: str
    """Empty where there is no ratio."""
    improvement: str
    """faster, same, slower, unstable or not_compared."""
    workloads: list[dict[str, Any]]
    """All workloads: rows of the receipt (`kopt schema receipt`, WorkloadTiming) without their samples."""
    clocks: Clocks
    seconds: float
    """Time that the samples and the start of their processes took."""

    @classmethod
    def of(cls, timing: Timing | None, improvement: str) -> TimingData | None:
        """From the receipt's."""
        if timing is None:
            return None
        first = timing.workloads[0]
        hidden: dict[str, Any] = {"candidate": {"series"}, "baselines": {"__all__": {"timed": {"series"}}}}
        return cls(
            plan=timing.plan,
            candidate=SummaryData.from_domain(first.candidate),
            baselines={name: BaselineData.of(found) for name, found in first.baselines.items()},
            ratio=timing.ratio,
            against=timing.against,
            improvement=improvement,
            workloads=[workload.model_dump(mode="json", exclude=hidden) for workload in timing.workloads],
            clocks=timing.clocks,
            seconds=timing.seconds,
        )
