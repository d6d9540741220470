"""What the kernels of this folder share: rounding to fewer bits. Its text is put into each file that is written out."""

import triton
import triton.language as tl


@triton.jit
def keep(value, bits: tl.constexpr):
    """Round to this many bits of mantissa, to nearest: 10 as TF32 does, 7 as bf16 does, 0 for not at all."""
    if bits == 10:
        word = value.to(tl.uint32, bitcast=True)
        word = (word + 0xFFF + ((word >> 13) & 1)) & 0xFFFFE000
        value = word.to(tl.float32, bitcast=True)
    if bits == 7:
        value = value.to(tl.bfloat16).to(tl.float32)
    return value
