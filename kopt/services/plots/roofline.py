"""The picture of a roofline: cited peaks, measured ceilings and the measured point, told apart by line and mark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.visible_text import visible
from kbs.evidence.units import format_number
from kopt.services.gpus import BANDWIDTH
from kopt.services.plots.picture import draw_picture, lay_out_roofline, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kbs.answers.kernel_roofline import Roof
    from kopt.services.roofline import Roofline

MARK = "kopt roofline"
"""Stands in the metadata of every picture: a file without it is never overwritten."""
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")
"""Told apart by the colour-blind: M. Okabe and K. Ito, Color Universal Design, 2008."""


def save(path: Path, found: Roofline, title: str) -> None:
    """Draw it into a .png or .svg file. The same roofline gives the same bytes. Raises as `check_plot`."""

    def fill(figure: Figure) -> None:
        axes = figure.subplots()
        _draw(axes, found)
        lay_out_roofline(axes, title)

    save_picture(path, MARK, lambda format: draw_picture(fill, (8.4, 5.4), MARK, format))


def _draw(axes: Axes, found: Roofline) -> None:
    placed = found.placed
    intensities = [float(value) for value in placed.intensity.values()]
    ridges = [float(value) for value in placed.ridge.values()]
    around = [value for value in (*intensities, *ridges) if value > 0] or [1.0]
    low, high = 10 ** math.floor(math.log10(min(around)) - 1), 10 ** math.ceil(math.log10(max(around)) + 1)
    memory = [roof for roof in found.roofs if roof.metric == BANDWIDTH]
    compute = [roof for roof in found.roofs if roof.metric != BANDWIDTH]
    for origin, line, width in (("cited", "-", 1.8), ("measured", "--", 1.4)):
        tops = [roof for roof in compute if roof.origin == origin]
        slopes = [roof for roof in memory if roof.origin == origin]
        for roof in slopes:
            end = max((_meets(top, roof) for top in tops), default=high)
            x = [low, min(end, high)]
            label = f"{origin}: {roof.name} {roof.shown}{_what(roof)}"
            axes.plot(x, [float(roof.rate) * at / 1e12 for at in x], line, color=_COLOURS[0], linewidth=width,
                      label=label)  # fmt: skip
        for n, roof in enumerate(tops):
            start = min((_meets(roof, slope) for slope in slopes), default=low)
            label = f"{origin}: {roof.name} {roof.shown}{_what(roof)}"
            axes.plot([max(low, start), high], [float(roof.rate) / 1e12] * 2, line,
                      color=_COLOURS[1 + n % (len(_COLOURS) - 1)], linewidth=width, label=label)  # fmt: skip
    for metric, value in placed.intensity.items():
        name = f" ({metric})" if len(placed.intensity) > 1 else ""
        axes.axvline(float(value), color="gray", linestyle=":", linewidth=1.2,
                     label=f"intensity{name}: {format_number(value)} FLOP/byte")  # fmt: skip
    _points(axes, found)
    axes.set_xlim(low, high)


def _points(axes: Axes, found: Roofline) -> None:
    """The floor and the target on the roof, and the measured time below it."""
    placed, point = found.placed, found.point
    for metric, intensity in placed.intensity.items():
        work = placed.demand.flop[metric]
        ceiling = "measured ceiling" if placed.target_from == "measured" else "cited peak"
        marks = [("floor, by cited peaks", placed.floor, "v"), (f"target, 90 % of the {ceiling}", placed.target, "s")]
        for name, seconds, mark in marks:
            if seconds is not None and metric == next(iter(placed.intensity)):
                axes.plot([float(intensity)], [work / float(seconds) / 1e12], mark, color="black",
                          markerfacecolor="none", markersize=7, linestyle="none", label=name)  # fmt: skip
        if point is not None:
            moved = placed.demand.bytes if point.bytes is None else point.bytes
            axes.plot([work / moved], [work / float(point.seconds) / 1e12], "*", color="#d55e00", markersize=13,
                      linestyle="none", label=visible(f"measured point: {point.shown} ({point.device})"))  # fmt: skip


def _meets(top: Roof, slope: Roof) -> float:
    """The intensity at which two roofs meet."""
    return float(top.rate / slope.rate)


def _what(roof: Roof) -> str:
    return "" if roof.origin == "cited" else f" ({roof.citation.partition(',')[0]})"
