"""The data of a run's pictures. `kopt.services.plots.run` draws them; only there is matplotlib used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.pages.artifacts import VersionFiles, targets


@dataclass(frozen=True)
class Point:
    """One version's time."""

    version: int
    parent: int | None
    median_us: float
    low_us: float
    """Lower bound of the median's 95 % interval."""
    high_us: float
    kept: bool
    methods: tuple[str, ...]


@dataclass(frozen=True)
class Drawing:
    """Everything that is drawn, without versions that have no time."""

    title: str
    points: tuple[Point, ...]
    floor_us: float | None
    target_us: float | None
    bytes: int | None
    operations: int | None
    rates: tuple[tuple[str, str, float], ...]
    """(metric id, citation line, rate in base units a second) of the cited peaks."""


Painter = Callable[[Drawing], dict[str, bytes]]
"""Returns the bytes of each picture by name; none if matplotlib is not installed."""


def drawing(folder: RunFolder, record: RunRecord, state: RunState, files: Mapping[int, VersionFiles]) -> Drawing:
    """The data to draw of a run."""
    found = targets(folder)
    points = []
    for version in state.versions:
        receipt = files[version.number].receipt
        summary = receipt.timing.workloads[0].candidate.summary if receipt and receipt.timing else None
        if summary is not None:
            points.append(
                Point(
                    version.number, version.parent, summary.median_us, summary.ci_low_us, summary.ci_high_us,
                    version.kept, version.methods,
                )
            )  # fmt: skip
    rates = [
        (spec.metric, spec.line, float(spec.value))
        for spec in (found.specs if found else ())
        if spec.value is not None and spec.unit.endswith("per second")
    ]
    return Drawing(
        record.id,
        tuple(points),
        found.floor_us if found else None,
        found.target_us if found else None,
        found.bytes if found else None,
        found.operations if found else None,
        tuple(rates),
    )
