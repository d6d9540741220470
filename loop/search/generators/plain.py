"""Kernels of a small segment beside the one that is searched: a form that is never bad."""

from __future__ import annotations

from loop.search.generators.kernels import Kernel, elementwise, looped, split, whole
from loop.search.generators.segment import Segment
from loop.search.generators.shape import Shape, cdiv, power
from loop.search.variant import Target

_WIDE = 4096
"""Elements of a row up to which a program takes it whole."""

_FEW = 32768
"""Elements of a row that a program takes whole where there are few rows, so that one launch does."""


def plain(segment: Segment, name: str, target: Target) -> list[Kernel]:
    """Its kernels."""
    if not segment.reduced:
        return [elementwise(segment, name, 1024, {"num_warps": 4})]
    shape = Shape.of(segment)
    if shape.inner == 1 and shape.along <= _WIDE:
        return [whole(segment, name, 1, {"num_warps": 4})]
    if shape.inner == 1 and shape.along <= _FEW and shape.outer <= target.multiprocessors:
        return [whole(segment, name, 1, {"num_warps": 32})]
    columns = min(128, power(shape.inner)) if shape.inner > 1 else 1
    block = min(4096, power(shape.along)) if shape.inner == 1 else min(16, power(shape.along))
    programs = shape.programs(columns)
    parts = min(256, power(cdiv(2 * target.multiprocessors, programs)), power(cdiv(shape.along, 4 * block)))
    if parts > 1 and not segment.scans:
        return split(segment, name, columns, block, parts, (columns, block), {"num_warps": 4}, 1)
    return [looped(segment, name, columns, block, {"num_warps": 8 if columns == 1 else 4}, 1, False)]
