"""Lines of a kernel: values of a segment over a tile, with the masks that the sizes need.

A tile lies along the reduced axes (`r`). Beside them it has several rows (`o`), or several columns behind them (`i`);
with one row it is flat. A value that does not vary along the reduced axes is a row's: a number for each row or column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from loop.search.generators.lines.operators import literal, triton_type
from loop.search.generators.lines.reducers import REDUCERS
from loop.search.generators.lines.tile import Tile
from loop.search.generators.segment import REDUCTIONS, SCANS, Memory, Segment, Value, runs

_LARGE = 2**31 - 1


@dataclass
class Body:
    """The lines of one kernel, as they are made."""

    segment: Segment
    tile: Tile
    depth: int = 1
    lines: list[str] = field(default_factory=list)
    done: dict[str, str] = field(default_factory=dict)
    """Value → its name in the kernel."""
    used: list[str] = field(default_factory=list)
    """Memory that the kernel gets a pointer of."""
    hints: dict[str, str] = field(default_factory=dict)
    """Memory → further arguments of its loads."""
    store_hint: str = ""

    def add(self, line: str) -> None:
        """A line, at the present depth."""
        self.lines.append("    " * self.depth + line)

    # --- where things are -------------------------------------------------------------------------------------------

    def _groups(self, axes: Iterable[int]) -> list[str]:
        """Of `o`, `r` and `i`, those that axes belong to."""
        segment, own = self.segment, set(axes)
        found = [("o", segment.outer), ("r", segment.along), ("i", segment.inner)]
        if not segment.reduced:
            found = [("r", tuple(range(len(segment.sizes))))]
        return [name for name, group in found if own & set(group)]

    def _axes(self, group: str) -> tuple[int, ...]:
        segment = self.segment
        if not segment.reduced:
            return tuple(range(len(segment.sizes))) if group == "r" else ()
        return {"o": segment.outer, "r": segment.along, "i": segment.inner}[group]

    def index(self, axis: int) -> tuple[str, str]:
        """(the index along an axis, the group that it is found by)."""
        (group,) = self._groups([axis])
        axes = self._axes(group)
        behind = self.segment.group(one for one in axes if one > axis)
        text = group if behind == 1 else f"({group} // {behind})"
        if axes[0] != axis and self.segment.group(one for one in axes if one < axis) > 1:
            text = f"({text} % {self.segment.sizes[axis]})"
        return text, group

    def offset(self, memory: Memory, names: dict[str, str], flat: bool) -> str:
        """Elements from the pointer. `names`: what `o`, `r`, `i` are called; `flat`: nothing is lifted."""
        parts = [str(memory.offset)] if memory.offset else []
        for group in ("o", "r", "i"):
            axes = self._axes(group)
            sizes = [self.segment.sizes[axis] for axis in axes]
            strides = [memory.strides[axis] for axis in axes]
            name = names.get(group, group)
            if sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) > _LARGE:
                name = f"{name}.to(tl.int64)"
            behind, terms = 1, list[str]()
            for size, stride in reversed(runs(sizes, strides)):
                if stride:
                    term = name if behind == 1 else f"({name} // {behind})"
                    if behind * size < self.segment.group(axes):
                        term = f"({term} % {size})"
                    terms.append(term if stride == 1 else f"{term} * {stride}")
                behind *= size
            if terms:
                text = " + ".join(reversed(terms))
                lifted = text if flat else self.tile.lift(f"({text})" if len(terms) > 1 or " " in text else text, group)
                parts.append(lifted)
        return " + ".join(parts) or "0"

    def mask(self, axes: Iterable[int], flat: bool) -> str:
        """What is inside, of those groups that axes belong to; empty where all is."""
        parts = [
            (f"{group}_in" if flat else self.tile.lift(f"{group}_in", group))
            for group in self._groups(axes)
            if group in self.tile.masks
        ]
        return " & ".join(parts)

    # --- values -----------------------------------------------------------------------------------------------------

    def varies(self, value: Value) -> bool:
        """Whether a value varies along the reduced axes: then it is a tile's."""
        return "r" in self._groups(value.axes)

    def pointer(self, memory: Memory) -> str:
        """The kernel's argument."""
        if memory.name not in self.used:
            self.used.append(memory.name)
        return memory.name

    def get(self, name: str) -> str:
        """A value's name in the kernel; the lines that compute it come first."""
        if name in self.done:
            return self.done[name]
        value = self.segment.values[name]
        tiled = self.varies(value)
        args = [self._argument(arg, tiled) for arg in value.args]
        if value.op == "load":
            text = self._load(value, tiled)
        elif value.op == "index":
            index, group = self.index(int(value.args[0]))
            text = self.tile.lift(index, group) if tiled else index
        elif value.op in SCANS:
            text = self._scan(value, args[0])
        elif value.op.startswith("="):
            text = value.op[1:].format(*args)
        else:
            raise AssertionError(f"{value.op} is no value of a tile")
        self.add(f"{name} = {text}")
        self.done[name] = name
        return name

    def _argument(self, arg: str | float | int | bool, tiled: bool) -> str:
        if not isinstance(arg, str):
            return literal(arg)
        name = self.get(arg)
        value = self.segment.values[arg]
        if tiled and not self.varies(value) and self._is_vector(value):
            return self.tile.lift_row(name)
        return name

    def _is_vector(self, value: Value) -> bool:
        """Whether a row's value is a number for each row or column of the tile, and no single one."""
        groups = self._groups(value.axes)
        return {"flat": False, "rows": "o" in groups, "columns": "i" in groups}[self.tile.kind]

    def lifted(self, name: str) -> str:
        """A row's value, by its name in the segment, as it stands in the tile."""
        return self._argument(name, True)

    def _load(self, value: Value, tiled: bool) -> str:
        memory = value.memory
        assert memory is not None
        mask = self.mask(value.axes, flat=not tiled)
        words = [f"{self.pointer(memory)} + {self.offset(memory, {}, not tiled)}"]
        if mask:
            words += [f"mask={mask}", "other=0"]
        if tiled and memory.name in self.hints:
            words.append(self.hints[memory.name])
        text = f"tl.load({', '.join(words)})"
        if memory.dtype != value.dtype:
            text += f".to({triton_type(value.dtype)})"
        return f"({text} != 0)" if memory.dtype == "bool" else text

    def _scan(self, value: Value, arg: str) -> str:
        """A running sum within the tile, after what came before it (`carry_…`), if there is something."""
        kind, axis = value.op, self.tile.axis
        identity = "0" if kind == "cumsum" else "1"
        mask = self.mask(self.segment.along, flat=False)
        text = f"tl.where({mask}, {arg}, {identity})" if mask else arg
        own = f"{value.name}_own"
        self.add(f"{own} = {text}")
        carried = f"carry_{value.name}"
        if carried not in self.done:
            return f"tl.{kind}({own}, axis={axis})"
        before = self.tile.lift_row(carried) if self.tile.kind != "flat" else carried
        self.add(f"{value.name}_run = tl.{kind}({own}, axis={axis})")
        if kind == "cumsum":
            self.add(f"{value.name} = {value.name}_run + {before}")
            self.add(f"{carried} += tl.sum({own}, axis={axis})")
        else:
            self.add(f"{value.name} = {value.name}_run * {before}")
            self.add(f"{carried} = {carried} * tl.reduce({own}, {axis}, _multiply)")
        return value.name

    # --- reductions -------------------------------------------------------------------------------------------------

    def at_level(self, level: int) -> list[Value]:
        """The reductions that need so many before them, themselves among them."""
        return [one for one in self.segment.reductions if self.segment.level(one.name) == level]

    def rows_until(self, level: int) -> None:
        """Compute every row's value that needs at most so many reductions, so that loops find them."""
        for value in self.segment.values.values():
            own = not self.varies(value) and value.op not in (*REDUCTIONS, "part")
            if own and self.segment.level(value.name) <= level and self._wanted(value.name):
                self.get(value.name)

    def _wanted(self, name: str) -> bool:
        """Whether something that is stored, or another value, needs it."""
        return any(name == stored for stored, _ in self.segment.stores) or any(
            name in one.args for one in self.segment.values.values()
        )

    def r_inside(self) -> str:
        """What of the tile lies inside the reduced axes; empty where all does."""
        return self.tile.lift("r_in", "r") if "r" in self.tile.masks else ""

    def reduce_whole(self, value: Value, count: str) -> None:
        """Reduce a tile that holds all there is, `count` elements: its parts are known then."""
        reducer = REDUCERS[value.op]
        arg = self.get(str(value.args[0]))
        states = reducer.whole(self, value, arg, count)
        self.finish(value, states)

    def finish(self, value: Value, states: Sequence[str]) -> None:
        """The states of a reduction are whole: give its parts their names."""
        for part in self.segment.values.values():
            if part.op == "part" and part.args[0] == value.name:
                self.done[part.name] = states[int(part.args[1])]

    # --- the end ----------------------------------------------------------------------------------------------------

    def store(self, *, tiles: bool) -> None:
        """Store what varies along the reduced axes, or what does not."""
        for name, memory in self.segment.stores:
            value = self.segment.values[name]
            if self.varies(value) is not tiles:
                continue
            made = self.get(name)
            mask = self.mask(value.axes, flat=not tiles)
            offset = self.offset(memory, {}, not tiles)
            hint = f", {self.store_hint}" if tiles and self.store_hint else ""
            shown = (
                f"{made}.to({triton_type(memory.dtype)})"
                if memory.dtype != value.dtype and memory.dtype != "bool"
                else made
            )
            if memory.dtype == "bool":
                shown = f"({made} != 0)" if value.dtype != "bool" else made
            self.add(f"tl.store({self.pointer(memory)} + {offset}, {shown}{f', mask={mask}' if mask else ''}{hint})")

    @property
    def stores_rows(self) -> bool:
        """Whether something is stored that does not vary along the reduced axes."""
        return any(not self.varies(self.segment.values[name]) for name, _ in self.segment.stores)

    @property
    def stores_tiles(self) -> bool:
        """Whether something is stored that varies along them."""
        return any(self.varies(self.segment.values[name]) for name, _ in self.segment.stores)
