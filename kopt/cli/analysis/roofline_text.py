"""A roofline on the terminal: the derivation line by line, then what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbs.common.visible_text import visible
from kbs.evidence.units import format_number, format_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from kopt.services.roofline import Roofline

_HOW = {
    "fake": "counted from the reference, run on tensors without memory",
    "real": "counted from the reference, run on the CPU",
    "none": "inputs and outputs of the kernel; its code was not run",
}


def show(console: Console, found: Roofline, kernel: str, dims: dict[str, int], plot: Path | None) -> None:
    """Print it, and where it was drawn, if it was."""
    placed = found.placed

    def line(text: str) -> None:
        console.print(visible(text), markup=False)

    sizes = f" at {', '.join(f'{name}={size}' for name, size in dims.items())}" if dims else ""
    line(f"{kernel}{sizes} on {found.gpu}")
    line(f"work     {_HOW[found.work.how] if found.work else 'declared'}")
    width = max((len(step.name) for step in (*placed.steps, *found.point_steps)), default=0)
    for step in placed.steps:
        line(f"  {step.name:<{width}}  {step.shown}")
    for gap in found.gaps:
        line(f"  {gap}; what needs it is not computed")
    if found.roofs:
        line("rates")
    for roof in found.roofs:
        measured = f"{roof.name}: {roof.shown} <- {roof.citation}"
        line(f"  {roof.origin:<8}  {measured if roof.origin == 'measured' else roof.citation}")
    if placed.floor is not None and placed.target is not None:
        line(f"bound    {placed.bound}{_against(found)}")
        floor = format_seconds(placed.floor)
        line(f"floor    {floor}: these bytes and operations at the cited peaks, from a cold cache")
        ceiling = "measured ceiling" if placed.target_from == "measured" else "cited peak"
        line(f"target   {format_seconds(placed.target)}: 90 % of the {ceiling}")
    else:
        line("bound    UNKNOWN: a rate that it needs is not known")
    if found.point is not None:
        line(f"measured {found.point.shown} on {found.point.device}: {found.point.source}")
        for step in found.point_steps:
            line(f"  {step.name:<{width}}  {step.shown}")
    for note in found.notes:
        line(f"note     {note}")
    if plot is not None:
        line(f"plot     {plot}")


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
