"""Rows, columns, heads, bins that were never computed: what a tolerance lets hide among right elements.

A tolerance of 10⁻² on a softmax of 4,096 columns lets every element be zero. So, whatever is declared, no slice of an
output along any of its dimensions may be wholly wrong: its error as large as half of what it should be.

kopt's own rule takes a tensor of short rows as one row: beside a column of times in microseconds, one of probabilities
would not count. So each index of a short dimension is held against its own size, and PyTorch's own error there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

WHOLLY = 0.25
"""‖e‖ / ‖y*‖ of a slice from which on it is wholly wrong."""
COUNTS = 0.1
"""RMS of a slice, as a part of the output's, from which on it counts: one that is all rounding says nothing."""
SMALL = 64
"""Elements below which a slice counts only from `COUNTS_SMALL` on: a few elements are easily far off together."""
COUNTS_SMALL = 0.5
OWN = 4.0
"""How much more than PyTorch's own result a slice must be off."""
SHORT = 64
"""A dimension of fewer indices than this holds different things, rather than many of one kind."""
OFF = 1 / 64
"""‖e‖ / ‖y*‖ from which on a slice of a short dimension is wrong, on plain distributions; `WHOLLY` on others."""
UNITS = 64.0
"""Never less than so many rounding errors u of the output's dtype."""
OWN_BY_ITSELF = 16.0
"""How much more than PyTorch's own result such a slice must be off: others may mix slices in their arithmetic."""
NOISE = 2.0**-40
"""RMS of a slice, as a part of the output's, below which it is what float64 leaves of a difference."""
_PIECE = 1 << 22
"""Elements that are looked at together."""


@dataclass(frozen=True)
class Slice:
    """A slice that is wholly wrong."""

    dimension: int
    index: int
    error: float
    """‖e‖ / ‖y*‖."""

    def __str__(self) -> str:
        where = f"all elements at index {self.index} of dimension {self.dimension}"
        return f"{where} are wrong together: their error is {self.error:.2g} times what they should be"


def wholly_wrong(got: Tensor, star: Tensor, native: Tensor | None = None) -> Slice | None:
    """The worst slice along a dimension that is wholly wrong; None where there is none.

    `got`, the oracle's result `star` at any precision, and PyTorch's `native` one have one shape of floating numbers.
    What is not finite in one of them is left out here.
    """
    if got.numel() == 0 or got.dim() == 0:
        return None
    errors, rights = _squares(got, star, star), _squares(star, None, star)
    candidates = [
        _wrong(error, right, got.numel()) if len(right) > 1 or got.dim() == 1 else torch.zeros_like(right)
        for error, right in zip(errors, rights, strict=True)
    ]
    if native is not None and any(bool(ratio.any()) for ratio in candidates):
        own = _squares(native, star, star)
        for ratio, error, mine in zip(candidates, errors, own, strict=True):
            ratio[error <= OWN**2 * mine] = 0.0
    worst = max(range(got.dim()), key=lambda dimension: float(candidates[dimension].max()))
    ratio = candidates[worst]
    return Slice(worst, int(ratio.argmax()), float(ratio.max()) ** 0.5) if bool(ratio.any()) else None


def wrong_by_itself(got: Tensor, star: Tensor, native: Tensor, *, stretched: bool) -> Slice | None:
    """The worst index of a short dimension that is wrong by its own measure; None where there is none.

    Slices of fewer than 64 elements are left out. As in `wholly_wrong`, what is not finite is left out too.
    """
    dims = [d for d, size in enumerate(got.shape) if 1 < size < SHORT and got.numel() >= SMALL * size]
    info = torch.finfo(got.dtype)
    off = max(WHOLLY if stretched else OFF, UNITS * info.eps / 2)
    if not dims or off >= 1:
        return None
    # Hardware may take subnormal numbers of 32 bits for zero; those of 16 bits it does not.
    least = info.smallest_normal * (1.0 if got.dtype.itemsize > 2 else UNITS * info.eps / 2)
    found: Slice | None = None
    own: list[Tensor] = []
    errors, rights = _squares(got, star, star, dims), _squares(star, None, star, dims)
    for n, (error, right) in enumerate(zip(errors, rights, strict=True)):
        elements = got.numel() / len(right)
        wrong = (right >= NOISE**2 * right.mean()) & (error >= off**2 * right) & (error > least**2 * elements)
        wrong &= right > 0
        if bool(wrong.any()):
            own = own or _squares(native, star, star, dims)
            ratio = torch.where(wrong & (error > OWN_BY_ITSELF**2 * own[n]), error / right, 0.0)
            worst = float(ratio.max()) ** 0.5
            if worst > (found.error if found else 0.0):
                found = Slice(dims[n], int(ratio.argmax()), worst)
    return found


def _wrong(error: Tensor, right: Tensor, elements: int) -> Tensor:
    """‖e‖² / ‖y*‖² of each slice that is wholly wrong, 0 for the others."""
    counts = COUNTS_SMALL if elements / len(right) < SMALL else COUNTS
    wrong = (right >= counts**2 * right.mean()) & (right > 0) & (error >= WHOLLY**2 * right)
    return torch.where(wrong, error / right, 0.0)


def _squares(
    values: Tensor, less: Tensor | None, finite: Tensor, dimensions: Sequence[int] | None = None
) -> list[Tensor]:
    """For each dimension, or for some, the sums of (values - less)² of each of its slices, in float64 of shape
    (slices,). Elements that are not finite, there or in `finite`, count as 0."""
    wide = torch.float64 if values.dtype.itemsize > 4 else torch.float32
    asked = range(values.dim()) if dimensions is None else dimensions
    sums = [torch.zeros(values.shape[n], dtype=torch.float64, device=values.device) for n in asked]
    step = max(1, _PIECE * values.shape[0] // values.numel())
    for first in range(0, values.shape[0], step):
        part = slice(first, first + step)
        square = values[part].to(wide)
        if less is not None:
            square = square - less[part].to(wide)
        square = square * square
        known = finite[part].isfinite() & square.isfinite()
        if not bool(known.all()):
            square = torch.where(known, square, 0.0)
        for dimension, total in zip(asked, sums, strict=True):
            others = [n for n in range(values.dim()) if n != dimension]
            found = square.sum(others, dtype=torch.float64) if others else square.double()
            if dimension == 0:
                total[part] += found
            else:
                total += found
    return sums
