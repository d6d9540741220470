"""The budget of methods under the discipline `budget`: where a version's time goes, and what may be done about it.

Gaps are times, not utilizations: a kernel can saturate memory with bytes that it need not move.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from kbs.common.json_model import FrozenModel
from kbs.evidence.units import format_number
from loop.planning.methods import Axis
from loop.tools import Targets

AXES: tuple[Axis, ...] = ("memory", "compute", "latency")
MOST = 3
"""Methods of a version."""
MOST_OF_AXIS = 2
LEAST = 0.05
"""A gap below this part of the time gets no method."""


class AxisBudget(FrozenModel):
    """One axis of a version."""

    axis: Axis
    gap_us: float | None
    """Time that could be saved on it; None where that is not known."""
    methods: int
    """How many methods of this axis the next version may have."""
    line: str
    """The gap as shown arithmetic, or why it is not known."""


class Budget(FrozenModel):
    """What the next version may change."""

    version: int
    """The version that is changed."""
    median_us: float | None
    axes: tuple[AxisBudget, ...]
    most: int
    """Methods in all."""

    def allowed(self, axis: Axis) -> int:
        """Methods of an axis."""
        return next(one.methods for one in self.axes if one.axis == axis)

    def lines(self) -> list[str]:
        """The budget in words, an axis a line."""
        said = [f"{one.axis}: {one.line}: at most {one.methods} method{'s' * (one.methods != 1)}" for one in self.axes]
        return [*said, f"all axes together: at most {self.most} methods"]


def budget_of(version: int, median_us: float | None, targets: Targets | None, moved: int | None) -> Budget:
    """The budget for changing a version.

    `median_us`: its time; `moved`: bytes that it read from and wrote to device memory, None where they were not
    counted. Gaps: memory = (bytes moved - compulsory bytes) / bandwidth; compute = max(0, time of the operations - time
    of the bytes); latency = time - the longer of the two. Where nothing is known, an axis has its full share.
    """
    needed = _needed(median_us, targets)
    if needed is None:
        why = "no time was taken" if median_us is None else "the times of bytes and operations are UNKNOWN (step 0)"
        each = (AxisBudget(axis=axis, gap_us=None, methods=MOST_OF_AXIS, line=f"not known: {why}") for axis in AXES)
        return Budget(version=version, median_us=median_us, axes=tuple(each), most=MOST)
    time, bytes_us, operations_us, compulsory = needed
    over = max(0.0, time - max(bytes_us, operations_us))
    gaps: dict[Axis, float | None] = {
        "memory": None if moved is None else max(0.0, (moved - compulsory) / compulsory * bytes_us),
        "compute": max(0.0, operations_us - bytes_us),
        "latency": over,
    }
    lines: dict[Axis, str] = {
        "memory": "not counted; at most the gap of latency"
        if moved is None
        else f"({moved:,} B - {compulsory:,} B) at the cited bandwidth = {_us(gaps['memory'])}",
        "compute": f"max(0, {_us(operations_us)} - {_us(bytes_us)}) = {_us(gaps['compute'])}",
        "latency": f"{_us(time)} - max({_us(operations_us)}, {_us(bytes_us)}) = {_us(over)}",
    }
    # Without counters nothing tells needless bytes from waiting: both are in what is above the floor.
    weights = {axis: over if gap is None else gap for axis, gap in gaps.items()}
    methods = shared({axis: gap if gap >= LEAST * time else 0.0 for axis, gap in weights.items()})
    axes = tuple(
        AxisBudget(axis=axis, gap_us=gaps[axis], methods=methods[axis], line=lines[axis] + _small(weights[axis], time))
        for axis in AXES
    )
    return Budget(version=version, median_us=median_us, axes=axes, most=sum(methods.values()))


def shared(gaps: Mapping[Axis, float]) -> dict[Axis, int]:
    """Methods by axis: `MOST` in proportion to the gaps, at most `MOST_OF_AXIS` each, none for a gap of 0.

    What whole numbers leave over goes to the largest remainder.
    """
    total = sum(gaps.values())
    quota = {axis: MOST * gap / total if total else 0.0 for axis, gap in gaps.items()}
    found = {axis: min(MOST_OF_AXIS, int(part)) for axis, part in quota.items()}
    while sum(found.values()) < MOST:
        open_ = [axis for axis in gaps if gaps[axis] > 0 and found[axis] < MOST_OF_AXIS]
        if not open_:
            break
        found[max(open_, key=lambda axis: quota[axis] - found[axis])] += 1
    return found


def _needed(median_us: float | None, targets: Targets | None) -> tuple[float, float, float, int] | None:
    """(time, time of the bytes, time of the operations, compulsory bytes); None where one is not known."""
    if not median_us or targets is None or not targets.bytes:
        return None
    if targets.bytes_us is None or targets.operations_us is None:
        return None
    return median_us, targets.bytes_us, targets.operations_us, targets.bytes


def _small(gap: float, time: float) -> str:
    return "" if gap >= LEAST * time else f", below {LEAST:.0%} of {_us(time)}"


def _us(value: float | None) -> str:
    return f"{format_number(Decimal(repr(value or 0.0)), 4)} µs"
