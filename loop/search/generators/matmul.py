"""Products of matrices with what follows them, element by element, in the same kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loop.search.generators.kernels import Kernel, finished
from loop.search.generators.lines.body import Body
from loop.search.generators.lines.tile import Tile
from loop.search.generators.segment import Memory, Product, Segment, Value, element_bytes
from loop.search.generators.shape import cdiv, quotient


@dataclass(frozen=True)
class Blocks:
    """A tile of the result, and how it is computed."""

    rows: int
    columns: int
    depth: int
    group: int
    """Rows of tiles that neighbouring programs share a column with."""
    precision: str = ""
    """Of float32 operands: `ieee`, or the sum of several products of narrower parts, `tf32x3` or `bf16x6`."""
    waves: int = 0
    """Programs a multiprocessor that go from tile to tile; 0: a program a tile."""
    descriptors: bool = False
    """Whether operands are read by tensor descriptors, in bulk."""


def describable(product: Product) -> bool:
    """Whether both operands can have tensor descriptors: one batch, and rows that begin at multiples of 16 bytes."""
    size = element_bytes(product.dtype)
    return product.batch == 1 and all(
        one.offset == 0 and 1 in one.strides[1:] and max(one.strides[1:]) * size % 16 == 0
        for one in (product.left, product.right)
    )


def _descriptor(memory: Memory, sizes: Sequence[int], names: Sequence[str], block: Sequence[int]) -> tuple[str, ...]:
    """(an expression of the host's; indexes of a block, in the memory's own order; what turns the block around)."""
    turned = memory.strides[1] == 1 and memory.strides[2] != 1
    order = (1, 0) if turned else (0, 1)
    shape, tile = ([one[n] for n in order] for one in (sizes, block))
    strides = [max(memory.strides[1:]), 1]
    made = f"TensorDescriptor(aligned({memory.name}), {shape}, {strides}, {tile})"
    return made, ", ".join(names[n] for n in order), ".T" if turned else ""


class _Result(Body):
    """The lines behind the product: row `m` and column `n` of the domain's last two axes."""

    def __init__(self, segment: Segment, product: Product) -> None:
        super().__init__(segment, Tile("flat"))
        self.product = product

    def offset(self, memory: Memory, names: dict[str, str], flat: bool) -> str:
        """Elements from the pointer."""
        del names, flat
        parts = [str(memory.offset)] if memory.offset else []
        last = len(self.segment.sizes) - 1
        indexes = {last: "n[None, :]", last - 1: "m[:, None]"}
        if last >= 2:
            indexes[last - 2] = "batch"
        for axis, stride in enumerate(memory.strides):
            if stride:
                wide = _wide(self.segment.sizes[axis], stride) if axis >= last - 1 else ""
                parts.append(f"{indexes[axis]}{wide} * {stride}" if stride != 1 else indexes[axis])
        return " + ".join(parts) or "0"

    def index(self, axis: int) -> tuple[str, str]:
        """The index along an axis of the domain, as it stands in the tile."""
        return {0: "n[None, :]", 1: "m[:, None]"}.get(len(self.segment.sizes) - 1 - axis, "batch"), "r"

    def mask(self, axes: Iterable[int], flat: bool) -> str:
        """What lies inside."""
        del flat
        last = len(self.segment.sizes) - 1
        own = frozenset(axes)
        parts = []
        if last - 1 in own and "m" in self.masked:
            parts.append(f"(m < {self.product.rows})[:, None]")
        if last in own and "n" in self.masked:
            parts.append(f"(n < {self.product.columns})[None, :]")
        return " & ".join(parts)

    masked: frozenset[str] = frozenset()

    def varies(self, value: Value) -> bool:
        """Everything is the tile's."""
        del value
        return True


def matmul(segment: Segment, product: Product, name: str, blocks: Blocks, options: Mapping[str, int]) -> Kernel:
    """One kernel: the product of a tile, then the segment's operators, then its stores."""
    body = _Result(segment, product)
    uneven = {"m": product.rows % blocks.rows, "n": product.columns % blocks.columns, "k": product.depth % blocks.depth}
    body.masked = frozenset(axis for axis, rest in uneven.items() if rest)
    down, across = cdiv(product.rows, blocks.rows), cdiv(product.columns, blocks.columns)
    tiles = down * across * product.batch
    pid = "tl.program_id(0)"
    if blocks.waves:
        flat = ", flatten=True" if blocks.descriptors else ""
        body.add(f"for turn in tl.range(tl.program_id(0), {tiles}, tl.num_programs(0){flat}):")
        body.depth, pid = 2, "turn"
    body.add(f"tile = {pid} % {down * across}")
    body.add(f"batch = tl.full([], 0, tl.int64) + {pid} // {down * across}")
    body.add(f"first = tile // {blocks.group * across} * {blocks.group}")
    body.add(f"high = tl.minimum({down} - first, {blocks.group})")
    body.add(f"m_at = (first + tile % {blocks.group * across} % high) * ROWS")
    body.add(f"n_at = tile % {blocks.group * across} // high * COLUMNS")
    body.add("m = m_at + tl.arange(0, ROWS)")
    body.add("n = n_at + tl.arange(0, COLUMNS)")
    read = _described(body, product, blocks) if blocks.descriptors else _pointed(body, product, bool(uneven["k"]))
    said = ", input_precision=PRECISION" if product.dtype == "float32" else ""
    body.add("total = tl.zeros((ROWS, COLUMNS), tl.float32)")
    body.add(f"for start in range(0, {product.depth}, DEPTH):")
    body.depth += 1
    for line in (*read.lines, f"total = tl.dot(x, y, total{said})", *read.after):
        body.add(line)
    body.depth -= 1
    body.done[product.value] = "total"
    body.store(tiles=True)
    constants: dict[str, int | str] = {"ROWS": blocks.rows, "COLUMNS": blocks.columns, "DEPTH": blocks.depth}
    if said:
        constants["PRECISION"] = f'"{blocks.precision}"'
        if blocks.precision == "bf16x6":  # Triton's interpreter does not know it, and computes in float32
            constants["PRECISION"] = '"ieee" if triton.knobs.runtime.interpret else "bf16x6"'
    grid = " * ".join(
        [
            *([str(product.batch)] if product.batch > 1 else []),
            quotient(str(product.rows), blocks.rows),
            quotient(str(product.columns), blocks.columns),
        ]
    )
    if blocks.waves:
        grid = f"min({grid}, {blocks.waves} * processors(device))"
    names = [one for one, _ in read.scalars]
    return Kernel(
        name, finished(name, body, list(constants), names), tuple(body.used), grid, constants, options,
        scalars=read.scalars,
    )  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """How operands are read, in the loop along the depth."""

    lines: tuple[str, ...]
    after: tuple[str, ...] = ()
    """Behind the product."""
    scalars: tuple[tuple[str, str], ...] = ()
    """(name in the kernel, expression of the host's)."""


def _described(body: _Result, product: Product, blocks: Blocks) -> _Read:
    """By descriptors: what lies outside comes as zero."""
    del body
    rows, columns, depth = (product.rows, blocks.rows), (product.columns, blocks.columns), (product.depth, blocks.depth)
    made, where, turned = _descriptor(product.left, *_pairs(rows, depth, ("m_at", "start")))
    made_, where_, turned_ = _descriptor(product.right, *_pairs(depth, columns, ("start", "n_at")))
    lines = (f"x = left.load([{where}]){turned}", f"y = right.load([{where_}]){turned_}")
    return _Read(lines, (), (("left", made), ("right", made_)))


def _pairs(first: tuple[int, int], second: tuple[int, int], names: tuple[str, str]) -> tuple[Sequence[Any], ...]:
    return (first[0], second[0]), names, (first[1], second[1])


def _pointed(body: _Result, product: Product, uneven: bool) -> _Read:
    """By pointers, which go on along the depth."""
    left, right = body.pointer(product.left), body.pointer(product.right)
    row, column = ("m", "n")
    if "m" in body.masked:
        body.add(f"m_read = m % {product.rows}")
        row = "m_read"
    if "n" in body.masked:
        body.add(f"n_read = n % {product.columns}")
        column = "n_read"
    a, b = product.left.strides, product.right.strides
    row = f"{row}[:, None]{_wide(product.rows, a[1])} * {a[1]}"
    column = f"{column}[None, :]{_wide(product.columns, b[2])} * {b[2]}"
    body.add("k = tl.arange(0, DEPTH)")
    body.add(f"left = {left} + {product.left.offset} + batch * {a[0]} + {row} + k[None, :] * {a[2]}")
    body.add(f"right = {right} + {product.right.offset} + batch * {b[0]} + k[:, None] * {b[1]} + {column}")
    masks = [
        f", mask=(k < {product.depth} - start)[{index}], other=0.0" if uneven else ""
        for index in ("None, :", ":, None")
    ]
    lines = (f"x = tl.load(left{masks[0]})", f"y = tl.load(right{masks[1]})")
    return _Read(lines, (f"left += DEPTH * {a[2]}", f"right += DEPTH * {b[1]}"))


def _wide(size: int, stride: int) -> str:
    """A conversion of an index whose offsets do not fit in 32 bits."""
    return ".to(tl.int64)" if size * stride > 2**31 - 1 else ""
