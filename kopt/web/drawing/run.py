"""Pictures of a run: the time of each version with its interval, and the versions under the roofline."""

from __future__ import annotations

from markupsafe import Markup

from evaluator.receipt.timing_text import duration, figure, unit_of
from kopt.services.gpus import BANDWIDTH
from kopt.web.drawing.axes import Picture
from loop.pages import Drawing

_APART = 14
"""Pixels between two lines that are both named."""


def timeline(found: Drawing) -> Markup:
    """Each version's median with its 95 % interval, kept ones joined, above floor and target; empty without times."""
    if not found.points:
        return Markup("")
    limits = [(limit, name, style) for limit, name, style in (
        (found.floor_us, "floor, by cited peaks", "floor"), (found.target_us, "target", "target"))
        if limit is not None]  # fmt: skip
    unit = unit_of(max(point.median_us for point in found.points))
    factor = 1e-3 if unit == "ms" else 1.0
    last = max(point.version for point in found.points)
    top = max([*(point.high_us for point in found.points), *(limit for limit, _, _ in limits)]) * factor * 1.12
    made = Picture(f"Time of a call of each version of {found.title}, with its 95 % interval")
    x, y = made.x(-0.4, last + 0.6), made.y(0, top or 1.0)
    made.frame(x, y, "version", f"time of a call [{unit}]", [(n, f"v{n}") for n in _some(last)])
    for limit, name, style in limits:
        at = y.at(limit * factor)
        made.line(x.start, at, x.end, at, f"limit {style}")
        made.text(x.start + 6, at - 5 if style == "target" else at + 14, f"{name} {duration(limit)}", "label")
    kept = [point for point in found.points if point.kept]
    made.path([(x.at(point.version), y.at(point.median_us * factor)) for point in kept], "kept")
    for point in found.points:
        at, style = x.at(point.version), "kept" if point.kept else "left"
        low, high = y.at(point.low_us * factor), y.at(point.high_us * factor)
        made.line(at, low, at, high, f"error {style}")
        for end in (low, high):
            made.line(at - 5, end, at + 5, end, f"error {style}")
        figures = f"{figure(point.low_us, unit)} to {figure(point.high_us, unit)}"
        said = f"v{point.version}: {figure(point.median_us, unit)} {unit}, 95 % interval {figures} {unit}"
        methods = ", ".join(point.methods)
        made.spot(at, y.at(point.median_us * factor), f"mark {style}", f"{said}{': ' if methods else ''}{methods}")
        if last < 16:
            made.text(at + 8, y.at(point.median_us * factor) - 8, duration(point.median_us), "label")
    return made.svg()


def _some(last: int) -> range:
    """Versions that are named on the axis."""
    return range(0, last + 1, max(1, (last + 1) // 16 + (last > 15)))


def roofline(found: Drawing) -> Markup:
    """Cited peaks, and every version at the problem's intensity; empty where one of them is not known."""
    slope = next(((text, rate) for metric, text, rate in found.rates if metric == BANDWIDTH), None)
    if slope is None or not found.bytes or not found.operations or not found.points:
        return Markup("")
    intensity = found.operations / found.bytes
    tops = [rate for metric, _, rate in found.rates if metric.endswith("_throughput") and "bandwidth" not in metric]
    reached = [found.operations / (point.median_us * 1e-6) for point in found.points]
    low, high = intensity / 100, intensity * 100
    if tops:
        low, high = min(low, min(tops) / slope[1] / 10), max(high, max(tops) / slope[1] * 10)
    made = Picture(f"Versions of {found.title} under the roofline", height=320)
    x = made.x(low, high, log=True)
    floor = min(*reached, low * slope[1]) / 2e12
    y = made.y(floor, max([*reached, *tops, high * slope[1] if not tops else 0.0]) * 2 / 1e12, log=True)
    made.frame(x, y, "intensity [FLOP/byte]", "rate [TFLOP/s]")
    end = min(max(tops, default=high * slope[1]) / slope[1], high)
    made.path([(x.at(at), y.at(at * slope[1] / 1e12)) for at in (max(low, floor * 1e12 / slope[1]), end)], "roof")
    named = y.start
    for top in sorted(tops):
        at = y.at(top / 1e12)
        made.line(x.at(max(low, top / slope[1])), at, x.end, at, "roof")
        if named - at > _APART:
            made.text(x.end - 2, at - 5, f"{top / 1e12:.4g} TFLOP/s", "label end")
            named = at
    middle = _middle(max(low, floor * 1e12 / slope[1]), end)
    made.text(x.at(middle) - 6, y.at(middle * slope[1] / 1e12) - 8, f"{slope[1] / 1e12:.4g} TB/s", "label end")
    made.line(x.at(intensity), y.start, x.at(intensity), y.end, "limit target")
    made.text(x.at(intensity) + 6, y.end + 12, f"{intensity:.4g} FLOP/byte", "label")
    for point, rate in zip(found.points, reached, strict=True):
        said = f"v{point.version}: {rate / 1e12:.4g} TFLOP/s, {duration(point.median_us)}"
        made.spot(x.at(intensity), y.at(rate / 1e12), f"mark {'kept' if point.kept else 'left'}", said)
    best = max(range(len(reached)), key=reached.__getitem__)
    made.text(x.at(intensity) + 9, y.at(reached[best] / 1e12) + 4, f"v{found.points[best].version}", "label")
    return made.svg()


def _middle(low: float, high: float) -> float:
    """The middle of a logarithmic axis."""
    return float((low * high) ** 0.5)
