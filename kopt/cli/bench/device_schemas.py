"""What `kopt bench ceilings` and `kopt bench noise` print under `data`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kopt.cli.data import Data

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evaluator.noise import NoiseRun
    from evaluator.timing.ceilings import Ceilings


class CeilingsData(Data):
    """`kopt bench ceilings`"""

    device: str
    driver: str
    torch: str
    """PyTorch, whose kernels were measured."""
    cuda: str
    created: str
    l2_bytes: int
    empty_us: float
    """Median time of a pair of events with nothing between."""
    figures: list[dict[str, Any]]
    """name, value, unit (GB/s, TFLOP/s or us), us (median time), n (turns)."""
    clocks: dict[str, Any]
    path: str
    """Where they are kept."""

    @classmethod
    def of(cls, found: Ceilings, path: Path) -> CeilingsData:
        """From what was measured and where it is kept."""
        content = found.model_dump(mode="json", exclude={"schema_version", "kind"})
        return cls(**content, path=str(path))


class NoiseData(Data):
    """`kopt bench noise`"""

    runs: list[dict[str, Any]]
    """run, improvement, ratio (median, ci_low, ci_high, noise …), median_us, turns, seconds, turn_seconds."""
    wrong: int
    """Runs that called a difference where there is none."""
    largest_noise: float
    """Largest noise floor of a run, as a part of the time."""

    @classmethod
    def of(cls, found: Sequence[NoiseRun]) -> NoiseData:
        """From all runs."""
        return cls(
            runs=[run.model_dump(mode="json") for run in found],
            wrong=sum(run.improvement in ("faster", "slower") for run in found),
            largest_noise=max((run.ratio.noise for run in found), default=0.0),
        )
