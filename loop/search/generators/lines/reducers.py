"""Reductions: of a whole tile, piece by piece, and of the states of several programs. Each is written once.

A reduction has states: one number, or two. `whole` reduces a tile; `start` and `update` go through a row piece by
piece, with a state for each lane; `merge` makes one state of many, of lanes or of programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from loop.search.generators.lines.tile import Tile
from loop.search.generators.segment import Segment, Value, is_float

_BIG = "2147483647"
Lift = Callable[[str], str]


class Lines(Protocol):
    """Where lines are written: the body of a kernel."""

    segment: Segment
    tile: Tile

    def add(self, line: str) -> None:
        """A line, at the present depth."""

    def r_inside(self) -> str:
        """What of the tile lies inside the reduced axes; empty where all does."""


def _least(value: Value) -> str:
    return 'float("-inf")' if is_float(value.dtype) else "-2147483648"


def _most(value: Value) -> str:
    return 'float("inf")' if is_float(value.dtype) else "2147483647"


def _masked(body: Lines, text: str, identity: str) -> str:
    mask = body.r_inside()
    return f"tl.where({mask}, {text}, {identity})" if mask else text


@dataclass(frozen=True)
class Reducer:
    """One that has a single state: `sum`, `max`, `min`, `prod`."""

    identity: Callable[[Value], str]
    join: str
    """Two states: `{a} + {b}`."""
    across: str
    """All of an axis: `tl.sum({a}, axis={axis})`."""
    states: int = 1

    def whole(self, body: Lines, value: Value, arg: str, count: str) -> list[str]:
        """The state of a tile."""
        del count
        made = _masked(body, arg, self.identity(value))
        body.add(f"{value.name} = {self.across.format(a=made, axis=body.tile.axis)}")
        return [value.name]

    def start(self, value: Value) -> list[str]:
        """What each lane begins with."""
        return [self.identity(value)]

    def update(self, body: Lines, value: Value, names: Sequence[str], arg: str, step: str) -> None:
        """Take a tile into the lanes' states. `step`: how many tiles came before."""
        del step
        made = _masked(body, arg, self.identity(value))
        body.add(f"{names[0]} = {self.join.format(a=names[0], b=made)}")

    def merge(self, body: Lines, value: Value, names: Sequence[str], axis: int, lift: Lift, counts: str) -> list[str]:
        """One state of many. `counts`: how many elements each of them has, as a vector that fits."""
        del lift, counts
        body.add(f"{value.name} = {self.across.format(a=names[0], axis=axis)}")
        return [value.name]


@dataclass(frozen=True)
class SoftmaxSums:
    """The largest number, and the sum of the exponentials of the differences to it."""

    states: int = 2

    def whole(self, body: Lines, value: Value, arg: str, count: str) -> list[str]:
        """Of a tile."""
        del count
        top, total = f"{value.name}_top", f"{value.name}_sum"
        made = _masked(body, arg, 'float("-inf")')
        body.add(f"{value.name}_in = {made}")
        body.add(f"{top} = tl.max({value.name}_in, axis={body.tile.axis})")
        lifted = body.tile.lift_row(top)
        body.add(f"{total} = tl.sum(tl.exp({value.name}_in - {lifted}), axis={body.tile.axis})")
        return [top, total]

    def start(self, value: Value) -> list[str]:
        """Nothing was seen yet."""
        del value
        return ['float("-inf")', "0.0"]

    def update(self, body: Lines, value: Value, names: Sequence[str], arg: str, step: str) -> None:
        """Take a tile into the lanes."""
        del step
        top, total = names
        made = _masked(body, arg, 'float("-inf")')
        body.add(f"{value.name}_in = {made}")
        body.add(f"{value.name}_new = tl.maximum({top}, {value.name}_in)")
        body.add(f'{value.name}_at = tl.where({value.name}_new == float("-inf"), 0.0, {value.name}_new)')
        body.add(f"{total} = {total} * tl.exp({top} - {value.name}_at) + tl.exp({value.name}_in - {value.name}_at)")
        body.add(f"{top} = {value.name}_new")

    def merge(self, body: Lines, value: Value, names: Sequence[str], axis: int, lift: Lift, counts: str) -> list[str]:
        """One of many."""
        del counts
        top, total = f"{value.name}_top", f"{value.name}_sum"
        body.add(f"{top} = tl.max({names[0]}, axis={axis})")
        body.add(f"{total} = tl.sum({names[1]} * tl.exp({names[0]} - {lift(top)}), axis={axis})")
        return [top, total]


@dataclass(frozen=True)
class Moments:
    """The mean, and the sum of the squares of the differences to it: without the loss of digits of a sum of squares."""

    states: int = 2

    def whole(self, body: Lines, value: Value, arg: str, count: str) -> list[str]:
        """Of a tile."""
        mean, squares = f"{value.name}_mean", f"{value.name}_squares"
        axis = body.tile.axis
        body.add(f"{mean} = tl.sum({_masked(body, arg, '0.0')}, axis={axis}) / {count}")
        body.add(f"{value.name}_off = {_masked(body, f'{arg} - {body.tile.lift_row(mean)}', '0.0')}")
        body.add(f"{squares} = tl.sum({value.name}_off * {value.name}_off, axis={axis})")
        return [mean, squares]

    def start(self, value: Value) -> list[str]:
        """Nothing was seen yet."""
        del value
        return ["0.0", "0.0"]

    def update(self, body: Lines, value: Value, names: Sequence[str], arg: str, step: str) -> None:
        """Take a tile into the lanes: each has its own mean."""
        mean, squares = names
        body.add(f"{value.name}_off = {_masked(body, f'{arg} - {mean}', '0.0')}")
        body.add(f"{mean} += {value.name}_off * (1.0 / ({step} + 1))")
        last = _masked(body, f"{value.name}_off * ({arg} - {mean})", "0.0")
        body.add(f"{squares} += {last}")

    def merge(self, body: Lines, value: Value, names: Sequence[str], axis: int, lift: Lift, counts: str) -> list[str]:
        """One of many, each weighted with how many elements it has."""
        mean, squares = f"{value.name}_mean", f"{value.name}_squares"
        body.add(f"{value.name}_n = {counts}")
        total = float(body.segment.group(body.segment.reduced))
        body.add(f"{mean} = tl.sum({names[0]} * {value.name}_n, axis={axis}) / {total}")
        body.add(f"{value.name}_off = {names[0]} - {lift(mean)}")
        body.add(f"{squares} = tl.sum({names[1]} + {value.name}_off * {value.name}_off * {value.name}_n, axis={axis})")
        return [mean, squares]


@dataclass(frozen=True)
class Place:
    """The largest or smallest number, and where it stands first."""

    largest: bool
    states: int = 2

    def _worst(self, value: Value) -> str:
        return _least(value) if self.largest else _most(value)

    def _across(self) -> str:
        return "tl.max" if self.largest else "tl.min"

    def whole(self, body: Lines, value: Value, arg: str, count: str) -> list[str]:
        """Of a tile."""
        del count
        body.add(f"{value.name}_in = {_masked(body, arg, self._worst(value))}")
        body.add(f"{value.name}_at = tl.where({value.name}_in == {value.name}_in, {body.tile.lift('r', 'r')}, 0)")
        return self.merge(body, value, [f"{value.name}_in", f"{value.name}_at"], body.tile.axis, body.tile.lift_row, "")

    def start(self, value: Value) -> list[str]:
        """Nothing was seen yet."""
        return [self._worst(value), f"int {_BIG}"]

    def update(self, body: Lines, value: Value, names: Sequence[str], arg: str, step: str) -> None:
        """Take a tile into the lanes."""
        del step
        best, place = names
        body.add(f"{value.name}_in = {_masked(body, arg, self._worst(value))}")
        sign = ">" if self.largest else "<"
        body.add(f"{value.name}_better = ({value.name}_in {sign} {best}) | ({place} == {_BIG})")
        body.add(f"{best} = tl.where({value.name}_better, {value.name}_in, {best})")
        body.add(f"{place} = tl.where({value.name}_better, {body.tile.lift('r', 'r')}, {place})")

    def merge(self, body: Lines, value: Value, names: Sequence[str], axis: int, lift: Lift, counts: str) -> list[str]:
        """One of many."""
        del counts
        best, place = f"{value.name}_best", f"{value.name}_place"
        body.add(f"{best} = {self._across()}({names[0]}, axis={axis})")
        body.add(f"{place} = tl.min(tl.where({names[0]} == {lift(best)}, {names[1]}, {_BIG}), axis={axis})")
        return [best, place]


REDUCERS: dict[str, Reducer | SoftmaxSums | Moments | Place] = {
    "sum": Reducer(lambda value: "0.0" if is_float(value.dtype) else "0", "{a} + {b}", "tl.sum({a}, axis={axis})"),
    "max": Reducer(_least, "tl.maximum({a}, {b})", "tl.max({a}, axis={axis})"),
    "min": Reducer(_most, "tl.minimum({a}, {b})", "tl.min({a}, axis={axis})"),
    "prod": Reducer(
        lambda value: "1.0" if is_float(value.dtype) else "1", "{a} * {b}", "tl.reduce({a}, {axis}, _multiply)"
    ),
    "softmax_sums": SoftmaxSums(),
    "moments": Moments(),
    "argmax": Place(True),
    "argmin": Place(False),
}
