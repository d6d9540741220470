"""Rows, columns, heads, bins that were never computed: what a declared tolerance lets hide among right elements.

A tolerance of 10⁻² on a softmax of 4,096 columns lets every element be zero. So, whatever is declared, no slice of an
output along any of its dimensions may be wholly wrong: its error as large as half of what it should be.
"""

from __future__ import annotations

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


def _wrong(error: Tensor, right: Tensor, elements: int) -> Tensor:
    """‖e‖² / ‖y*‖² of each slice that is wholly wrong, 0 for the others."""
    counts = COUNTS_SMALL if elements / len(right) < SMALL else COUNTS
    wrong = (right >= counts**2 * right.mean()) & (right > 0) & (error >= WHOLLY**2 * right)
    return torch.where(wrong, error / right, 0.0)


def _squares(values: Tensor, less: Tensor | None, finite: Tensor) -> list[Tensor]:
    """For each dimension the sums of (values - less)² of each of its slices, in float64 of shape (slices,). Elements
    that are not finite, there or in `finite`, count as 0."""
    wide = torch.float64 if values.dtype.itemsize > 4 else torch.float32
    sums = [torch.zeros(n, dtype=torch.float64, device=values.device) for n in values.shape]
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
        for dimension, total in enumerate(sums):
            others = [n for n in range(values.dim()) if n != dimension]
            found = square.sum(others, dtype=torch.float64) if others else square.double()
            if dimension == 0:
                total[part] += found
            else:
                total += found
    return sums
