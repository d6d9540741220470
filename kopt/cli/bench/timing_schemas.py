"""Times in the JSON that `kopt bench` prints: what a receipt keeps of them, with one list of samples a contender."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kopt.cli.data import Data

if TYPE_CHECKING:
    from evaluator.receipt.timing import Baseline, Physics, Ratio, Timed, Timing


class SummaryData(Data):
    """Times of one contender, in microseconds on the device."""

    name: str
    """`candidate`, `eager`, `compile`, or what the user called it."""
    status: Literal["timed", "failed"]
    """`failed`: it has no times; `detail` says why."""
    detail: str
    flags: list[str]
    """Settings that it ran under, such as `TF32 off`."""
    n: int
    """Turns that count."""
    median_us: float | None
    """None, like all figures below, where it failed."""
    p20_us: float | None
    p80_us: float | None
    min_us: float | None
    max_us: float | None
    std_us: float | None
    ci_low_us: float | None
    """Lower end of the 95 % interval of the median."""
    ci_high_us: float | None
    """Upper end of it."""
    first_call_seconds: float
    """Longest first call of a process, in which what is compiled when it is called is compiled. No part of any time."""
    late: int
    """Turns dropped since the host was slower than the spin kernel."""
    slow_clock: int
    """Turns dropped for the device's clock."""
    samples_us: list[float]
    """Every turn that counts, in the order in which they were made."""

    @classmethod
    def fields_of(cls, timed: Timed) -> dict[str, Any]:
        """The fields above, of a contender of the receipt."""
        figures = [name for name in SummaryData.model_fields if name.endswith("_us") and name != "samples_us"]
        summary = timed.summary
        return {
            **{name: getattr(timed, name) for name in ("name", "status", "detail", "late", "slow_clock")},
            "first_call_seconds": timed.first_call_seconds,
            **{name: None if summary is None else getattr(summary, name) for name in figures},
            "n": 0 if summary is None else summary.n,
            "flags": list(timed.flags),
            "samples_us": timed.series.kept(),
        }


class RatioData(Data):
    """A baseline's time over the candidate's: above 1 the candidate is faster."""

    median: float
    """Median over all pairs; over several workloads, the geometric mean of their medians."""
    ci_low: float
    """Lower end of the 95 % interval."""
    ci_high: float
    """Upper end of it."""
    pairs: int
    """Pairs of turns on the same inputs."""
    restarts: list[float]
    """Median of each restart."""
    noise: float
    """Noise floor: how far one process of the baseline was from the others, as a part of its time."""
    converged: bool
    """Whether the interval came to be narrower than 1 % of the median, or than a few ticks of the events, in time."""

    @classmethod
    def of(cls, ratio: Ratio | None) -> RatioData | None:
        """From the receipt's."""
        return None if ratio is None else cls(**ratio.model_dump(mode="json"))


class BaselineData(SummaryData):
    """Times of one baseline, and what they say of the candidate."""

    ratio: RatioData | None
    """Its time over the candidate's; None where it failed."""
    improvement: str
    """What the ratio says: faster, same, slower, unstable or not_compared."""

    @classmethod
    def of(cls, baseline: Baseline) -> BaselineData:
        """From the receipt's."""
        fields = cls.fields_of(baseline.timed)
        return cls(**fields, ratio=RatioData.of(baseline.ratio), improvement=baseline.improvement.value)


class ClocksData(Data):
    """The device's clocks during the turns."""

    status: Literal["sampled", "not sampled"]
    detail: str
    """Why they were not sampled."""
    max_mhz: int
    median_mhz: int
    min_mhz: int
    locked: Literal["yes", "no", "unknown"]
    """Whether the clock was held fixed. kopt never changes it."""
    throttled: list[str]
    """Reasons for which the device held its clock back."""
    temperature_c: int
    """Highest temperature, in degrees Celsius."""


class CeilingData(Data):
    """The fastest that this device moves the problem's bytes, measured in the same session by the same protocol."""

    floor_us: float
    """Median time of the fastest kernels that read and write as many bytes."""
    made_of: str
    """Those kernels."""
    read_bytes: int
    written_bytes: int
    n: int
    """Turns."""


class PeakData(Data):
    """A peak rate of the device from a cited source."""

    product: str
    gb_per_s: float
    """Peak memory bandwidth in 10⁹ bytes a second."""
    citation: str
    """The line that says so."""


class PhysicsData(Data):
    """The candidate's time held against what no device of this kind can do."""

    status: Literal["possible", "impossible", "not checked"]
    bytes: int
    """Compulsory bytes."""
    l2_bytes: int
    """Size of the L2 cache."""
    least_us: float | None
    """(bytes - L2) / peak."""
    fastest_us: float | None
    """The candidate's 20th percentile."""
    peak: PeakData | None
    detail: str

    @classmethod
    def of(cls, physics: Physics | None) -> PhysicsData | None:
        """From the receipt's."""
        return None if physics is None else cls(**physics.model_dump(mode="json"))


class TimingData(Data):
    """Times of an evaluation. `candidate` and `baselines` are those of the first workload."""

    plan: Literal["signal", "verdict"]
    candidate: SummaryData
    baselines: dict[str, BaselineData]
    """By name."""
    ratio: RatioData | None
    """To the baseline `against`: the geometric mean over all workloads. None where nothing was compared."""
    against: str
    """Empty where there is no ratio."""
    improvement: str
    """faster, same, slower, unstable or not_compared."""
    workloads: list[dict[str, Any]]
    """All workloads: rows of the receipt (`kopt schema receipt`, WorkloadTiming) without their samples."""
    clocks: ClocksData
    seconds: float
    """Time that the turns and the start of their processes took."""

    @classmethod
    def of(cls, timing: Timing | None, improvement: str) -> TimingData | None:
        """From the receipt's."""
        if timing is None:
            return None
        first = timing.workloads[0]
        hidden: dict[str, Any] = {"candidate": {"series"}, "baselines": {"__all__": {"timed": {"series"}}}}
        return cls(
            plan=timing.plan,
            candidate=SummaryData(**SummaryData.fields_of(first.candidate)),
            baselines={name: BaselineData.of(found) for name, found in first.baselines.items()},
            ratio=RatioData.of(timing.ratio),
            against=timing.against,
            improvement=improvement,
            workloads=[workload.model_dump(mode="json", exclude=hidden) for workload in timing.workloads],
            clocks=ClocksData(**timing.clocks.model_dump(mode="json")),
            seconds=timing.seconds,
        )
