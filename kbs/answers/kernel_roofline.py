"""Places one kernel under a roofline, with every step shown: bytes, operations, intensity, floor and target.

The model is that of `kbs.hardware.roofline`; here bytes and operations are those of a reference, and a roof can be a
cited peak
or what was measured on the device. A roof that is not known is not guessed: what would need it is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from kbs.answers.model import Step
from kbs.common.json_model import JsonDataclass, JsonNumber
from kbs.evidence.units import format_number, format_seconds
from kbs.hardware.roofline import MEMORY_BOUND

NEAR = Decimal("0.9")
"""The part of a ceiling that is aimed at."""
_LINE = 300
"""Characters of one sum; longer ones are added up in parts."""


@dataclass(frozen=True)
class Term:
    """A number of bytes or operations, as a product."""

    name: str
    """What it counts: `read input x`, `mm, fp32, tensor`."""
    factors: tuple[int, ...]
    expression: str = ""
    """As it was declared; empty if it was counted."""

    @property
    def amount(self) -> int:
        """The product."""
        return math.prod(self.factors)


@dataclass(frozen=True)
class Roof(JsonDataclass):
    """A rate that nothing on the device exceeds: a cited peak, or a measured ceiling."""

    metric: str
    """Metric id."""
    name: str
    """Of the metric."""
    rate: JsonNumber
    """B/s or FLOP/s."""
    shown: str
    """The same with a unit, such as `4.8 TB/s`."""
    origin: Literal["cited", "measured"]
    citation: str
    """The citation line; for a measured one what was measured, where and when."""


@dataclass(frozen=True)
class Demand:
    """What one call must do at least."""

    read: tuple[Term, ...]
    """Bytes."""
    written: tuple[Term, ...]
    """Bytes. Declared bytes, whose direction is not known, are in `read`, and `mixed` is true."""
    operations: Mapping[str, tuple[Term, ...]]
    """FLOP by the metric of the peak rate at which they run."""
    mixed: bool = False

    @property
    def bytes(self) -> int:
        """Bytes read and written."""
        return sum(term.amount for term in (*self.read, *self.written))

    @property
    def flop(self) -> dict[str, int]:
        """FLOP by metric; metrics without any are left out."""
        sums = {metric: sum(term.amount for term in terms) for metric, terms in self.operations.items()}
        return {metric: amount for metric, amount in sums.items() if amount}


@dataclass(frozen=True)
class MeasuredCeilings:
    """What was measured on a device of this product."""

    copy: Roof | None
    read: Roof | None
    fill: Roof | None
    compute: Mapping[str, Roof]
    """By metric."""


@dataclass(frozen=True)
class Placed:
    """A demand under a product's roofline. What is None could not be computed."""

    demand: Demand
    bandwidth: Roof | None
    peaks: Mapping[str, Roof]
    missing: tuple[str, ...]
    """Metrics that would be needed and are not known."""
    intensity: Mapping[str, Decimal]
    """FLOP/byte by metric."""
    ridge: Mapping[str, Decimal]
    """FLOP/byte by metric."""
    memory_time: Decimal | None
    """Seconds that the bytes take at the cited bandwidth."""
    compute_time: Mapping[str, Decimal]
    """Seconds by metric."""
    bound: Literal["memory-bound", "compute-bound", ""]
    """`memory-bound` or `compute-bound`; empty if it is not known."""
    metric: str
    """What binds: a metric id."""
    floor: Decimal | None
    """Least time of these bytes and operations at the cited peaks, from a cold cache, in seconds."""
    target: Decimal | None
    """What to aim at, in seconds."""
    target_from: Literal["measured", "cited", ""]
    """Whether the target is a part of the measured ceiling, or of the cited peak."""
    steps: tuple[Step, ...]


def place(
    demand: Demand, bandwidth: Roof | None, peaks: Mapping[str, Roof | None], measured: MeasuredCeilings | None
) -> Placed:
    """Bytes and operations under the roofline of cited peaks, and 90 % of the nearest ceiling as target."""
    steps = [*_bytes(demand), *_operations(demand)]
    flop = demand.flop
    known = {metric: roof for metric in flop if (roof := peaks.get(metric)) is not None}
    missing = [*(("hbm_bandwidth",) if bandwidth is None else ()), *(metric for metric in flop if metric not in known)]
    intensity = {metric: Decimal(amount) / demand.bytes for metric, amount in flop.items()} if demand.bytes else {}
    for metric, value in intensity.items():
        expression = f"{flop[metric]:,} FLOP / {demand.bytes:,} B"
        steps.append(_step(f"intensity{_of(metric, flop)}", expression, value, "FLOP/byte"))
    ridge: dict[str, Decimal] = {}
    memory_time: Decimal | None = None
    compute_time: dict[str, Decimal] = {}
    if bandwidth is not None:
        for metric, roof in known.items():
            ridge[metric] = roof.rate / bandwidth.rate
            shown = f"{roof.shown} / {bandwidth.shown}"
            steps.append(_step(f"ridge point{_of(metric, flop)}", shown, ridge[metric], "FLOP/byte"))
        memory_time = demand.bytes / bandwidth.rate
        steps.append(_step("memory time", f"{demand.bytes:,} B / {bandwidth.shown}", memory_time, "s"))
    for metric, roof in known.items():
        compute_time[metric] = flop[metric] / roof.rate
        steps.append(_step(f"compute time{_of(metric, flop)}", f"{flop[metric]:,} FLOP / {roof.shown}",
                           compute_time[metric], "s"))  # fmt: skip
    bound: Literal["memory-bound", "compute-bound", ""] = ""
    binding = ""
    floor = target = None
    origin: Literal["measured", "cited", ""] = ""
    if not missing and bandwidth is not None and memory_time is not None:
        binding = max(compute_time, key=lambda metric: compute_time[metric], default="")
        compute = compute_time.get(binding, Decimal(0))
        floor = max(memory_time, compute)
        bound = "compute-bound" if compute > memory_time else "memory-bound"
        binding = binding if bound == "compute-bound" else bandwidth.metric
        target, origin, more = _target(demand, bandwidth, known, measured)
        steps += more
    return Placed(
        demand, bandwidth, known, tuple(missing), intensity, ridge, memory_time, compute_time, bound, binding, floor,
        target, origin, tuple(steps),
    )  # fmt: skip


def achieved(placed: Placed, seconds: Decimal, shown: str, moved: int | None = None) -> list[Step]:
    """What a measured time says: rates, and shares of the peaks and of the floor. `moved`: bytes that a profile
    counted, in place of those that must be moved."""
    size = placed.demand.bytes if moved is None else moved
    steps = [_step("achieved bandwidth", f"{size:,} B / {shown}", size / seconds, "B/s")]
    if placed.bandwidth is not None:
        share = size / seconds / placed.bandwidth.rate
        steps.append(_step("share of the cited bandwidth", f"{size:,} B / {shown} / {placed.bandwidth.shown}",
                           share, "%"))  # fmt: skip
    for metric, amount in placed.demand.flop.items():
        name = _of(metric, placed.demand.flop)
        steps.append(_step(f"achieved rate{name}", f"{amount:,} FLOP / {shown}", amount / seconds, "FLOPS"))
        roof = placed.peaks.get(metric)
        if roof is not None:
            share = amount / seconds / roof.rate
            steps.append(_step(f"share of the cited peak{name}", f"{amount:,} FLOP / {shown} / {roof.shown}",
                               share, "%"))  # fmt: skip
    if placed.floor is not None:
        floor = placed.floor
        binding = placed.bandwidth if placed.bound == MEMORY_BOUND else placed.peaks[placed.metric]
        assert binding is not None
        amount = placed.demand.bytes if placed.bound == MEMORY_BOUND else placed.demand.flop[placed.metric]
        unit = "B" if placed.bound == MEMORY_BOUND else "FLOP"
        steps.append(_step("floor in the measured time", f"{amount:,} {unit} / {binding.shown} / {shown}",
                           floor / seconds, "%"))  # fmt: skip
    return steps


def _target(
    demand: Demand, bandwidth: Roof, peaks: Mapping[str, Roof], measured: MeasuredCeilings | None
) -> tuple[Decimal, Literal["measured", "cited"], list[Step]]:
    """(seconds to aim at, whose ceiling it is a part of, how it comes about): the longest of memory and compute, each
    at the measured ceiling where there is one."""
    found: list[tuple[Decimal, Literal["measured", "cited"], str]] = []
    moved = None if measured is None else _measured_memory(demand, measured)
    if moved is not None:
        found.append((moved[0], "measured", moved[1]))
    else:
        found.append((demand.bytes / bandwidth.rate, "cited", f"{demand.bytes:,} B / {bandwidth.shown}"))
    for metric, amount in demand.flop.items():
        roof = (None if measured is None else measured.compute.get(metric)) or peaks[metric]
        found.append((amount / roof.rate, roof.origin, f"{amount:,} FLOP / {roof.shown}"))
    time, origin, expression = max(found, key=lambda one: one[0])
    expression = f"({expression}) / {NEAR}" if "+" in expression else f"{expression} / {NEAR}"
    return time / NEAR, origin, [_step("target time", expression, time / NEAR, "s")]


def _measured_memory(demand: Demand, measured: MeasuredCeilings) -> tuple[Decimal, str] | None:
    """Time of the bytes at measured rates: as much as is both read and written by a copy, the rest read or filled."""
    copy = measured.copy
    read = sum(term.amount for term in demand.read)
    written = sum(term.amount for term in demand.written)
    if demand.mixed:
        return None if copy is None else (read / copy.rate, f"{read:,} B / {copy.shown}")
    both, rest = 2 * min(read, written), abs(read - written)
    roof = measured.read if read > written else measured.fill
    if (both and copy is None) or (rest and roof is None):
        return None
    time, parts = Decimal(0), []
    if both and copy is not None:
        time, parts = time + both / copy.rate, [f"{both:,} B / {copy.shown}"]
    if rest and roof is not None:
        time, parts = time + rest / roof.rate, [*parts, f"{rest:,} B / {roof.shown}"]
    return time, " + ".join(parts)


def _bytes(demand: Demand) -> list[Step]:
    steps: list[Step] = []
    terms = (*demand.read, *demand.written)
    for term in terms:
        product = " × ".join(f"{n:,}" for n in term.factors)
        steps.append(_step(term.name, term.expression or f"{product} B", Decimal(term.amount), "B"))
    return [*steps, *_sum("bytes", [term.amount for term in terms], "B")]


def _operations(demand: Demand) -> list[Step]:
    steps: list[Step] = []
    for metric, terms in demand.operations.items():
        for term in terms:
            product = " × ".join(f"{n:,}" for n in term.factors)
            steps.append(_step(term.name, term.expression or product, Decimal(term.amount), "FLOP"))
        steps += _sum(f"operations{_of(metric, demand.operations)}", [term.amount for term in terms], "FLOP")
    return steps


def _sum(name: str, amounts: Sequence[int], unit: str) -> list[Step]:
    """A sum, in parts where it is too long for a line; nothing is added up where there is one number."""
    numbers, steps = list(amounts), list[Step]()
    while len(numbers) > 1:
        part = numbers[:1]
        while len(part) < len(numbers) and len(" + ".join(f"{n:,} {unit}" for n in numbers[: len(part) + 1])) < _LINE:
            part.append(numbers[len(part)])
        total, rest = sum(part), numbers[len(part) :]
        label = f"{name}, in part" if rest else name
        steps.append(_step(label, " + ".join(f"{n:,} {unit}" for n in part), Decimal(total), unit))
        numbers = [total, *rest]
    return steps


def _of(metric: str, several: Mapping[str, object]) -> str:
    return f", {metric}" if len(several) > 1 else ""


def _step(name: str, expression: str, value: Decimal, unit: str) -> Step:
    """A line of arithmetic; `value` is in base units, a share as a part of 1."""
    result = {
        "B": lambda: f"{value:,f} B",
        "FLOP": lambda: f"{value:,f} FLOP",
        "s": lambda: format_seconds(value),
        "%": lambda: f"{format_number(value * 100)} %",
        "B/s": lambda: f"{format_number(value / Decimal(10**9), 4)} GB/s",
        "FLOPS": lambda: f"{format_number(value / Decimal(10**12), 4)} TFLOPS",
    }.get(unit, lambda: f"{format_number(value)} {unit}")()
    return Step(name, expression, value, unit, f"{expression} = {result}")
