"""Step 0: the environment of a run, cited specs of the hardware, the targets that follow, and the stop conditions.

A spec that no page states is UNKNOWN and a gap of the wiki; nothing is computed from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Literal

from kbs.answers.kernel_roofline import NEAR, Placed
from kbs.answers.model import Step
from kbs.common.json_model import FrozenModel
from kbs.evidence.spec import CONFIDENCES, Spec
from kbs.evidence.units import format_number, format_seconds
from kbs.evidence.vocabulary import Vocabulary
from loop.journal.record import RunRecord
from loop.planning.decisions import STALL_EFFECT, STALL_ITERATIONS, target_of
from loop.tools import SpecNote, Targets

ENVIRONMENT = "env.json"
ROOFLINE = "roofline.json"
SPECS = "spec-sheet"
"""The vocabulary's group of metrics that README.md lists, besides those that the targets need."""


class Check(FrozenModel):
    """One program or device that step 0 looked for."""

    name: str
    found: str
    """Version or name; empty if it is missing."""
    why: str = ""
    """What its absence means for the run."""


class ClockNote(FrozenModel):
    """Whether the GPU's clocks are locked. kopt reads them and never changes them."""

    locked: Literal["yes", "no", "unknown"]
    megahertz: int
    """Of the multiprocessors, when it was read; 0 where nothing says."""
    detail: str
    """Why it is not known; empty where it is."""
    index: int
    """The GPU's number."""

    def lines(self) -> Iterator[str]:
        """What a reader should know, and do."""
        now = f"{self.megahertz} MHz now" if self.megahertz else "not read"
        said = {
            "yes": "locked: an applications clock is set",
            "no": "not locked: the applications clock is the usual one",
            "unknown": f"not known whether locked: {self.detail or 'this GPU does not say'}",
        }
        yield f"clocks of the multiprocessors: {now}; {said[self.locked]}"
        yield "a range that was set with nvidia-smi -lgc cannot be read back: you know whether you set one"
        yield (
            "kopt changes no clocks. Locked ones make times repeat better, and are lower than the highest:"
            f" list them with “nvidia-smi -i {self.index} -q -d SUPPORTED_CLOCKS”,"
            f" lock with “sudo nvidia-smi -i {self.index} -lgc MHZ”, undo with “sudo nvidia-smi -i {self.index} -rgc”"
        )
        yield "every receipt has the clocks that were seen while it was timed, and why they were held back"


class EnvNote(FrozenModel):
    """env.json: the machine and programs at the start of a run."""

    device: str
    device_name: str
    checks: tuple[Check, ...]
    clocks: ClockNote | None = None
    """None on the CPU, and in a note of before."""


def trusted(specs: Iterable[Spec], least: str) -> list[Spec]:
    """Specs with at least the given confidence."""
    allowed = CONFIDENCES[: CONFIDENCES.index(least) + 1]
    return [spec for spec in specs if spec.confidence in allowed]


def spec_notes(specs: Sequence[Spec], product: str, metrics: Iterable[str], terms: Vocabulary) -> list[SpecNote]:
    """A citation line for each metric, with `UNKNOWN` if no page states it."""
    notes = []
    for metric in dict.fromkeys(metrics):
        found = _stated(specs, product, metric, terms)
        if not found:
            line = f"{terms.products[product].name} {terms.metrics[metric].name}: UNKNOWN (gpu-wiki not found)"
            notes.append(SpecNote(metric=metric, line=line, value=None, unit=terms.metrics[metric].unit))
        for spec in found:
            base, quantity = spec.base(terms), spec.quantity(terms)
            notes.append(
                SpecNote(
                    metric=metric,
                    line=spec.citation_line(terms),
                    value=None if base is None else format(base.normalize(), "f"),
                    unit=spec.unit if quantity is None else quantity.unit.dimension,
                    overridden=tuple(old.citation_line(terms) for old in spec.overridden),
                )
            )
    return notes


def _stated(specs: Sequence[Spec], product: str, metric: str, terms: Vocabulary) -> list[Spec]:
    """The row of a metric, dense if sparsity matters; all rows if it is only stated with other qualifiers."""
    wanted = "dense" if terms.metrics[metric].sparsity else ""
    found = [
        spec
        for spec in specs
        if spec.product == product and spec.metric == metric and spec.recommended and spec.published
    ]
    return [spec for spec in found if spec.qualifier == wanted][:1] or found


def targets_of(placed: Placed, specs: Sequence[SpecNote], gpu: str, notes: Sequence[str] = ()) -> Targets:
    """The targets of a problem under a roofline. `gpu` is the product's name; `notes` say how the work was counted."""
    lines = [step.shown if not step.name else f"{step.name}: {step.shown}" for step in placed.steps]
    missing = [spec.line for spec in specs if "UNKNOWN" in spec.line]
    if placed.floor is None:
        lines.append(f"bound, floor and target: UNKNOWN: {', '.join(placed.missing)} of {gpu} would be needed")
    else:
        lines.append(f"bound: {placed.bound}")
        lines.append(f"floor: {format_seconds(placed.floor)}, these bytes and operations at the cited peaks")
        ceiling = "measured ceiling" if placed.target_from == "measured" else "cited peak"
        lines.append(f"target: {format_seconds(placed.target or Decimal(0))}, 90 % of the {ceiling}")
    flop = sum(placed.demand.flop.values())
    return Targets(
        specs=tuple(specs),
        lines=(*lines, *(f"note: {note}" for note in notes)),
        bytes=placed.demand.bytes,
        operations=flop or None,
        bound=placed.bound.removesuffix("-bound"),
        floor_us=_micros(placed.floor),
        target_us=_micros(placed.target),
        bytes_us=_micros(placed.memory_time),
        operations_us=_micros(max(placed.compute_time.values(), default=Decimal(0))) if not placed.missing else None,
        gaps=tuple(dict.fromkeys(missing)),
    )


def unknown_targets(
    why: str, specs: Sequence[SpecNote] = (), steps: Sequence[Step] = (), *, bytes: int | None = None,
    operations: int | None = None,
) -> Targets:  # fmt: skip
    """Targets if floor and bound cannot be derived. `steps`: what could be counted nevertheless."""
    lines = [f"{step.name}: {step.shown}" for step in steps]
    return Targets(
        specs=tuple(specs),
        lines=(*lines, f"bound, floor and target: UNKNOWN: {why}"),
        bytes=bytes,
        operations=operations,
        bound="",
        floor_us=None,
        target_us=None,
        gaps=tuple(spec.line for spec in specs if "UNKNOWN" in spec.line),
    )


def near(floor_us: float) -> float:
    """The time from which on a kernel is near its floor, in microseconds."""
    return float(Decimal(repr(floor_us)) / NEAR)


def stop_conditions(record: RunRecord, targets: Targets) -> Iterator[str]:
    """When the run ends, one sentence each. Rates are given only if they follow from cited or measured ones."""
    yield f"cap: {record.iterations} iterations are closed (kopt run extend allows more)"
    if record.seconds is not None:
        yield f"time: {record.seconds:g} s have passed since the run was created"
    without = "it is not used, since the floor of step 0 is UNKNOWN"
    if targets.floor_us is not None:
        shown = f"{_plain(targets.floor_us)} µs / {NEAR} = {_plain(near(targets.floor_us))} µs"
        without = f"by the floor of step 0: {shown}"
    yield (
        "floor: the best version's time is at most the floor / 0.9, by the ceiling measured in its session;"
        f" without one {without}"
    )
    wanted = target_of(record.target)
    if wanted is not None and wanted[0] == "x":
        yield f"target reached: the lower bound of version 0's time over the best version's is at least {wanted[1]:g}"
    elif wanted is not None:
        yield f"target reached: the best version reaches {wanted[1]:.0%} of that floor"
    yield (
        f"stall: after {STALL_ITERATIONS} iterations without {STALL_EFFECT:.0%} over the best, directions are looked at"
        " again; the run ends when three distinct ones are exhausted"
    )
    yield "user: kopt run stop"


def _micros(seconds: Decimal | None) -> float | None:
    return None if seconds is None else float(seconds * 10**6)


def _plain(value: float) -> str:
    return format_number(Decimal(repr(value)), 4)
