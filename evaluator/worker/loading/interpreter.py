"""What Triton's interpreter lacks for the kernels that people write: autotuning, number formats, a driver, libdevice.

The interpreter keeps bfloat16 as 16 bits and would add the bits; here both sides are widened to float32 and the result
is rounded to nearest even, as the hardware does.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluator.worker.loading import atomics, interpreted
from evaluator.worker.loading.cpu_mode import STAND_INS, StandIn
from evaluator.worker.loading.stand_in_driver import properties, stand_in


def complete() -> None:
    """Add it, where Triton is installed. Once, before the first kernel is defined."""
    try:
        from triton.runtime import interpreter
        from triton.runtime.autotuner import Autotuner
    except ImportError:
        return
    _tune_by_chance(Autotuner)
    _compute_in_bfloat16(interpreter.InterpreterBuilder)
    _bounds_of_one_element(interpreter)
    driver_of(STAND_INS[0])
    for part in (_round_to_float8, _exchange_and_add, *interpreted.PARTS):
        with contextlib.suppress(AttributeError, ImportError):  # another Triton's interpreter has other parts
            part(interpreter)


def _exchange_and_add(interpreter: Any) -> None:
    atomics.complete(interpreter, widened, narrowed)


def driver_of(told: StandIn) -> None:
    """Make a stand-in `triton.runtime.driver.active`, where no GPU has one and Triton is installed."""
    try:
        from triton.backends.compiler import GPUTarget
        from triton.runtime import driver
    except ImportError:
        return
    major, minor = told.capability
    facts = properties(told.multiprocessors, told.shared)
    driver.set_active(stand_in(GPUTarget("cuda", 10 * major + minor, 32), facts))


def _bounds_of_one_element(interpreter: Any) -> None:
    """The bound of a loop is an array of one element, which NumPy 2.5 no longer takes for a number (Triton 3.6)."""
    patch = interpreter._patch_lang_tensor

    def patched(tensor: Any, scope: Any) -> None:
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    interpreter._patch_lang_tensor = patched


def _tune_by_chance(autotuner: Any) -> None:
    """Nothing can be timed in the interpreter: the first call of each key draws its configuration, which stays, as the
    fastest does on a GPU. Each process draws anew."""
    drawn = random.SystemRandom()  # forked processes would share the state of another

    def bench(self: Any, *args: Any, config: Any, **more: Any) -> list[float]:
        del self, args, config, more
        return [drawn.random()] * 3

    autotuner._bench = bench


def widened(bits: Any) -> Any:
    """bfloat16 bits (uint16) as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: Any) -> Any:
    """float32 as bfloat16 bits (uint16), rounded to nearest even; a NaN stays one."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    with np.errstate(over="ignore"):  # of NaNs, which are replaced
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


_LARGEST_FLOAT8 = {"fp8e4nv": 448.0, "fp8e5": 57344.0}
"""A float8 of NVIDIA's saturates: what is finite or infinite beyond it becomes this."""


def _round_to_float8(interpreter: Any) -> None:
    """Float8 by PyTorch's conversion, to nearest even; the interpreter's own adds without a carry."""
    import torch
    from torch.utils.dlpack import from_dlpack

    kinds = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}
    builder = interpreter.InterpreterBuilder
    convert, dot = builder.create_fp_to_fp, builder.create_dot
    to_nearest = interpreter._ir.ROUNDING_MODE.RTNE

    def wide(handle: Any) -> Any:
        return np.from_dlpack(from_dlpack(np.array(handle.data)).view(kinds[handle.dtype.scalar.name]).float())

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        if a.dtype.scalar.name in kinds and b.dtype.scalar.name in kinds:
            a, b = (interpreter.TensorHandle(wide(side), interpreter.tl.float32) for side in (a, b))
        return dot(self, a, b, *rest)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        before, after = src.dtype.scalar, dst_type.scalar
        if after.name in kinds and before.name in ("fp16", "bf16", "fp32") and rounding in (None, to_nearest):
            values = widened(src.data) if before.name == "bf16" else src.data.astype(np.float32)
            largest = _LARGEST_FLOAT8[after.name]
            rounded = from_dlpack(np.clip(values, -largest, largest)).to(kinds[after.name])
            return interpreter.TensorHandle(np.from_dlpack(rounded.view(torch.uint8)), after)
        if before.name in kinds and after.name in ("fp16", "bf16", "fp32"):
            found = wide(src)
            found = narrowed(found) if after.name == "bf16" else found.astype(interpreter._get_np_dtype(after))
            return interpreter.TensorHandle(found, after)
        return convert(self, src, dst_type, rounding)

    builder.create_fp_to_fp, builder.create_dot = create_fp_to_fp, create_dot


def _compute_in_bfloat16(builder: Any) -> None:
    import triton.language as tl
    from triton.runtime.interpreter import ReduceOps, TensorHandle, _get_np_dtype

    def is_bfloat16(handle: Any) -> bool:
        return bool(handle.dtype.scalar == tl.bfloat16)

    def result(values: Any) -> Any:
        comparison = values.dtype == np.bool_
        return TensorHandle(values if comparison else narrowed(values), tl.int1 if comparison else tl.bfloat16)

    def widening(original: Callable[..., Any], operands: int) -> Callable[..., Any]:
        """`original(self, *operands, op)`, computed in float32 where the operands are bfloat16."""

        def call(self: Any, *args: Any) -> Any:
            values, rest = args[:operands], args[operands:]
            if all(map(is_bfloat16, values)) and rest and rest[0] is not np.where:
                with np.errstate(all="ignore"):
                    return result(rest[0](*(widened(value.data) for value in values)))
            return original(self, *args)

        return call

    for name, operands in (("unary_op", 1), ("binary_op", 2), ("ternary_op", 3)):
        setattr(builder, name, widening(getattr(builder, name), operands))
    fused, dot, cast = builder.create_fma, builder.create_dot, builder.cast_impl

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        known = src.data.dtype != np.uint8 and not dst_type.scalar.is_fp8()  # 8-bit floats are bits too
        if known and is_bfloat16(src) != (dst_type.scalar == tl.bfloat16):
            with np.errstate(all="ignore"):
                if is_bfloat16(src):
                    return TensorHandle(widened(src.data).astype(_get_np_dtype(dst_type)), dst_type.scalar)
                return TensorHandle(narrowed(src.data.astype(np.float32)), tl.bfloat16)
        return cast(self, src, dst_type)

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if all(map(is_bfloat16, (x, y, z))):
            return result(widened(x.data) * widened(y.data) + widened(z.data))
        return fused(self, x, y, z)

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        if is_bfloat16(a) and is_bfloat16(b):
            a, b = (TensorHandle(widened(side.data), tl.float32) for side in (a, b))
        return dot(self, a, b, *rest)

    plain_sum = ReduceOps.sum

    def sum_(self: Any, input: Any) -> Any:
        if not is_bfloat16(input.handle):
            return plain_sum(self, input)
        total = np.sum(widened(input.handle.data), axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(narrowed(total), input.dtype)

    ReduceOps.sum = sum_
    builder.create_fma, builder.create_dot, builder.cast_impl = create_fma, create_dot, cast_impl
    if not hasattr(builder, "get_bf16"):
        builder.get_bf16 = lambda _, value: TensorHandle(narrowed(np.array([value], np.float32)), tl.bfloat16)
