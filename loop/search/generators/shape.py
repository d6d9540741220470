"""Sizes of a segment's kernels, as numbers and as expressions of the host.

A grid is written as arithmetic of the problem's sizes (`48 * triton.cdiv(3000, 64)`): a number that nobody can follow
could be one of some GPU, and the gate refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from loop.search.generators.lines.tile import Tile
from loop.search.generators.segment import Segment


def cdiv(a: int, b: int) -> int:
    """Rounded up."""
    return -(-a // b)


def power(n: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << (max(n, 1) - 1).bit_length()


def quotient(spelled: str, by: int | str) -> str:
    """Rounded up, as an expression of the host."""
    return spelled if by in (1, "1") else f"triton.cdiv({spelled}, {by})"


@dataclass(frozen=True)
class Shape:
    """Sizes of a segment with reductions, and how a tile lies in it."""

    outer: int
    along: int
    inner: int
    spelled: tuple[str, str, str]
    """The three as products of the problem's sizes: what a host computes a grid from."""

    @staticmethod
    def of(segment: Segment) -> Shape:
        """Of a segment."""
        groups = (segment.outer, segment.along, segment.inner)
        outer, along, inner = map(segment.group, groups)
        spelled_outer, spelled_along, spelled_inner = map(segment.spelled, groups)
        return Shape(outer, along, inner, (spelled_outer, spelled_along, spelled_inner))

    def tile(self, beside: int, block: int, span: int = 0) -> Tile:
        """A tile of `block` along the reduced axes, and so many rows or columns beside. `span`: what a program has of
        the reduced axes, where that is not all."""
        masks = set()
        if self.inner > 1:
            if self.inner % beside:
                masks.add("i")
        elif beside > 1 and self.outer % beside:
            masks.add("o")
        if self.along % block or (span and self.along % span) or (span and span % block):
            masks.add("r")
        kind = "columns" if self.inner > 1 else "flat" if beside == 1 else "rows"
        return Tile(kind, frozenset(masks))  # type: ignore[arg-type]  # one of the kinds of a tile

    def programs(self, beside: int) -> int:
        """Programs that share all rows and columns among them."""
        return self.outer * cdiv(self.inner, beside) if self.inner > 1 else cdiv(self.outer, beside)

    def grid(self, beside: int, times: str = "1") -> str:
        """`programs` times an expression, as an expression of the host."""
        outer, _, inner = self.spelled
        factors = [outer, quotient(inner, beside)] if self.inner > 1 else [quotient(outer, beside)]
        return " * ".join([one for one in (*factors, times) if one != "1"] or ["1"])

    def pieces(self, size: str) -> str:
        """How many pieces of a size a row has, as an expression of the host."""
        return quotient(self.spelled[1], size)
