"""Operators of PyTorch, element by element, as expressions of Triton."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pydantic import JsonValue

from loop.search.generators.segment import UnreadableError, is_float

Text = Callable[..., str]

_SQRT_HALF = repr(math.sqrt(0.5))
_SQRT_2_PI = repr(math.sqrt(2 / math.pi))


def _tanh(a: str) -> str:
    return f"(2.0 * tl.sigmoid(2.0 * {a}) - 1.0)"


def _gelu(a: str, approximate: str) -> str:
    if approximate == "tanh":
        return f"(0.5 * {a} * (1.0 + {_tanh(f'({_SQRT_2_PI} * ({a} + 0.044715 * {a} * {a} * {a}))')}))"
    return f"(0.5 * {a} * (1.0 + tl.math.erf({a} * {_SQRT_HALF})))"


def _softplus(a: str) -> str:
    return f"(tl.maximum({a}, 0.0) + tl.log(1.0 + tl.exp(-tl.abs({a}))))"


def _power(a: str, exponent: JsonValue) -> str:
    if isinstance(exponent, (int, float)):
        if exponent == int(exponent) and 1 <= exponent <= 8:
            return "(" + " * ".join([a] * int(exponent)) + ")"
        known = {
            0.5: f"tl.sqrt({a})",
            -0.5: f"(1.0 / tl.sqrt({a}))",
            -1: f"(1.0 / {a})",
            -2: f"(1.0 / ({a} * {a}))",
            0: f"({a} * 0.0 + 1.0)",
        }
        if exponent in known:
            return known[float(exponent)]
    raise UnreadableError(f"pow with the exponent {exponent}")


UNARY: Mapping[str, str] = {
    "neg": "(-{a})", "abs": "tl.abs({a})", "exp": "tl.exp({a})", "exp2": "tl.exp2({a})", "log": "tl.log({a})",
    "log2": "tl.log2({a})", "log1p": "tl.log(1.0 + {a})", "expm1": "(tl.exp({a}) - 1.0)", "sqrt": "tl.sqrt({a})",
    "rsqrt": "(1.0 / tl.sqrt({a}))",
    "reciprocal": "(1.0 / {a})", "square": "({a} * {a})", "sin": "tl.sin({a})", "cos": "tl.cos({a})",
    "erf": "tl.math.erf({a})", "sigmoid": "tl.sigmoid({a})", "relu": "tl.maximum({a}, 0.0)",
    "silu": "({a} * tl.sigmoid({a}))", "floor": "tl.floor({a})", "ceil": "tl.ceil({a})",
    "sign": "(tl.where({a} > 0, 1.0, 0.0) - tl.where({a} < 0, 1.0, 0.0))",
    "hardsigmoid": "tl.minimum(tl.maximum({a} + 3.0, 0.0), 6.0) / 6.0",
    "hardswish": "({a} * tl.minimum(tl.maximum({a} + 3.0, 0.0), 6.0) / 6.0)",
    "isnan": "({a} != {a})", "logical_not": "({a} == 0)", "bitwise_not": "({a} == 0)",
    "clone": "{a}", "alias": "{a}", "contiguous": "{a}", "detach": "{a}",
}  # fmt: skip
BINARY: Mapping[str, str] = {
    "mul": "({a} * {b})", "div": "({a} / {b})", "maximum": "tl.maximum({a}, {b})", "minimum": "tl.minimum({a}, {b})",
    "eq": "({a} == {b})", "ne": "({a} != {b})", "lt": "({a} < {b})", "le": "({a} <= {b})", "gt": "({a} > {b})",
    "ge": "({a} >= {b})", "logical_and": "(({a} != 0) & ({b} != 0))", "logical_or": "(({a} != 0) | ({b} != 0))",
    "bitwise_and": "({a} & {b})", "bitwise_or": "({a} | {b})",
}  # fmt: skip
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isnan")
FILLS: Mapping[str, str | float] = {
    "zeros_like": 0.0, "ones_like": 1.0, "zeros": 0.0, "ones": 1.0, "scalar_tensor": "s", "full": "fill_value",
    "full_like": "fill_value",
}  # fmt: skip
"""Operators that fill a tensor with a number, or with an argument of this name."""


def expression(op: str, named: Mapping[str, JsonValue], text: Callable[[str], str], floating: bool) -> str:
    """An operator in Triton. `named`: its arguments that are no tensors; `text` gives any argument.

    `floating`: whether what it computes with is of a floating type. Raises `UnreadableError` for another operator.
    """
    if op in UNARY:
        if op == "relu" and not floating:
            return f"tl.maximum({text('self')}, 0)"
        return UNARY[op].format(a=text("self"))
    if op in BINARY:
        if op == "div" and (named.get("rounding_mode") or not floating):
            raise UnreadableError("a division of whole numbers, or one that rounds")
        return BINARY[op].format(a=text("self"), b=text("other"))
    if op in ("add", "sub", "rsub"):
        a, b = text("self"), text("other")
        alpha = named.get("alpha", 1)
        if op == "rsub":
            a, b = b, a
            return f"({a} - {b})" if alpha == 1 else f"({a} - {alpha} * {b})"
        sign = "+" if op == "add" else "-"
        return f"({a} {sign} {b})" if alpha == 1 else f"({a} {sign} {alpha} * {b})"
    if op == "pow" and isinstance(named.get("exponent"), (int, float)):
        return _power(text("self"), named["exponent"])
    if op == "tanh":
        return _tanh(text("self"))
    if op == "gelu":
        return _gelu(text("self"), str(named.get("approximate", "none")))
    if op == "leaky_relu":
        return f"tl.where({text('self')} > 0, {text('self')}, {text('self')} * {named['negative_slope']})"
    if op == "elu":
        a, alpha, scale, within = text("self"), named["alpha"], named["scale"], named["input_scale"]
        return f"tl.where({a} > 0, {a} * {scale}, {alpha} * {scale} * (tl.exp(tl.minimum({a}, 0.0) * {within}) - 1.0))"
    if op in ("hardtanh", "clamp", "clamp_min", "clamp_max"):
        low = named.get("min_val", named.get("min"))
        high = named.get("max_val", named.get("max"))
        found = text("self")
        if low is not None:
            found = f"tl.maximum({found}, {float(low) if floating else low})"  # type: ignore[arg-type]  # a number
        if high is not None:
            found = f"tl.minimum({found}, {float(high) if floating else high})"  # type: ignore[arg-type]  # a number
        return found
    if op == "softplus":
        if named.get("beta", 1) != 1:
            raise UnreadableError("softplus with a beta")
        return _softplus(text("self"))
    if op == "mish":
        return f"({text('self')} * {_tanh(_softplus(text('self')))})"
    if op == "log_sigmoid_forward":
        return "(-" + _softplus("(-" + text("self") + ")") + ")"
    if op == "where":
        return f"tl.where({text('condition')}, {text('self')}, {text('other')})"
    if op == "masked_fill":
        return f"tl.where({text('mask')}, {text('value')}, {text('self')})"
    if op == "threshold":
        return f"tl.where({text('self')} > {named['threshold']}, {text('self')}, {named['value']})"
    if op == "addcmul":
        return f"({text('self')} + {named.get('value', 1)} * {text('tensor1')} * {text('tensor2')})"
    if op == "lerp":
        return f"({text('self')} + {text('weight')} * ({text('end')} - {text('self')}))"
    raise UnreadableError(f"the operator {op}")


def literal(value: float | int | bool) -> str:
    """A number in Triton."""
    if isinstance(value, float) and not math.isfinite(value):
        return "float('nan')" if math.isnan(value) else f"float('{'-' if value < 0 else ''}inf')"
    return repr(value)


def triton_type(dtype: str) -> str:
    """`tl.float32`"""
    return {"bool": "tl.int1"}.get(dtype, f"tl.{dtype}")


def compute_type(dtype: str) -> str:
    """What a type is computed in: floating ones in float32 at least."""
    if is_float(dtype):
        return "float64" if dtype == "float64" else "float32"
    return dtype
