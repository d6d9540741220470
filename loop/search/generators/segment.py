"""What a generator works from: a stretch of a reference that one kernel can compute, over one domain of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

FLOATS = ("float16", "bfloat16", "float32", "float64")
Argument = "str | float | int | bool"


class UnreadableError(Exception):
    """What a reference computes has no generator; the text says what."""


@dataclass(frozen=True)
class Memory:
    """A tensor in memory: an argument, a weight, or a buffer of the host's."""

    name: str
    """`x0`, `w1`, `t3`: what it is called in host and kernel."""
    dtype: str
    strides: tuple[int, ...]
    """In elements, for each axis of the domain; 0 where it does not vary."""
    offset: int = 0


@dataclass(frozen=True)
class Value:
    """A value of a segment's program."""

    name: str
    op: str
    """`load`, `index`, `part` (one result of a reduction), or the name of an operator."""
    args: tuple[str | float | int | bool, ...] = ()
    """Names of values, and numbers. Of `index`: the axis. Of `part`: the reduction, and which of its results."""
    axes: frozenset[int] = frozenset()
    """Of the domain, that it varies over."""
    dtype: str = "float32"
    memory: Memory | None = None
    """Of `load`."""


@dataclass(frozen=True)
class Product:
    """Sizes and operands of `A @ B`, whose result a segment goes on with."""

    batch: int
    rows: int
    columns: int
    depth: int
    left: Memory
    """Strides: batch, row, depth."""
    right: Memory
    """Strides: batch, depth, column."""
    value: str
    """The product's name in the segment."""
    dtype: str
    """What operands have."""

    @property
    def bytes(self) -> int:
        """Of the operands."""
        sides = self.rows * self.depth + self.depth * self.columns
        return self.batch * sides * element_bytes(self.dtype)

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch * self.rows * self.columns * self.depth


@dataclass
class Segment:
    """Values over a domain, reductions over one set of its axes among them, and what is stored."""

    sizes: tuple[int, ...]
    reduced: frozenset[int] = frozenset()
    """Axes that its reductions and scans go along; empty where it has none."""
    values: dict[str, Value] = field(default_factory=dict)
    stores: list[tuple[str, Memory]] = field(default_factory=list)
    product: Product | None = None
    """The product of matrices that it begins with, over its last two axes."""

    def group(self, axes: Iterable[int]) -> int:
        """The product of sizes."""
        return math.prod(self.sizes[axis] for axis in axes)

    def spelled(self, axes: Iterable[int]) -> str:
        """The product as an expression."""
        return " * ".join(str(self.sizes[axis]) for axis in axes if self.sizes[axis] > 1) or "1"

    @property
    def inner(self) -> tuple[int, ...]:
        """Axes behind the last reduced one, where there is one."""
        if not self.reduced:
            return ()
        return tuple(axis for axis in range(max(self.reduced) + 1, len(self.sizes)) if self.sizes[axis] > 1)

    @property
    def along(self) -> tuple[int, ...]:
        """Axes that are reduced, in order."""
        return tuple(sorted(self.reduced))

    @property
    def outer(self) -> tuple[int, ...]:
        """All other axes."""
        return tuple(axis for axis in range(len(self.sizes)) if axis not in self.reduced and axis not in self.inner)

    @property
    def reductions(self) -> list[Value]:
        """Values that are a reduction."""
        return [one for one in self.values.values() if one.op in REDUCTIONS]

    @property
    def scans(self) -> list[Value]:
        """Values that are a running sum or product."""
        return [one for one in self.values.values() if one.op in SCANS]

    @property
    def loads(self) -> list[Value]:
        """Values that are read from memory."""
        return [one for one in self.values.values() if one.op == "load"]

    def level(self, name: str) -> int:
        """How many reductions must be done, one after the other, before a value is known."""
        known: dict[str, int] = {}
        for one in self.values.values():
            below = max((known[arg] for arg in one.args if isinstance(arg, str)), default=0)
            known[one.name] = below + (one.op in REDUCTIONS)
        return known[name]

    @property
    def levels(self) -> int:
        """Reductions of the longest chain."""
        return max((self.level(one.name) for one in self.reductions), default=0)

    @property
    def maps(self) -> bool:
        """Whether something is stored that varies along the reduced axes."""
        return any(self.values[name].axes & self.reduced for name, _ in self.stores)

    def bytes(self) -> int:
        """What must be read and written, each element once."""
        moved = [(one.memory, one.axes) for one in self.loads if one.memory is not None]
        seen = dict(moved)
        seen |= {memory: self.values[name].axes for name, memory in self.stores}
        made = sum(self.group(axes) * element_bytes(memory.dtype) for memory, axes in seen.items())
        return made + (self.product.bytes if self.product else 0)


REDUCTIONS = ("sum", "max", "min", "prod", "softmax_sums", "moments", "argmax", "argmin", "any", "all")
SCANS = ("cumsum", "cumprod")


def element_bytes(dtype: str) -> int:
    """Bytes of an element."""
    return {"float64": 8, "int64": 8, "float16": 2, "bfloat16": 2, "int16": 2, "bool": 1, "int8": 1, "uint8": 1}.get(
        dtype, 4
    )


def is_float(dtype: str) -> bool:
    """Whether it is one of the floating types that kernels compute with."""
    return dtype in FLOATS


def runs(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride) of neighbouring axes, joined where memory goes on from one to the next; the last moves fastest."""
    found: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if found and found[-1][1] == stride * size:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return found
