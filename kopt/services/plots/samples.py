"""A picture of the samples: every sample by process restart, for each kernel."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from evaluator.receipt import timing_text as words
from kbs.common.visible_text import visible
from kopt.services.plots.picture import draw_picture, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evaluator.receipt.timing import Timed, Timing

MARK = "kopt bench samples"
"""Stands in the metadata of every picture: a file without it is never overwritten."""
MOST = 20
"""Workloads in one picture."""

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Told apart by the colour-blind: M. Okabe and K. Ito, Color Universal Design, 2008."""


def save_plot(path: Path, timing: Timing, title: str) -> None:
    """Draw all samples into a .png or .svg file. The same times give the same bytes. Raises as `check_plot`."""
    save_picture(path, MARK, lambda format: draw(timing, title, format))


def draw(timing: Timing, title: str, format: str) -> bytes:
    """The bytes of the picture, `png` or `svg`."""
    workloads = timing.workloads[:MOST]
    if len(workloads) < len(timing.workloads):
        title += f", the first {MOST} of {len(timing.workloads)} workloads"
    rows = [words.kernels(workload) for workload in workloads]
    columns = max(map(len, rows))

    def fill(figure: Figure) -> None:
        figure.suptitle(visible(title), fontsize=11)
        panels = figure.subplots(len(rows), columns, squeeze=False)
        for row, workload, kernels in zip(panels, workloads, rows, strict=True):
            named = visible(words.where(timing, workload))
            for axes, timed, colour in zip(row, kernels, itertools.cycle(_COLOURS)):
                _contender(axes, timed, colour, named)
            for axes in row[len(kernels) :]:
                axes.set_axis_off()
        _legend(figure)

    return draw_picture(fill, (0.5 + 3.2 * max(2, columns), 1.0 + 3.0 * len(rows)), MARK, format)


def _contender(axes: Axes, timed: Timed, colour: str, named: str) -> None:
    """Restarts from left to right, the samples of each in order. The axis is this kernel's own."""
    summary, series = timed.summary, timed.series
    name = f"{named}{visible(timed.name)[:40]}"
    if summary is None:
        axes.set_title(f"{name}\nfailed", fontsize=8)
        axes.set_axis_off()
        return
    unit = words.unit_of(summary.median_us)
    factor = 1e-3 if unit == "ms" else 1.0
    low = min([*series.kept(), summary.ci_low_us])
    top = max([*series.kept(), summary.ci_high_us])
    margin = 0.08 * (top - low) or 0.05 * top or 1.0
    low, top = max(0.0, low - margin), top + margin
    axes.set_title(f"{name}\nmedian {words.duration(summary.median_us)}, n {summary.n}", fontsize=8)
    axes.set_ylabel(f"device time of a turn [{unit}]", fontsize=8)
    axes.set_ylim(low * factor, top * factor)
    axes.ticklabel_format(axis="y", style="plain", useOffset=False)
    axes.tick_params(labelsize=7)
    axes.grid(axis="y", linewidth=0.3)
    axes.axhspan(summary.ci_low_us * factor, summary.ci_high_us * factor, color=colour, alpha=0.25, linewidth=0)
    axes.axhline(summary.median_us * factor, color=colour, linewidth=1.2)
    restarts = sorted(set(series.restart))
    for place, restart in enumerate(restarts):
        turns = [n for n, of in enumerate(series.restart) if of == restart]
        where = {n: place + 0.1 + 0.8 * (k + 0.5) / len(turns) for k, n in enumerate(turns)}
        good = [n for n in turns if not series.dropped[n]]
        bad = [n for n in turns if series.dropped[n]]
        times = [series.us[n] * factor for n in good]
        axes.plot([where[n] for n in good], times, ".", color=colour, markersize=2.5)
        inside = [min(max(series.us[n], low), top) * factor for n in bad]
        for crosses in axes.plot([where[n] for n in bad], inside, "x", color="black", markersize=5, clip_on=False):
            crosses.set_in_layout(False)
        if times:
            middle = statistics.median(times)
            axes.plot([place + 0.1, place + 0.9], [middle, middle], color="black", linewidth=1.4)
    axes.set_xlim(0, max(1, len(restarts)))
    axes.set_xticks([place + 0.5 for place in range(len(restarts))], [f"restart {n}" for n in restarts])


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = {
        "turn": Line2D([], [], marker=".", color="gray", linestyle="none"),
        "dropped turn (at the edge if it lies beyond)": Line2D([], [], marker="x", color="black", linestyle="none"),
        "median of a restart": Line2D([], [], color="black", linewidth=1.4),
        "median of all, its 95% interval": Patch(facecolor="lightgray", edgecolor="gray"),
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", fontsize=7, ncols=len(handles))
