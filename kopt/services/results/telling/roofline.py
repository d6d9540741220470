"""A roofline as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kbs.evidence.units import format_number, format_seconds
from kopt.services.roofline import Roofline

_HOW = {
    "fake": "counted from the reference, run on tensors without memory",
    "real": "counted from the reference, run on the CPU",
    "none": "inputs and outputs of the kernel; its code was not run",
}


def roofline_lines(found: Roofline, kernel: str, dims: Mapping[str, int], plot: Path | None = None) -> Iterator[str]:
    """The derivation line by line, what it says, and where it was drawn, if it was."""
    placed = found.placed
    sizes = f" at {', '.join(f'{name}={size}' for name, size in dims.items())}" if dims else ""
    yield f"{kernel}{sizes} on {found.gpu}"
    yield f"work     {_HOW[found.work.how] if found.work else 'declared'}"
    width = max((len(step.name) for step in (*placed.steps, *found.point_steps)), default=0)
    for step in placed.steps:
        yield f"  {step.name:<{width}}  {step.shown}"
    for gap in found.gaps:
        yield f"  {gap}; what needs it is not computed"
    if found.roofs:
        yield "rates"
    for roof in found.roofs:
        measured = f"{roof.name}: {roof.shown} <- {roof.citation}"
        yield f"  {roof.origin:<8}  {measured if roof.origin == 'measured' else roof.citation}"
    if placed.floor is not None and placed.target is not None:
        yield f"bound    {placed.bound}{_against(found)}"
        floor = format_seconds(placed.floor)
        yield f"floor    {floor}: these bytes and operations at the cited peaks, from a cold cache"
        ceiling = "measured ceiling" if placed.target_from == "measured" else "cited peak"
        yield f"target   {format_seconds(placed.target)}: 90 % of the {ceiling}"
    else:
        yield "bound    UNKNOWN: a rate that it needs is not known"
    if found.point is not None:
        yield f"measured {found.point.shown} on {found.point.device}: {found.point.source}"
        for step in found.point_steps:
            yield f"  {step.name:<{width}}  {step.shown}"
    for note in found.notes:
        yield f"note     {note}"
    if plot is not None:
        yield f"plot     {plot}"


def _against(found: Roofline) -> str:
    """The intensity beside the ridge point of the rate that takes longest."""
    placed = found.placed
    metric = max(placed.compute_time, key=lambda name: placed.compute_time[name], default="")
    if not metric:
        return ": nothing is computed"
    intensity, ridge = placed.intensity.get(metric), placed.ridge.get(metric)
    if intensity is None or ridge is None:
        return ""
    return f": {format_number(intensity)} FLOP/byte, the ridge point is {format_number(ridge)}"
