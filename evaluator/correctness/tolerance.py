"""Whether an output is right: a candidate's error held against PyTorch's own.

With y* the oracle cast to the output's dtype, e = y − y*, e_p = PyTorch's own result − y*, and u half the distance from
1 to the next number of that dtype (2⁻²⁴, 2⁻¹¹, 2⁻⁸ for fp32, fp16, bf16), each row of the last dimension must keep

    RMS(e) ≤ κ·max(RMS(e_p), u·RMS(y*))        max|e| ≤ 4κ·max(max|e_p|, u·max|y*|)

One row in 1,000 may need 2κ of RMS(e): see `RARE` in `evaluator/correctness/row_errors.py`.
A tensor whose rows are shorter than 64 is one row; each index of a dimension shorter than 64 is held against its own
size as well, see `evaluator/correctness/slices.py`. Both allowances have a floor, half the distance between subnormal
numbers, times κ. NaN and infinities stand where y* has them; within 2u of overflow, an infinity and the largest number
are the same. Where numbers of the oracle lie beyond the dtype, NaN or an infinity may stand for every number from
2⁻¹⁰ of the largest on: a step on the way overflowed too.

κ is data (`data/tolerance.toml`), set by `benchmarks/tolerance.py`. In fp32 it is 256: honest kernels need at most 206,
where one thread adds 16,384 numbers one after the other; TF32 needs 777 and more on normal data. Distributions on which
honest kernels lose more digits (exp(x) − 1 near 0 needs 2,050, a one-pass variance at offset 10 needs 4,630) have a
larger κ and judge no precision; as a problem must be right on all distributions, that costs nothing. In long averages
errors of rounded inputs cancel: over 65,536 normal numbers a variance of fp16 inputs needs 42 and an honest sequential
one 144. No κ separates these; the `spikes` distribution does, in which a few elements decide (1,180 for fp16).

Integers and bools are equal. Complex numbers are compared as pairs. A declared tolerance takes the place of the rule:
|e| ≤ atol + rtol·|y*| for each element, with the same rule for NaN and infinities; and no row, column or other slice
may be wholly wrong within it (`evaluator/correctness/slices.py`).
"""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib import resources

import torch
from pydantic import Field
from torch import Tensor

from evaluator.correctness.row_errors import Measured, Rows, allowed, measure
from evaluator.correctness.slices import Slice, wholly_wrong, wrong_by_itself
from kbs.common.canonical_json import Line, Real
from kbs.common.json_model import Record


class Comparison(Record):
    """One output compared with the reference."""

    passed: bool
    """Whether it keeps the rule."""
    exact: bool
    """Whether nothing but equality was accepted."""
    kappa: Real
    """The constant in force; NaN where equality or a declared tolerance was asked."""
    rms_ratio: Real
    """Largest RMS(e) of a row in units of max(RMS(e_p), u·RMS(y*)), one row in 1,000 by half, to be held against κ; NaN
    for integers."""
    max_ratio: Real
    """Largest |e| of a row in units of max(max|e_p|, u·max|y*|), to be held against 4κ; NaN for integers."""
    rule: Line
    """What was asked, in words."""
    worst: int = Field(ge=-1)
    """Flat index of the worst element; -1 in an empty tensor."""
    expected: Real
    """y* there, or the part of it that is farther off where it is complex; NaN in an empty tensor."""
    got: Real
    """The candidate's value there."""
    detail: Line
    """What is wrong, in a sentence; empty where it passed."""


_FINE, _NEAR = 1e-6, 16.0
"""With errors of so few units of a fine dtype in each row, no slice is wholly wrong: nothing is looked for."""


@cache
def constants() -> dict[str, dict[str, float]]:
    """`data/tolerance.toml`."""
    return tomllib.loads((resources.files("evaluator") / "data" / "tolerance.toml").read_text("utf-8"))


def kappa(dtype: torch.dtype, *, stretched: bool, reference: torch.dtype = torch.float64) -> float:
    """κ for an output of a float dtype, held against an oracle of another (or the same) dtype."""
    table = constants()
    row = table.get(str(dtype).removeprefix("torch."), table["other"])
    factor = table["oracle"]["same_width"] if reference.itemsize <= dtype.itemsize else 1
    return float(row["stretched" if stretched else "plain"] * factor)


def compare(
    got: Tensor,
    reference: Tensor,
    native: Tensor | None,
    *,
    stretched: bool,
    exact: bool,
    declared: tuple[float, float] | None,
    piece: int = 0,
) -> Comparison:
    """Hold `got` against the `oracle` (float64, or integers) and PyTorch's own `native` result.

    All have one shape and lie on one device. `exact` asks for equality with the cast oracle, whatever is declared.
    `piece` sets how many elements are looked at together; the result does not depend on it.
    """
    rows, per = _rows(got, reference, native, piece)
    floating = rows is not None and rows.dtype.is_floating_point
    if rows is None or exact or got.dtype == torch.bool or (not floating and declared is None):
        return _equality(rows, per)
    bound = kappa(rows.dtype, stretched=stretched, reference=rows.reference.dtype) if floating else math.nan
    measured = measure(rows, declared=declared)
    blame = ""
    near = rows.unit < _FINE and measured.rms <= _NEAR
    if declared is None:
        rule = f"RMS(e) ≤ {bound:g}·max(RMS(e_p), u·RMS(y*)) and max|e| ≤ {4 * bound:g}·max(max|e_p|, u·max|y*|) in "
        rule += "each row" if rows.count > 1 else "the tensor"
        passed = _keeps(measured, bound)
        alone = _wrong_by_itself(got, reference, native, stretched) if passed and floating else None
        if alone is not None:
            passed, blame = False, f"{alone}, though the tensor as a whole keeps the rule"
    else:
        rule = f"|e| ≤ {declared[0]:g} + {declared[1]:g}·|y*|, declared"
        passed = measured.beyond <= 1 and not measured.wrong
        bound = math.nan
        hidden = _wholly_wrong(got, reference, native) if passed and floating and not near else None
        if hidden is not None:
            passed, blame = False, f"{hidden}, within the declared tolerance"
    worst = measured.wrong_at if measured.wrong else measured.beyond_at
    if worst < 0:
        worst = rows.largest_error(measured.row)
    expected, found = rows.at(worst)
    return Comparison(
        passed=passed,
        exact=False,
        kappa=bound,
        rms_ratio=measured.rms if floating else math.nan,
        max_ratio=measured.peak if floating else math.nan,
        rule=rule,
        worst=worst // per,
        expected=expected,
        got=found,
        detail=""
        if passed
        else blame or _blame(measured, bound, f"element {worst // per} is {found:g}, right is {expected:g}"),
    )


def looser(
    declared: tuple[float, float], reference: Tensor, native: Tensor, *, stretched: bool = False, piece: int = 0
) -> bool:
    """Whether a declared (atol, rtol) lets something through, on this data, that the evaluator's own rule rejects.

    That is so where the largest errors that it allows break the rule in some row; for integers, where it allows any.
    """
    rows, _ = _rows(native, reference, native, piece)
    if rows is None or native.dtype == torch.bool:
        return False
    if not rows.dtype.is_floating_point:
        return any(bool((allowed(declared, rows.star(cut)) >= 1).any()) for cut, _, _ in rows.cuts())
    bound = kappa(rows.dtype, stretched=stretched, reference=rows.reference.dtype)
    measured = measure(rows, instead=declared)
    return not _keeps(measured, bound)


def _rows(got: Tensor, reference: Tensor, native: Tensor | None, piece: int) -> tuple[Rows | None, int]:
    """The tensors as rows of real numbers, None where they are empty; and how many real numbers are an element."""
    for other in (reference, native):
        if other is not None and (other.shape, other.device) != (got.shape, got.device):
            raise ValueError(f"{tuple(other.shape)} on {other.device} against {tuple(got.shape)} on {got.device}")
    if got.numel() == 0:
        return None, 1
    if not got.is_complex():
        return Rows(got, reference, native, pairs=False, piece=piece), 1
    got, reference = _real(got), _real(reference)
    return Rows(got, reference, None if native is None else _real(native), pairs=True, piece=piece), 2


def _real(values: Tensor) -> Tensor:
    """Complex numbers as pairs in the last dimension."""
    if not values.is_complex():
        values = values.to(torch.complex128)
    pairs = torch.view_as_real(values.resolve_conj())
    return pairs.flatten(-2) if pairs.dim() > 1 else pairs


def _wholly_wrong(got: Tensor, reference: Tensor, native: Tensor | None) -> Slice | None:
    if got.is_complex():
        got, reference = _real(got), _real(reference)
        native = None if native is None else _real(native)
    return wholly_wrong(got, reference, native)


def _wrong_by_itself(got: Tensor, reference: Tensor, native: Tensor | None, stretched: bool) -> Slice | None:
    if native is None:
        return None
    if got.is_complex():
        got, reference, native = _real(got), _real(reference), _real(native)
    return wrong_by_itself(got, reference, native, stretched=stretched)


def _keeps(measured: Measured, bound: float) -> bool:
    return measured.rms <= bound and measured.peak <= 4 * bound and not measured.wrong


def _blame(measured: Measured, bound: float, worst: str) -> str:
    if measured.wrong:
        return f"{worst}; NaN or infinity stands in one of the two alone in {measured.wrong} elements"
    if math.isnan(bound):
        return f"{worst}; the error is {measured.beyond:.3g} times what is declared"
    if not measured.rms <= bound:
        return f"{worst}; RMS(e) is {measured.rms:.4g} times max(RMS(e_p), u·RMS(y*)), {bound:g} is allowed"
    return f"{worst}; max|e| is {measured.peak:.4g} times max(max|e_p|, u·max|y*|), {4 * bound:g} is allowed"


def _equality(rows: Rows | None, per: int) -> Comparison:
    """The comparison of what must be equal by value: 0 and −0 are, and so are two NaN."""
    unequal, worst = 0, -1
    expected: float = math.nan
    found: float = math.nan
    if rows is not None:
        for cut, first, _ in rows.cuts():
            places = rows.unequal(cut).flatten().nonzero()
            unequal += len(places)
            worst = first + int(places[0]) if len(places) and worst < 0 else worst
        expected, found = rows.at(max(worst, 0))
        worst = max(worst, 0) // per
    differs = f"element {worst} is {found}, right is {expected}; {unequal} elements differ, none may"
    return Comparison(
        passed=unequal == 0,
        exact=True,
        kappa=math.nan,
        rms_ratio=math.inf if unequal else 0.0,
        max_ratio=math.inf if unequal else 0.0,
        rule="equal",
        worst=worst,
        expected=expected,
        got=found,
        detail=differs if unequal else "",
    )
