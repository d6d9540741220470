"""Functions of libdevice as NumPy computes them: PyTorch's values, and nearly every function that Triton names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from evaluator.worker.loading.libdevice import assembled, computed

UNIT = np.linspace(-0.999, 0.999, 41)
ANY = np.array([-1e30, -80.0, -2.5, -1.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.5, 1.0, 1.5, 2.5, 80.0, 1e30, np.inf, np.nan])
POSITIVE = np.array([1e-30, 0.01, 0.5, 1.0, 1.5, 7.25, 1e4])
ONE: dict[str, tuple[np.ndarray[Any, Any], Callable[[torch.Tensor], torch.Tensor]]] = {
    "exp": (ANY, torch.exp),
    "fast_exp": (ANY, torch.exp),
    "exp2": (ANY, torch.exp2),
    "expm1": (ANY, torch.expm1),
    "log": (POSITIVE, torch.log),
    "fast_log2": (POSITIVE, torch.log2),
    "log1p": (POSITIVE, torch.log1p),
    "tanh": (ANY, torch.tanh),
    "sin": (UNIT, torch.sin),
    "fast_cos": (UNIT, torch.cos),
    "asin": (UNIT, torch.asin),
    "atanh": (UNIT, torch.atanh),
    "erf": (ANY, torch.erf),
    "erfc": (UNIT, torch.erfc),
    "erfinv": (UNIT, torch.erfinv),
    "normcdf": (UNIT, torch.special.ndtr),
    "lgamma": (POSITIVE, torch.lgamma),
    "sqrt": (ANY, torch.sqrt),
    "rsqrt": (POSITIVE, torch.rsqrt),
    "fabs": (ANY, torch.abs),
    "floor": (ANY, torch.floor),
    "rint": (ANY, torch.round),
    "trunc": (ANY, torch.trunc),
    "j0": (UNIT, torch.special.bessel_j0),
    "cyl_bessel_i0": (UNIT, torch.special.i0),
}


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_number_is_pytorchs(name: str, kind: Any) -> None:
    numbers, expected = ONE[name]
    values = numbers.astype(kind)
    found = computed(f"__nv_{name}" + ("f" if kind is np.float32 else ""), [values], np.dtype(kind))
    assert found.dtype == kind
    torch.testing.assert_close(torch.from_numpy(found), expected(torch.from_numpy(values)), equal_nan=True)


TWO: dict[str, Callable[..., torch.Tensor]] = {
    "powf": torch.pow,
    "fast_powf": torch.pow,
    "atan2f": torch.atan2,
    "fast_fdividef": torch.div,
    "fdiv_rn": torch.div,
    "fadd_rn": torch.add,
    "fmodf": torch.fmod,
    "hypotf": torch.hypot,
    "copysignf": torch.copysign,
    "fminf": torch.fmin,
    "fmaxf": torch.fmax,
    "nextafterf": torch.nextafter,
}


@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_numbers_is_pytorchs(name: str) -> None:
    x, y = np.meshgrid(POSITIVE, np.array([-1.5, 0.75, 2.0]))
    x, y = x.astype(np.float32), y.astype(np.float32)
    found = computed(f"__nv_{name}", [x, y], np.dtype(np.float32))
    torch.testing.assert_close(torch.from_numpy(found), TWO[name](torch.from_numpy(x), torch.from_numpy(y)))


def words(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.uint32).view(np.int32)


@pytest.mark.parametrize(
    ("symbol", "arguments", "expected"),
    [
        ("clz", [words(0, 1, 0x80000000, 0x00F0)], [32, 31, 0, 24]),
        ("popc", [words(0, 0xFFFFFFFF, 0x101)], [0, 32, 2]),
        ("ffs", [words(0, 1, 0x10, 0x80000000)], [0, 1, 5, 32]),
        ("brev", [words(1, 0x80000000)], [-(2**31), 1]),
        ("mulhi", [words(0x7FFFFFFF), words(0x7FFFFFFF)], [0x3FFFFFFF]),
        ("byte_perm", [words(0x33221100), words(0x77665544), words(0x7531)], [0x77553311]),
        ("float2int_rn", [np.array([2.5, -1.5, 3e10, np.nan, -np.inf], np.float32)], [2, -2, 2**31 - 1, 0, -(2**31)]),
        ("float2int_rz", [np.array([2.9, -2.9], np.float32)], [2, -2]),
        ("float2int_rd", [np.array([2.9, -2.1], np.float32)], [2, -3]),
        ("float2int_ru", [np.array([2.1, -2.9], np.float32)], [3, -2]),
        ("float_as_int", [np.array([1.0], np.float32)], [0x3F800000]),
        ("isinff", [np.array([np.inf, 1, np.nan], np.float32)], [1, 0, 0]),
        ("isnand", [np.array([np.inf, 1, np.nan])], [0, 0, 1]),
        ("finitef", [np.array([np.inf, 1, np.nan], np.float32)], [0, 1, 0]),
        ("signbitf", [np.array([-0.0, 1], np.float32)], [1, 0]),
        ("llroundf", [np.array([0.5, -0.5, 2.5, 0.49999997], np.float32)], [1, -1, 3, 0]),
    ],
)
def test_bits_and_integers(symbol: str, arguments: list[Any], expected: list[int]) -> None:
    assert computed(f"__nv_{symbol}", arguments, np.dtype(np.int32)).tolist() == expected


_ENTRY = re.compile(r'\(((?:core\.dtype\("\w+"\),?\s*)+)\): \("(\w+)", core\.dtype\("(\w+)"\)\)')
_TYPES: dict[str, Any] = {
    "fp32": np.float32,
    "fp64": np.float64,
    **{f"int{n}": f"int{n}" for n in (32, 64)},
    "uint32": "uint32",
}
_TYPES["uint64"] = "uint64"


def test_what_triton_names_is_computed_in_its_type() -> None:
    """But for roundings in a direction, the Bessel functions of any order, and an approximation of an upper word."""
    pytest.importorskip("triton")
    from triton.language.extra.cuda import libdevice

    missing, entries = set(), _ENTRY.findall(inspect.getsource(libdevice))
    assert len(entries) > 250
    for types, symbol, kind in entries:
        arguments = [np.ones(3, _TYPES[name]) for name in re.findall(r'"(\w+)"', types)]
        try:
            assert computed(symbol, arguments, np.dtype(_TYPES[kind])).dtype == _TYPES[kind], symbol
        except NotImplementedError:
            missing.add(symbol)
    directed = {symbol for symbol in missing if re.search(r"_r[dzu]$", symbol)}
    assert missing - directed == {"__nv_jn", "__nv_jnf", "__nv_yn", "__nv_ynf", "__nv_rcp64h"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tanh.approx.f32 $0, $1;", torch.tanh),
        ("ex2.approx.ftz.f32 $0, $1;", torch.exp2),
        ("{ rcp.approx.ftz.f32 $0, $1; }", torch.reciprocal),
        ("rsqrt.approx.f32 $0, $1;", torch.rsqrt),
        ("lg2.approx.f32 $0, $1;", torch.log2),
    ],
)
def test_one_instruction_of_ptx(text: str, expected: Callable[[torch.Tensor], torch.Tensor]) -> None:
    values = POSITIVE[1:].astype(np.float32)
    found = assembled(text, [values], np.dtype(np.float32))
    torch.testing.assert_close(torch.from_numpy(found), expected(torch.from_numpy(values)))


@pytest.mark.parametrize(
    "text", ["", "tanh.approx.f32 $1, $0;", "tanh.approx.f32 $0, $1; ret;", "trap;", "mov.b32 $0, 1;"]
)
def test_other_assembly_is_refused(text: str) -> None:
    with pytest.raises(NotImplementedError):
        assembled(text, [np.ones(2, np.float32)], np.dtype(np.float32))
