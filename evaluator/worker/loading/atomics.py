"""Atomics that Triton's interpreter lacks: exchanges of floats, sums in bfloat16, reductions through descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np


def complete(interpreter: Any, widened: Any, narrowed: Any) -> None:
    """Add them; `widened` and `narrowed` bring bfloat16 to float32 and back."""
    import triton.language as tl

    builder, native, ir = interpreter.InterpreterBuilder, interpreter._interpreter, interpreter._ir
    plain = builder.create_atomic_rmw

    def exchanged(self: Any, kind: Any, ptr: Any, val: Any, *rest: Any) -> Any:
        bits = np.dtype(f"uint{8 * val.data.dtype.itemsize}")
        as_bits = interpreter.TensorHandle(val.data.view(bits), getattr(tl, bits.name))
        found = plain(self, kind, ptr, as_bits, *rest)
        return interpreter.TensorHandle(found.data.view(val.data.dtype), val.dtype.scalar)

    def added(ptr: Any, val: Any, mask: Any) -> Any:
        """One element after the other: several may have the same address."""
        places, values, chosen = (np.ravel(handle.data) for handle in (ptr, val, mask))
        before = np.zeros_like(values)
        one = np.ones((1,), np.bool_)
        for n in np.flatnonzero(chosen):
            place = places[n : n + 1]
            before[n : n + 1] = native.load(place, one, values[n : n + 1], values.dtype)
            total = widened(before[n : n + 1]) + widened(values[n : n + 1])
            native.store(place, narrowed(total), one)
        return interpreter.TensorHandle(before.reshape(val.data.shape), val.dtype.scalar)

    def create_atomic_rmw(self: Any, kind: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        if val.dtype.scalar == tl.bfloat16 and kind == ir.ATOMIC_OP.FADD:
            return added(ptr, val, mask)
        if val.dtype.scalar.is_floating() and kind == ir.ATOMIC_OP.XCHG:
            return exchanged(self, kind, ptr, val, mask, *rest)
        return plain(self, kind, ptr, val, mask, *rest)

    def create_descriptor_reduce(self: Any, kind: Any, descriptor: Any, value: Any, offsets: Any) -> Any:
        word = kind.name
        if value.dtype.scalar.is_floating() and word == "ADD":
            word = "FADD"
        elif value.dtype.scalar.is_floating() and word in ("MIN", "MAX"):
            raise NotImplementedError(f"Triton's interpreter has no {word} of floats through a descriptor")
        elif word in ("MIN", "MAX") and value.dtype.scalar.is_int_unsigned():
            word = f"U{word}"
        places, inside = descriptor.materialize_pointers(offsets)
        mask = interpreter.TensorHandle(inside, tl.int1)
        operation = getattr(ir.ATOMIC_OP, word)
        return create_atomic_rmw(self, operation, places, value, mask, ir.MEM_SEMANTIC.RELAXED, None)

    builder.create_atomic_rmw = create_atomic_rmw
    builder.create_descriptor_reduce = create_descriptor_reduce
