"""Whether an output is right: a candidate's error held against PyTorch's own.

With y* the oracle cast to the output's dtype, e = y − y*, e_p = PyTorch's own result − y*, and u half the distance from
1 to the next number of that dtype (2⁻²⁴, 2⁻¹¹, 2⁻⁸ for fp32, fp16, bf16), each row of the last dimension must keep

    RMS(e) ≤ κ·max(RMS(e_p), u·RMS(y*))        max|e| ≤ 4κ·max(max|e_p|, u·max|y*|)

A tensor whose rows are shorter than 64 is one row. Both allowances have a floor, half the distance between subnormal
numbers. NaN and infinities stand where y* has them; within 2u of overflow, an infinity and the largest number are one.

κ is data (`data/tolerance.toml`), set by `benchmarks/tolerance.py`. An honest fp32 kernel needs up to 204 where one
thread adds 16,384 numbers one after the other, and ones that add in blocks far less; TF32 needs 700 and more on rows
of up to 65,536. No constant tells an average over many bf16 inputs from a long sequential sum on normal data, because
rounding errors of inputs average out: the `spikes` distribution does. See docs/decisions.

Integers and bools are equal. Complex numbers are compared as pairs. A declared tolerance takes the place of the rule:
|e| ≤ atol + rtol·|y*| for each element, with the same rule for NaN and infinities.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from evaluator.canonical import Line, Real

SHORT_ROW = 64
"""Rows shorter than this say too little by themselves."""
_PIECE = {"cpu": 1 << 17, "cuda": 1 << 21}
"""Elements that are looked at together: what a CPU's cache holds; about 160 MiB of temporary memory on a GPU."""
_CHUNKS = 64
"""Results of pieces that are kept on the device before they are read."""


class Comparison(BaseModel):
    """One output held against the oracle."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    passed: bool
    """Whether it keeps the rule."""
    exact: bool
    """Whether nothing but equality was accepted."""
    kappa: Real
    """The constant in force; NaN where equality or a declared tolerance was asked."""
    rms_ratio: Real
    """Largest RMS(e) of a row in units of max(RMS(e_p), u·RMS(y*)): to be held against κ. NaN where it has no meaning."""
    max_ratio: Real
    """Largest |e| of a row in units of max(max|e_p|, u·max|y*|): to be held against 4κ. NaN where it has no meaning."""
    rule: Line
    """What was asked, in words."""
    worst: int = Field(ge=-1)
    """Flat index of the worst element; -1 in an empty tensor."""
    expected: Real
    """y* there; NaN in an empty tensor."""
    got: Real
    """The candidate's value there; NaN in an empty tensor."""
    detail: Line
    """What is wrong, in a sentence; empty where it passed."""


@cache
def constants() -> dict[str, dict[str, float]]:
    """κ by dtype, `plain` and `stretched`."""
    return tomllib.loads((resources.files("evaluator") / "data" / "tolerance.toml").read_text("utf-8"))


def kappa(dtype: torch.dtype, *, stretched: bool, oracle: torch.dtype = torch.float64) -> float:
    """κ for an output of a float dtype, on a plain or a stretched distribution, against an oracle of another dtype."""
    table = constants()
    row = table.get(str(dtype).removeprefix("torch."), table["other"])
    factor = table["oracle"]["same_width"] if oracle.itemsize <= dtype.itemsize else 1
    return float(row["stretched" if stretched else "plain"] * factor)


def compare(
    got: Tensor,
    oracle: Tensor,
    native: Tensor | None,
    *,
    stretched: bool,
    exact: bool,
    declared: tuple[float, float] | None,
    piece: int = 0,
) -> Comparison:
    """Hold `got` against the float64 `oracle` (or an integer one) and PyTorch's own `native` result, all of one shape.

    `exact` asks for equality with the cast oracle, whatever is declared. `piece` sets how many elements are looked at
    together; the result does not depend on it. The tensors may be on any device, but all on one.
    """
    got, oracle, native, per = _pairs(got, oracle, native)
    floating = got.is_floating_point()
    if got.numel() == 0:
        return _empty(exact or not floating)
    if exact or got.dtype == torch.bool or (not floating and declared is None):
        return _equal(_Rows(got, oracle, None, per, piece))
    rows = _Rows(got, oracle, native, per, piece)
    bound = kappa(got.dtype, stretched=stretched, oracle=oracle.dtype) if floating else math.nan
    measured = _measure(rows, declared)
    rms, peak = (measured.rms, measured.peak) if floating else (math.nan, math.nan)
    if declared is not None:
        rule = f"declared: |e| ≤ {declared[0]:g} + {declared[1]:g}·|y*|"
        passed, bound = measured.beyond <= 1 and not measured.wrong, math.nan
    else:
        rule = f"RMS(e) ≤ {bound:g}·max(RMS(e_p), u·RMS(y*)), max|e| ≤ {4 * bound:g}·max(max|e_p|, u·max|y*|), by "
        rule += "row" if rows.count > 1 else "tensor"
        passed = rms <= bound and peak <= 4 * bound and not measured.wrong
    at, want, have = rows.element(measured)
    detail = "" if passed else _blame(rows, measured, at, want, have, bound)
    return Comparison(
        passed=passed,
        exact=False,
        kappa=bound,
        rms_ratio=rms,
        max_ratio=peak,
        rule=rule,
        worst=at // per,
        expected=want,
        got=have,
        detail=detail,
    )


def looser(
    declared: tuple[float, float], oracle: Tensor, native: Tensor, *, stretched: bool = False, piece: int = 0
) -> bool:
    """Whether a declared tolerance lets something through, on this data, that the evaluator's own rule rejects.

    That is so where the largest error that it allows at each element breaks our rule in some row. Integers: where it
    allows any difference at all.
    """
    native, oracle, _, per = _pairs(native, oracle, None)
    if native.numel() == 0 or native.dtype == torch.bool:
        return False
    rows = _Rows(native, oracle, native, per, piece)
    if not native.is_floating_point():
        return any(bool((_allowed(declared, block.star) >= 1).any()) for block, _ in rows.blocks())
    bound = kappa(native.dtype, stretched=stretched, oracle=oracle.dtype)
    measured = _measure(rows, None, allowance=declared)
    return not (measured.rms <= bound and measured.peak <= 4 * bound)


def same_classes(native: Tensor, oracle: Tensor) -> bool:
    """Whether NaN and infinities stand in `native` where the cast oracle has them, within 2u of overflow either way."""
    native, oracle, _, per = _pairs(native, oracle, None)
    if not native.is_floating_point() or native.numel() == 0:
        return True
    return not any(block.wrong is not None and bool(block.wrong.any()) for block, _ in _Rows(native, oracle, None, per, 0).blocks())


@dataclass
class _Block:
    """Rows, or a part of one row, at a precision in which e² neither overflows nor vanishes."""

    first: int
    """Flat index of its first element."""
    error: Tensor
    own: Tensor | None
    """e_p; 0 where PyTorch's own result is not finite."""
    star: Tensor
    """y*; 0 where it is not finite."""
    wrong: Tensor | None
    """Where NaN or an infinity stands in one of the two alone; None where all is finite."""


@dataclass
class _Measured:
    """What a comparison found."""

    rms: float
    peak: float
    beyond: float
    """Largest |e| / allowance of a declared tolerance; 0 without one."""
    wrong: int
    """Elements with a NaN or an infinity in one of the two alone."""
    at: tuple[int, int]
    """First row and number of elements of the block with the worst element, as (flat index, length)."""


class _Rows:
    """The tensors as rows, in pieces."""

    def __init__(self, got: Tensor, oracle: Tensor, native: Tensor | None, per: int, piece: int) -> None:
        last = got.shape[-1] if got.dim() else 1
        self.length = last if last // per >= SHORT_ROW else got.numel()
        """Elements of a row."""
        self.count = got.numel() // self.length
        self.dtype = got.dtype
        self.got, self.oracle = got.reshape(-1, self.length), oracle.reshape(-1, self.length)
        self.native = None if native is None else native.reshape(-1, self.length)
        self.per = per
        self.piece = piece or _PIECE.get(got.device.type, _PIECE["cuda"])
        floating = got.is_floating_point()
        info = torch.finfo(got.dtype if floating else torch.float64)
        self.unit, self.tiny, self.top = info.eps / 2, info.smallest_normal, info.max
        self.wide = torch.float32 if floating and got.dtype.itemsize <= 4 else torch.float64

    def blocks(self) -> Iterator[tuple[_Block, bool]]:
        """Each piece, and whether its rows end with it."""
        high, width = max(1, self.piece // self.length), min(self.length, self.piece)
        for row in range(0, self.count, high):
            for column in range(0, self.length, width):
                cut = (slice(row, row + high), slice(column, column + width))
                yield self._block(cut, row * self.length + column), column + width >= self.length

    def _block(self, cut: tuple[slice, slice], first: int) -> _Block:
        got = self.got[cut].to(self.wide)
        star = self.star(self.oracle[cut]).to(self.wide)
        error = got - star
        own = None if self.native is None else self.native[cut].to(self.wide) - star
        sums = [t.sum() for t in (error, own) if t is not None]
        if bool(torch.stack(sums).isfinite().all()):
            return _Block(first, error, own, star, None)
        return self._masked(cut, first)

    def _masked(self, cut: tuple[slice, slice], first: int) -> _Block:
        exactly, got = self.oracle[cut].double(), self.got[cut].double()
        star = self.star(self.oracle[cut]).double()
        size = exactly.abs()
        edge = size.isfinite() & (size >= self.top * (1 - 2 * self.unit)) & (size <= self.top * (1 + 2 * self.unit))
        star = torch.where(edge, star.clamp(-self.top, self.top), star)
        got = torch.where(edge, got.clamp(-self.top, self.top), got)
        finite = star.isfinite()
        wrong = ~((finite & got.isfinite()) | (star == got) | (star.isnan() & got.isnan()))
        error = torch.where(finite & ~wrong, got - star, 0.0)
        own = None
        if self.native is not None:
            own = self.native[cut].double() - star
            own = torch.where(finite & own.isfinite(), own, 0.0)
        return _Block(first, error, own, torch.where(finite, star, 0.0), wrong)

    def star(self, oracle: Tensor) -> Tensor:
        """y*: the oracle at the output's dtype."""
        return oracle.to(self.dtype) if self.dtype.is_floating_point else oracle

    def element(self, measured: _Measured) -> tuple[int, float, float]:
        """The worst element: its flat index, y* and the candidate's value."""
        at, length = measured.at
        if length > 1:  # the worst row: its largest error
            row, largest = at // self.length, -1.0
            for column in range(0, self.length, self.piece):
                block = self._block((slice(row, row + 1), slice(column, column + self.piece)), row * self.length + column)
                peak, index = block.error.abs().flatten().max(0)
                if float(peak) > largest:
                    largest, at = float(peak), block.first + int(index)
        row, column = divmod(at, self.length)
        return at, float(self.star(self.oracle[row, column])), float(self.got[row, column])


def _measure(
    rows: _Rows, declared: tuple[float, float] | None, allowance: tuple[float, float] | None = None
) -> _Measured:
    """The worst row by our rule, or the worst element by a declared one. `allowance`: measure that in place of e."""
    floor = math.sqrt(rows.length) * rows.tiny
    best = _Best()
    sums: list[Tensor] = []
    for block, ends in rows.blocks():
        if block.wrong is not None:
            best.classes(block)
        if declared is not None:
            best.declared(block, declared)
        error = block.error if allowance is None else _allowed(allowance, block.star)
        parts = [_norm(error), _norm(block.star), *([] if block.own is None else [_norm(block.own)])]
        stats = [value for pair in parts for value in pair]
        sums = [torch.hypot(a, b) if n % 2 == 0 else torch.maximum(a, b) for n, (a, b) in enumerate(zip(sums, stats, strict=True))] if sums else stats
        if ends:
            norm, peak = rows.unit * sums[2].clamp(min=floor), rows.unit * sums[3].clamp(min=rows.tiny)
            if len(sums) > 4:
                norm, peak = torch.maximum(norm, sums[4]), torch.maximum(peak, sums[5])
            best.rows(block.first // rows.length, sums[0] / norm, sums[1] / peak)
            sums = []
    return best.measured(rows.length, declared is not None)
