"""The distributions that inputs are drawn from: numbers of one magnitude hide errors that others reveal.

A candidate must be correct on all of them. Plain distributions judge precision, with the smaller κ. On stretched ones
honest kernels lose digits as well, so κ is larger and only kernels that break fail (see
`evaluator/correctness/tolerance.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor


class Distribution(NamedTuple):
    """A way to draw inputs."""

    name: str
    """As plans and receipts name it."""
    stretched: bool
    """Whether the larger κ applies."""
    meaning: str
    """What is drawn, and which faults it reveals."""


DISTRIBUTIONS = (
    Distribution("given", False, "what the problem itself gives"),
    Distribution("normal", False, "standard normal numbers: errors of inputs do not average out in sums of products"),
    Distribution(
        "spikes",
        False,
        "a few elements of a row outweigh all others: errors of inputs do not average out in long means",
    ),
    Distribution("small", True, "normal × 1e-3: absolute errors, and epsilons that were changed"),
    Distribution("large", True, "normal × 64 (fp16: × 16): a maximum that is not taken off, a range that was assumed"),
    Distribution("offset", True, "normal + 10: cancellation"),
    Distribution(
        "mixed", True, "magnitudes from 1e-3 to 1e3 (fp16: to 1e2) in one tensor, the largest at the end of each row"
    ),
    Distribution(
        "huge", True, "magnitudes from 1e3 to 1e6 (fp16: from 1e2 to 1e4): integers and ranges that are too small"
    ),
    Distribution("binary", True, "0 and 1 alike often: sums of them are exact in any order"),
)
"""All of them, the given one first."""

JITTER = 2.0**-6
"""How far fixed inputs are moved, relative to themselves."""
_SPIKE = {torch.float16: 32.0}
_LARGE = {torch.float16: 16.0}
_DECADES = {torch.float16: 5.0}
_HUGE = {torch.float16: (2.0, 4.0)}
_PIECE = 1 << 22


def draw(distribution: Distribution, given: Tensor, generator: torch.Generator) -> Tensor:
    """A tensor of the shape, dtype and device of `given`, drawn from a distribution.

    Integers and bools stay: they are indices and masks that must fit. So does everything where `given` is asked for.
    Numbers are drawn on the generator's device.
    """
    if distribution.name == "given" or not (given.is_floating_point() or given.is_complex()):
        return given
    if given.is_complex():
        pairs = torch.view_as_real(torch.empty(given.shape, dtype=given.dtype, device="meta"))
        drawn = _DRAWN[distribution.name](pairs.shape, pairs.dtype, generator)
        return torch.view_as_complex(drawn).to(given.device)
    working = given.dtype if given.dtype.itemsize > 1 else torch.float32
    drawn = _DRAWN[distribution.name](given.shape, working, generator)
    top = torch.finfo(given.dtype).max
    return (drawn.clamp(-top, top) if working != given.dtype else drawn).to(given.dtype).to(given.device)


def jitter(given: Tensor, generator: torch.Generator) -> Tensor:
    """x·(1 + 2⁻⁶·U[−1, 1]) for floats, so that a remembered result is wrong; integers and bools as they are."""
    if not (given.is_floating_point() or given.is_complex()):
        return given
    precision = torch.float64 if given.dtype in (torch.float64, torch.complex128) else torch.float32
    factor = torch.rand(given.shape, generator=generator, device=generator.device, dtype=precision)
    factor = factor.mul_(2 * JITTER).add_(1 - JITTER).to(given.device)
    if given.is_complex():
        return given * factor
    values, top = given.to(precision), torch.finfo(given.dtype).max
    moved = factor.mul_(values).clamp_(-top, top)
    return torch.where(values.isfinite(), moved, values).to(given.dtype)


def must_be_exact(reference: Tensor, native: Tensor, dtype: torch.dtype) -> bool:
    """Whether a right result has no rounding error, on inputs of the `binary` distribution.

    That is so where every oracle value is an integer that the output's dtype holds (below 2²⁴, 2¹¹, 2⁸ for fp32, fp16,
    bf16), and PyTorch's own result is equal to it. Sums of 0 and 1 do not leave that range on the way, whether a kernel
    adds them at fp32 or at the output's own dtype; so every order gives the same. Integer outputs are always exact.
    """
    if not dtype.is_floating_point:
        return not dtype.is_complex
    limit = min(2 / torch.finfo(dtype).eps, 2.0**24)
    pieces = zip(torch.split(reference.flatten(), _PIECE), torch.split(native.flatten(), _PIECE), strict=True)
    return reference.numel() > 0 and all(_whole(exactly, own.to(exactly.dtype), limit) for exactly, own in pieces)


def _whole(exactly: Tensor, own: Tensor, limit: float) -> bool:
    return bool(((exactly.abs() <= limit) & (exactly == exactly.round()) & (own == exactly)).all())


def _normal(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, dtype=dtype, generator=generator, device=generator.device)


def _uniform(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """In (0, 1]; at fp32, since 16 bits would often give 0."""
    wide = dtype if dtype == torch.float64 else torch.float32
    return 1 - torch.rand(shape, dtype=wide, generator=generator, device=generator.device)


def _spikes(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Normal × magnitudes of a Pareto tail of index 3/2 from 1/4 to 128.

    Their squares have no mean, so the largest decide a sum of squares however long it is; above 128 an honest
    sequential sum would lose the small ones, and below an index of 3/2 so would one of the deviations from the mean.
    """
    magnitude = _uniform(shape, dtype, generator).pow_(-2 / 3).mul_(0.25).clamp_(max=_SPIKE.get(dtype, 128.0))
    return _normal(shape, dtype, generator).mul_(magnitude)


def _mixed(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Normal × 10^U[−3, 3], and × 10³ in the last 1/64 of each row, so that a tail left out is a large part."""
    decades = _DECADES.get(dtype, 6.0)
    exponent = 1 - _uniform(shape, dtype, generator)
    if shape and shape[-1] > 1:
        exponent[..., -math.ceil(shape[-1] / 64) :] = 1
    return _normal(shape, dtype, generator).mul_(exponent.mul_(decades).sub_(3).mul_(math.log(10)).exp_())


def _huge(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """10^U[3, 6] of either sign, and at fp16 10^U[2, 4], so that sums of a few stay finite.

    Types of 16 bits and less get one sign for all: a sum of theirs that stays finite would be what is left of a
    cancellation, of which no digit is right whatever the order.
    """
    low, high = _HUGE.get(dtype, (3.0, 6.0))
    magnitude = _uniform(shape, dtype, generator).mul_(high - low).add_(low).mul_(math.log(10)).exp_()
    narrow = dtype.is_floating_point and dtype.itemsize <= 2
    return magnitude.copysign_(_normal(torch.Size(()) if narrow else shape, dtype, generator)).to(dtype)


def _binary(shape: torch.Size, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    return torch.randint(2, shape, generator=generator, device=generator.device, dtype=torch.uint8).to(dtype)


_DRAWN: dict[str, Callable[[torch.Size, torch.dtype, torch.Generator], Tensor]] = {
    "normal": _normal,
    "spikes": _spikes,
    "small": lambda shape, dtype, generator: _normal(shape, dtype, generator).mul_(1e-3),
    "large": lambda shape, dtype, generator: _normal(shape, dtype, generator).mul_(_LARGE.get(dtype, 64.0)),
    "offset": lambda shape, dtype, generator: _normal(shape, dtype, generator).add_(10),
    "mixed": _mixed,
    "huge": _huge,
    "binary": _binary,
}
