"""Axes of a picture, and the SVG that stands on them. Colours are classes of the style sheet, so as to follow it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from kbs.common.visible_text import visible

LEFT, RIGHT, TOP, BOTTOM = 64, 16, 14, 40
"""Room around the axes, in pixels of a picture that is as wide as `Picture.width`."""


@dataclass
class Axis:
    """Values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; of one beyond the axis, its end."""
        value = min(max(value, self.low), self.high)
        part = (
            math.log(value / self.low) / math.log(self.high / self.low)
            if self.log
            else (value - self.low) / (self.high - self.low)
        )
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values along it, about five; of a logarithmic one, powers of ten."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            return [10.0**n for n in range(first, last + 1, max(1, (last - first + 1) // 6))]
        step = nice((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [step * n for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def nice(value: float) -> float:
    """The least of 1, 2, 5 and 10 times a power of ten that is not below a value."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next((step * power for step in (1, 2, 5) if step * power >= value * (1 - 1e-9)), 10 * power)


def number(value: float) -> str:
    """A value at a tick."""
    return f"{value:.10g}"


@dataclass
class Picture:
    """An SVG as it is drawn."""

    title: str
    """What it shows, for those who do not see it."""
    width: int = 760
    height: int = 300
    parts: list[Markup] = field(default_factory=list)

    def x(self, low: float, high: float, *, log: bool = False) -> Axis:
        """The axis below."""
        return Axis(low, high, LEFT, self.width - RIGHT, log)

    def y(self, low: float, high: float, *, log: bool = False) -> Axis:
        """The axis on the left."""
        return Axis(low, high, self.height - BOTTOM, TOP, log)

    def frame(self, x: Axis, y: Axis, x_name: str, y_name: str, x_labels: Sequence[tuple[float, str]] = ()) -> None:
        """Grid, ticks and names of both axes; `x_labels` in place of round values."""
        for value in y.ticks():
            at = y.at(value)
            self.line(x.start, at, x.end, at, "grid")
            self.text(x.start - 8, at + 4, number(value), "tick end")
        for value, label in x_labels or [(value, number(value)) for value in x.ticks()]:
            at = x.at(value)
            if not x_labels:
                self.line(at, y.start, at, y.end, "grid")
            self.text(at, y.start + 17, label, "tick mid")
        self.line(x.start, y.start, x.end, y.start, "axis")
        self.text((x.start + x.end) / 2, self.height - 4, x_name, "name mid")
        turned = Markup('<text class="name mid" transform="translate(13 {:.1f}) rotate(-90)">{}</text>')
        self.parts.append(turned.format((y.start + y.end) / 2, y_name))

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A straight line."""
        self.parts.append(
            Markup('<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>').format(style, x1, y1, x2, y2)
        )

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """A line through points."""
        d = " ".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(points))
        self.parts.append(Markup('<path class="{}" d="{}"/>').format(style, d))

    def band(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        """A rectangle between two corners."""
        corner = min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)
        form = Markup('<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
        self.parts.append(form.format(style, *corner))

    def spot(self, x: float, y: float, style: str, said: str = "", radius: float = 4.5) -> None:
        """A mark, with what it tells whoever points at it."""
        form = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}">{}</circle>')
        self.parts.append(form.format(style, x, y, radius, _told(said)))

    def text(self, x: float, y: float, said: str, style: str) -> None:
        """A text at a place; `mid` and `end` in its style say which part of it stands there."""
        form = Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
        self.parts.append(form.format(style, x, y, visible(said)))

    def svg(self) -> Markup:
        """The whole picture."""
        form = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>')
        return form.format(self.width, self.height, visible(self.title), Markup("").join(self.parts))


def _told(said: str) -> Markup:
    return Markup("<title>{}</title>").format(visible(said)) if said else escape("")
