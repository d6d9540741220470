"""The functions of libdevice, NVIDIA's library of math, for Triton's interpreter: one table from name to NumPy.

Floats are computed in float64 and rounded once, so that a result is as near as the GPU's or nearer. A function that is
missing here raises `NotImplementedError`, which is told as the interpreter's limit and not as the kernel's fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

_WORD = 0xFFFFFFFF


def _of_torch(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """A function of PyTorch on arrays."""

    def call(*values: Any) -> Any:
        return np.from_dlpack(function(*(from_dlpack(np.array(value)) for value in values)))

    return call


def _norm(*values: Any) -> Any:
    return np.sqrt(sum(value * value for value in values))


def _rounded_away(x: Any) -> Any:
    """Halves are rounded away from zero."""
    return np.trunc(x + np.copysign(0.5, x)) if np.ndim(x) == 0 else np.where(
        np.abs(x - np.trunc(x)) >= 0.5, np.trunc(x) + np.copysign(1.0, x), np.trunc(x)
    )  # fmt: skip


def _unsigned(x: Any) -> Any:
    return x.view(f"uint{8 * x.dtype.itemsize}")


def _bit_count(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x))


def _leading_zeros(x: Any) -> Any:
    """Zeros before the first bit that is set."""
    bits, width = _unsigned(x), 8 * x.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> shift) if shift < width else bits
    return width - np.bitwise_count(bits).astype(np.int64)


def _reversed(x: Any) -> Any:
    """The bits in the opposite order."""
    left, width = _unsigned(x), 8 * x.dtype.itemsize
    found = np.zeros_like(left)
    for place in range(width):
        found |= ((left >> place) & 1) << (width - 1 - place)
    return found


def _first_set(x: Any) -> Any:
    """1 for the lowest bit; 0 where none is set."""
    bits = _unsigned(x)
    return np.where(bits == 0, 0, np.bitwise_count(bits ^ (bits - 1)))


def _high_word(x: Any, y: Any) -> Any:
    """The upper half of a product."""
    if x.dtype.itemsize == 4:
        return (x.astype(np.int64) * y if x.dtype.kind == "i" else x.astype(np.uint64) * y) >> 32
    return np.vectorize(lambda a, b: (int(a) * int(b)) >> 64, otypes=[x.dtype])(x, y)


def _bytes(x: Any, y: Any, selector: Any) -> Any:
    """Four bytes out of eight, each chosen by a digit of the selector."""
    eight, found = (_unsigned(y).astype(np.uint64) << 32) | _unsigned(x), np.zeros(x.shape, np.uint64)
    for place in range(4):
        digit = (_unsigned(selector).astype(np.uint64) >> (4 * place)) & 15
        byte = (eight >> (8 * (digit & 7))) & 0xFF
        sign = np.where(byte & 0x80, np.uint64(0xFF), np.uint64(0))
        found |= np.where(digit & 8, sign, byte) << (8 * place)
    return found


_FLOATS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in (
        *("cbrt", "ceil", "copysign", "cos", "cosh", "exp", "exp2", "expm1", "fabs", "floor", "fmax", "fmin", "fmod"),
        *("hypot", "log", "log10", "log1p", "log2", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    )},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "atan2")},
    **{name: _of_torch(getattr(torch.special, other)) for name, other in (
        *(("erf", "erf"), ("erfc", "erfc"), ("erfcx", "erfcx"), ("erfinv", "erfinv"), ("lgamma", "gammaln")),
        *(("normcdf", "ndtr"), ("normcdfinv", "ndtri"), ("cyl_bessel_i0", "i0"), ("cyl_bessel_i1", "i1")),
        *(("j0", "bessel_j0"), ("j1", "bessel_j1"), ("y0", "bessel_y0"), ("y1", "bessel_y1")),
    )},
    "erfcinv": lambda x: _of_torch(torch.special.erfinv)(1 - x),
    "tgamma": lambda x: np.where(
        (x < 0) & (np.floor(x) % 2 != 0), -1.0, 1.0
    ) * np.exp(_of_torch(torch.special.gammaln)(x)),
    "exp10": lambda x: np.power(10.0, x),
    "pow": np.power,
    "powi": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "rcp": lambda x: 1 / x,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0)),
    "fma": lambda x, y, z: x * y + z,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fdivide": np.divide,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "ldexp": np.ldexp,
    "scalbn": np.ldexp,
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "llrint": np.rint,
    "llround": _rounded_away,
    "nearbyint": np.rint,
    "norm3d": _norm,
    "norm4d": _norm,
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "rnorm3d": lambda *values: 1 / _norm(*values),
    "rnorm4d": lambda *values: 1 / _norm(*values),
    "round": _rounded_away,
    "saturate": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "isinf": np.isinf,
    "isnan": np.isnan,
    "isfinite": np.isfinite,
    "finite": np.isfinite,
    "signbit": np.signbit,
}  # fmt: skip
"""Of floats, by the name without the letter of its type and without its rounding; arguments come as float64."""
_AS_THEY_ARE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": _leading_zeros,
    "clzll": _leading_zeros,
    "popc": _bit_count,
    "popcll": _bit_count,
    "brev": _reversed,
    "brevll": _reversed,
    "ffs": _first_set,
    "ffsll": _first_set,
    "byte_perm": _bytes,
    **dict.fromkeys(("mulhi", "umulhi", "mul64hi", "umul64hi"), _high_word),
    "mul24": lambda x, y: ((x << 8) >> 8).astype(np.int64) * ((y << 8) >> 8),
    "umul24": lambda x, y: (x & 0xFFFFFF).astype(np.uint64) * (y & 0xFFFFFF),
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
    "usad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "uhadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
    "urhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
    "nextafter": np.nextafter,
    "nextafterf": np.nextafter,
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: (x.view(np.uint64) & _WORD).astype(np.uint32).view(np.int32),
    "hiloint2double": lambda hi, lo: ((hi.astype(np.int64) << 32) | _unsigned(lo)).view(np.float64),
}
"""Of bits and integers, and of neighbours: arguments keep their types, and wide results lose their upper bits."""
_ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_CONVERSION = re.compile(r"(?:float|double|int|uint|ll|ull)2(?:float|double|int|uint|ll|ull)_(r[nzdu])")
_BITS = re.compile(r"(?:float|double|int|uint|longlong)_as_(?:float|double|int|uint|longlong)")


def _float_function(stem: str) -> Callable[..., Any] | None:
    """`fast_expf`, `fadd_rn`, `isnand` and `exp`: the function that they name, if the table has it."""
    plain = stem.removeprefix("fast_").removesuffix("_rn")
    forms = (plain, plain[:-1] if plain[-1] in "fd" else plain, plain[1:] if plain[0] in "fd" else plain)
    return next((_FLOATS[form] for form in forms if form in _FLOATS), None)


def _to_integer(values: Any, kind: Any) -> Any:
    """Out of range is the nearest, and NaN is 0, as the hardware converts."""
    limits = np.iinfo(kind)
    top = np.nextafter(float(limits.max), 0) if limits.bits == 64 else float(limits.max)
    clipped = np.clip(np.where(np.isnan(values), 0.0, values), float(limits.min), top)
    return np.where(values > top, limits.max, clipped.astype(kind))


def computed(symbol: str, values: list[Any], kind: Any) -> Any:
    """What the function of that symbol (`__nv_expf`) gives for arrays, as an array of the NumPy type `kind`."""
    stem = symbol.removeprefix("__nv_")
    with np.errstate(all="ignore"):
        if stem in _AS_THEY_ARE:
            return np.asarray(_AS_THEY_ARE[stem](*values)).astype(kind)
        if _BITS.fullmatch(stem):
            return values[0].view(kind)
        conversion = _CONVERSION.fullmatch(stem)
        if conversion and kind.kind in "iu":
            return _to_integer(_ROUNDINGS[conversion[1]](values[0]), kind)
        if conversion and conversion[1] == "rn":
            return values[0].astype(kind)
        function = None if conversion else _float_function(stem)
        if function is None:
            raise NotImplementedError(f"Triton's interpreter has no {symbol}")
        wide = [value.astype(np.float64) if value.dtype.kind == "f" else value for value in values]
        found = np.asarray(function(*wide))
        return _to_integer(found, kind) if kind.kind in "iu" and found.dtype.kind == "f" else found.astype(kind)


_APPROXIMATION = re.compile(
    r"\{?\s*([a-z0-9]+)(?:\.approx)?(?:\.rn)?(?:\.ftz)?\.f(?:32|16|64)\s+\$0,\s*\$1(?:,\s*\$2)?;\s*\}?"
)
_INSTRUCTIONS = {
    **{"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt"},
    **{"rcp": "rcp", "add": "add", "sub": "sub", "mul": "mul", "div": "div", "abs": "fabs", "min": "fmin"},
    "max": "fmax",
}


def assembled(text: str, values: list[Any], kind: Any) -> Any:
    """What one line of PTX gives: an instruction of floats with one or two operands, or a hint to the scheduler."""
    found = _APPROXIMATION.fullmatch(text.strip())
    if found and found[1] in _INSTRUCTIONS and kind.kind == "f":
        return computed(_INSTRUCTIONS[found[1]], values, kind)
    if text.strip().startswith("griddepcontrol."):  # the order of two kernels, which here run one after the other
        return np.zeros((1,), kind)
    raise NotImplementedError("Triton's interpreter cannot run inline assembly")
