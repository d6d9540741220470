"""Pictures of a receipt's times: medians with their intervals, and every sample by process restart."""

from __future__ import annotations

import itertools

from markupsafe import Markup

from evaluator.receipt import timing_text as words
from evaluator.receipt.timing import Timed, Timing, WorkloadTiming
from kopt.web.drawing.axes import LEFT, RIGHT, Axis, Picture

MOST = 6
"""Workloads that are drawn."""
_ROW = 96
"""Pixels of a kernel's samples."""
_SHOWN = 2_000
"""Samples of a kernel that are drawn; of more, every second, third …"""


def samples(timing: Timing) -> list[tuple[str, Markup]]:
    """(workload, picture) of the first workloads."""
    return [(words.where(timing, one), _samples(one)) for one in timing.workloads[:MOST]]


def _samples(workload: WorkloadTiming) -> Markup:
    """A strip for each kernel on one axis of time: restarts from top to bottom, the median and its interval."""
    kernels = [timed for timed in words.kernels(workload) if timed.summary is not None]
    if not kernels:
        return Markup("")
    made = Picture("Samples of each kernel by process restart", height=_ROW * len(kernels) + 44)
    every = [us for timed in kernels for us in timed.series.kept()] or [
        timed.summary.median_us for timed in kernels if timed.summary
    ]
    low, high = min(every), max(every)
    unit = words.unit_of(high)
    factor = 1e-3 if unit == "ms" else 1.0
    room = 0.06 * (high - low) or 0.05 * high or 1.0
    x = made.x(max(0.0, low - room) * factor, (high + room) * factor)
    bottom = made.height - 40
    for value in x.ticks():
        made.line(x.at(value), 8, x.at(value), bottom, "grid")
        made.text(x.at(value), bottom + 17, f"{value:.6g}", "tick mid")
    made.text((LEFT + made.width - RIGHT) / 2, made.height - 4, f"device time of a call [{unit}]", "name mid")
    for place, (timed, colour) in enumerate(zip(kernels, itertools.cycle(range(4)))):
        _strip(made, timed, 8 + _ROW * place, x, factor, colour)
    return made.svg()


def _strip(made: Picture, timed: Timed, top: float, x: Axis, factor: float, colour: int) -> None:
    summary, series = timed.summary, timed.series
    assert summary is not None  # of kernels without times there is no strip
    low, middle, high = (x.at(us * factor) for us in (summary.ci_low_us, summary.median_us, summary.ci_high_us))
    made.text(4, top + 12, timed.name[:24], "label strong")
    made.text(4, top + 27, words.duration(summary.median_us), "label")
    made.band(low, top + 2, high, top + _ROW - 12, f"ci s{colour}")
    made.line(middle, top + 2, middle, top + _ROW - 12, f"median s{colour}")
    restarts = sorted(set(series.restart))
    height = (_ROW - 48) / max(1, len(restarts))
    step = len(series.us) // _SHOWN + 1
    for n in range(0, len(series.us), step):
        if not series.dropped[n]:
            y = top + 34 + height * (restarts.index(series.restart[n]) + 0.5)
            made.spot(x.at(series.us[n] * factor), y, f"sample s{colour}", radius=1.6)
