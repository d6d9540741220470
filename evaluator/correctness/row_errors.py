"""The errors of an output, row by row: the arithmetic under `evaluator/correctness/tolerance.py`.

Tensors are looked at in pieces, so that the memory that it takes does not grow with them, and a piece is one batch of
operations on its device: the host waits once for each piece, never for a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

_NEAR_TOP = 2.0**10
"""Where right numbers overflow, so may a step on the way to those that are smaller than the largest by no more."""
SHORT_ROW = 64
"""Rows shorter than this say too little by themselves: the whole tensor is one row then."""
_CPU_PIECE = 1 << 17
"""Elements of a piece: what a CPU's cache holds."""
RARE = 1000
"""One row in so many may need twice κ: of 65,536 rows of attention some have a result that cancels and, in PyTorch's
own kernel, happens to have next to no error; another honest order of the same steps has not, and needed 2.24 at fp16.
Less precision shows in many rows, and a row that is wrong is off by more."""
_GPU_PIECE = 1 << 21, 1 << 25
"""Least and most on a GPU, where each takes `_TEMPORARY` bytes: as many as a quarter of the free memory holds."""
_TEMPORARY = 80


@dataclass(frozen=True)
class Block:
    """A contiguous piece of an output: whole rows, or a part of one."""

    first: int
    """Flat index of its first element."""
    error: Tensor
    """e = y − y*; 0 where NaN or an infinity stands in one of the two."""
    own: Tensor | None
    """e_p, PyTorch's own error; 0 where its result is not finite. None without such a result."""
    star: Tensor
    """y*; 0 where it is not finite."""
    wrong: Tensor | None
    """Where NaN or an infinity stands in one of the two alone; None where all is finite."""


class Rows:
    """An output, the oracle and PyTorch's own result as rows of equal length."""

    def __init__(self, got: Tensor, reference: Tensor, native: Tensor | None, *, pairs: bool, piece: int) -> None:
        last = got.shape[-1] if got.dim() else 1
        self.length = last if last >= SHORT_ROW * (2 if pairs else 1) else got.numel()
        self.count = got.numel() // self.length
        self.dtype = got.dtype
        self.got, self.reference = got.reshape(-1, self.length), reference.reshape(-1, self.length)
        self.native = None if native is None else native.reshape(-1, self.length)
        self.piece = piece or _piece(got.device)
        floating = got.is_floating_point()
        info = torch.finfo(got.dtype if floating else torch.float64)
        self.unit, self.tiny, self.top = info.eps / 2, info.smallest_normal, info.max
        self.wide = torch.float32 if floating and got.dtype.itemsize <= 4 else torch.float64
        self._beyond: bool | None = None

    def cuts(self) -> Iterator[tuple[tuple[slice, slice], int, bool]]:
        """Each piece, the flat index of its first element, and whether its rows end with it."""
        high, width = max(1, self.piece // self.length), min(self.length, self.piece)
        for row in range(0, self.count, high):
            for column in range(0, self.length, width):
                cut = (slice(row, row + high), slice(column, column + width))
                yield cut, row * self.length + column, column + width >= self.length

    def block(self, cut: tuple[slice, slice], first: int) -> Block:
        """One piece. Outputs of up to 32 bits are subtracted at fp32, which is exact where the difference is small."""
        star = self.star(cut).to(self.wide)
        error = self.got[cut].to(self.wide) - star
        own = None if self.native is None else self.native[cut].to(self.wide) - star
        sums = torch.stack([t.sum() for t in (error, own) if t is not None])
        if bool(sums.isfinite().all()):
            return Block(first, error, own, star, None)
        return self._masked(cut, first)

    def _masked(self, cut: tuple[slice, slice], first: int) -> Block:
        star, got = self.star(cut).double(), self.got[cut].double()
        size = self.reference[cut].double().abs()
        edge = size.isfinite() & (size >= self.top * (1 - 2 * self.unit)) & (size <= self.top * (1 + 2 * self.unit))
        star = torch.where(edge, star.clamp(-self.top, self.top), star)
        got = torch.where(edge, got.clamp(-self.top, self.top), got)
        finite = star.isfinite()
        wrong = ~((finite & got.isfinite()) | (star == got) | (star.isnan() & got.isnan()))
        if self._overflows():
            wrong &= got.isfinite() | (size.nan_to_num(0.0, math.inf) < self.top / _NEAR_TOP)
        error = torch.where(finite & got.isfinite(), got - star, 0.0)
        own = None
        if self.native is not None:
            own = self.native[cut].double() - star
            own = torch.where(own.isfinite(), own, 0.0)
        return Block(first, error, own, torch.where(finite, star, 0.0), wrong)

    def _overflows(self) -> bool:
        """Whether right numbers lie beyond the dtype: an infinity is then a number that was too large, and not one that
        the problem means."""
        if self._beyond is None:
            wider = self.reference.dtype.is_floating_point and self.reference.dtype.itemsize > self.dtype.itemsize
            sizes = (self.reference[cut].abs() for cut, _, _ in self.cuts()) if wider else iter(())
            self._beyond = any(
                bool(((size > self.top * (1 + 2 * self.unit)) & size.isfinite()).any()) for size in sizes
            )
        return self._beyond

    def unequal(self, cut: tuple[slice, slice]) -> Tensor:
        """Where a piece differs from y* by value; NaN equals NaN."""
        got, star = self.got[cut], self.star(cut)
        if star.is_floating_point():
            got, star = got.to(self.wide), star.to(self.wide)
            return ~((got == star) | (got.isnan() & star.isnan()))
        return got.to(torch.int64) != star.to(torch.int64)

    def star(self, cut: tuple[slice, slice] | tuple[int, int]) -> Tensor:
        """y*: the oracle at the output's dtype."""
        return self.reference[cut].to(self.dtype) if self.dtype.is_floating_point else self.reference[cut]

    def largest_error(self, row: int) -> int:
        """Flat index of the largest |e| of a row."""
        at, largest = row * self.length, -1.0
        for column in range(0, self.length, self.piece):
            block = self.block((slice(row, row + 1), slice(column, column + self.piece)), row * self.length + column)
            peak, index = block.error.abs().flatten().max(0)
            if float(peak) > largest:
                at, largest = block.first + int(index), float(peak)
        return at

    def at(self, index: int) -> tuple[float | int, float | int]:
        """y* and the output's value at a flat index."""
        place = divmod(index, self.length)
        return self.star(place).item(), self.got[place].item()


def _piece(device: torch.device) -> int:
    if device.type == "cpu":
        return _CPU_PIECE
    least, most = _GPU_PIECE
    fitting = torch.cuda.mem_get_info(device)[0] // (4 * _TEMPORARY)
    return int(max(least, min(most, fitting)))


@dataclass
class Top:
    """The largest of values that arrive piece by piece, and where it stands; read from the device once, at the end."""

    values: list[Tensor] = field(default_factory=list)
    places: list[Tensor] = field(default_factory=list)

    def add(self, values: Tensor, first: int) -> None:
        """More values; `first` is the place of the first of them."""
        values = values.flatten()
        self.values.append(values.amax())
        self.places.append(values.argmax() + first)

    def read(self) -> tuple[float, int]:
        """(the largest value, its place); (0, -1) where none arrived. NaN is larger than everything."""
        if not self.values:
            return 0.0, -1
        values = torch.stack(self.values).double()
        best = values.argmax()
        return float(values[best]), int(torch.stack(self.places)[best])


@dataclass
class Norms:
    """The ratios of rows that arrive piece by piece, of which the `spare` largest count by half."""

    spare: int
    largest: list[Tensor] = field(default_factory=list)

    def add(self, values: Tensor) -> None:
        """More values."""
        self.largest.append(values.topk(min(self.spare + 1, len(values))).values)

    def read(self) -> float:
        """What is to be held against κ; 0 where none arrived. NaN is larger than everything."""
        if not self.largest:
            return 0.0
        values = torch.cat(self.largest)
        values = values.topk(min(self.spare + 1, len(values))).values
        return float(torch.maximum(values[0] / 2, values[-1]))


@dataclass(frozen=True)
class Measured:
    """The errors of an output in units of its allowance before κ."""

    rms: float
    """Largest RMS(e) / max(RMS(e_p), u·RMS(y*)) of a row, where one row in `RARE` counts by half."""
    peak: float
    """Largest max|e| / max(max|e_p|, u·max|y*|) of a row."""
    row: int
    """The row nearest to its limits, or farthest beyond them."""
    beyond: float
    """Largest |e| / allowance of an element under a declared tolerance; 0 without one."""
    beyond_at: int
    """Flat index of that element."""
    wrong: int
    """How many elements are NaN or infinite in one of the two alone."""
    wrong_at: int
    """Flat index of the first of them."""


def measure(
    rows: Rows, *, declared: tuple[float, float] | None = None, instead: tuple[float, float] | None = None
) -> Measured:
    """The worst row, and the worst element under a declared (atol, rtol).

    `instead` measures the largest errors that such a tolerance allows, in place of the output's own.
    """
    norms, peaks, nearest, beyond = Norms(rows.count // RARE), Top(), Top(), Top()
    wrong, wrong_at = 0, -1
    sums: list[Tensor] = []
    for cut, first, ends in rows.cuts():
        block = rows.block(cut, first)
        if block.wrong is not None:
            places = block.wrong.flatten().nonzero()
            wrong += len(places)
            wrong_at = first + int(places[0]) if len(places) and wrong_at < 0 else wrong_at
        if declared is not None:
            ratio = block.error.double().abs() / allowed(declared, block.star)
            beyond.add(ratio.nan_to_num(0.0, math.inf), first)
        error = block.error if instead is None else allowed(instead, block.star)
        stats = [value for t in (error, block.star, block.own) if t is not None for value in _norm_and_peak(t)]
        sums = [_joined(n, a, b) for n, (a, b) in enumerate(zip(sums, stats, strict=True))] if sums else stats
        if ends:
            norm = rows.unit * sums[2].clamp(min=rows.tiny * math.sqrt(rows.length))
            peak = rows.unit * sums[3].clamp(min=rows.tiny)
            if rows.native is not None:
                norm, peak = torch.maximum(norm, sums[4]), torch.maximum(peak, sums[5])
            norm, peak = sums[0] / norm, sums[1] / peak
            row = first // rows.length
            norms.add(norm)
            peaks.add(peak, row)
            nearest.add(torch.maximum(norm, peak / 4), row)
            sums = []
    beyond_by, beyond_at = beyond.read()
    return Measured(norms.read(), peaks.read()[0], nearest.read()[1], beyond_by, beyond_at, wrong, wrong_at)


def allowed(declared: tuple[float, float], star: Tensor) -> Tensor:
    """atol + rtol·|y*| for each element."""
    return star.double().abs() * declared[1] + declared[0]


def _norm_and_peak(values: Tensor) -> tuple[Tensor, Tensor]:
    """√Σv² and max|v| of each row, at fp64 without overflow."""
    peak = values.abs().amax(-1).double()
    if values.dtype == torch.float32:  # a square of fp32 fits in fp64
        return torch.linalg.vector_norm(values.double(), dim=-1), peak
    scale = torch.where((peak > 0) & peak.isfinite(), peak, 1.0)
    return torch.linalg.vector_norm(values / scale.unsqueeze(-1), dim=-1) * scale, peak


def _joined(number: int, a: Tensor, b: Tensor) -> Tensor:
    """The norm (even numbers) or the peak (odd ones) of two parts of a row."""
    return torch.maximum(a, b) if number % 2 else torch.hypot(a, b)
