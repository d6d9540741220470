"""Triton kernels that have a method, and kernels that have not: `<has|lacks>__<method>__<what>`.

Compiled by tests/evaluator/sass/test_sass_corpus.py for each target; nothing here is run.
"""

# ruff: noqa: N803 - constants of Triton kernels are written large

import triton
import triton.language as tl


@triton.jit
def has__tensor_core__dot(a, b, c, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        x = tl.load(a + rows[:, None] * n + (k + columns)[None, :])
        y = tl.load(b + (k + rows)[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * BLOCK + columns[None, :], total)


@triton.jit
def lacks__tensor_core__packed_half(x, y, n, BLOCK: tl.constexpr):
    # Multiply-adds in half precision: HFMA2 and, on sm_80, HFMA2.MMA.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for _ in range(n):
        value = value * value + value
    tl.store(y + at, value)


@triton.jit
def lacks__tensor_core__fp32_dot(a, b, c, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(a + at[:, None] * BLOCK + at[None, :])
    y = tl.load(b + at[:, None] * BLOCK + at[None, :])
    tl.store(c + at[:, None] * BLOCK + at[None, :], tl.dot(x, y, input_precision="ieee"))


@triton.jit
def has__vectorized_access__copy(x, y, BLOCK: tl.constexpr):
    # It has no other method: it is held against each of those of which no other kernel here is without.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def lacks__vectorized_access__unaligned(x, y, BLOCK: tl.constexpr):
    # Compiled with pointers of which nothing is known.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at))


@triton.jit
def has__async_copy__pipelined(a, b, c, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        x = tl.load(a + rows[:, None] * n + (k + columns)[None, :])
        y = tl.load(b + (k + rows)[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * BLOCK + columns[None, :], total)


@triton.jit
def has__warp_shuffle__sum(x, y, BLOCK: tl.constexpr):
    tl.store(y + tl.program_id(0), tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0))


@triton.jit
def has__mufu_ex2_softmax__exp(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.exp(tl.load(x + at)))


@triton.jit
def lacks__mufu_ex2_softmax__other_functions(x, y, BLOCK: tl.constexpr):
    # MUFU.RSQ and MUFU.RCP are no power of two.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(y + at, tl.log2(value) + tl.rsqrt(value) + 1.0 / value)


@triton.jit
def has__ldmatrix_stmatrix__dot(a, b, c, n, BLOCK: tl.constexpr):
    # The first operand is computed before it is multiplied, so that it lies in registers.
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        x = tl.load(a + rows[:, None] * n + (k + columns)[None, :])
        y = tl.load(b + (k + rows)[:, None] * n + columns[None, :])
        total = tl.dot((x * 2).to(tl.float16), y, total)
    tl.store(c + rows[:, None] * BLOCK + columns[None, :], total.to(tl.float16))


@triton.jit
def has__tma_descriptor__copy(x, y, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y, shape=[n, n], strides=[n, 1], block_shape=[BLOCK, BLOCK])
    at = tl.program_id(0) * BLOCK
    target.store([at, 0], source.load([at, 0]))


@triton.jit
def has__tma_bulk_copy__inline(x, y):
    tl.store(
        y,
        tl.inline_asm_elementwise(
            "cp.async.bulk.global.shared::cta.bulk_group [$1], [$2], 16; mov.u32 $0, $2;",
            "=r,l,r",
            [x.to(tl.int64), tl.load(y)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        ),
    )


@triton.jit
def lacks__tma_bulk_copy__prefetch(x, y):
    # UBLKPF fetches into L2 alone.
    tl.store(
        y,
        tl.inline_asm_elementwise(
            "cp.async.bulk.prefetch.L2.global [$1], 16; mov.u32 $0, 0;",
            "=r,l",
            [x.to(tl.int64)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        ),
    )


@triton.jit
def has__setmaxnreg__specialized(a, b, c, n, BLOCK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, shape=[n, n], strides=[n, 1], block_shape=[BLOCK, BLOCK])
    right = tl.make_tensor_descriptor(b, shape=[n, n], strides=[n, 1], block_shape=[BLOCK, BLOCK])
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, n, BLOCK, warp_specialize=True):
        total = tl.dot(left.load([0, k]), right.load([k, 0]), total)
    tl.store(c + rows[:, None] * BLOCK + columns[None, :], total)


@triton.jit
def has__register_spill__large_tile(a, b, c, BLOCK: tl.constexpr):
    # Two tiles of 64 × 64 in one warp are 256 values a thread, more than its registers hold.
    at = tl.arange(0, BLOCK)
    x = tl.load(a + at[:, None] * BLOCK + at[None, :])
    y = tl.load(b + at[None, :] * BLOCK + at[:, None])
    tl.store(c + at[:, None] * BLOCK + at[None, :], tl.exp(x) * tl.sum(x * y, 1)[:, None] + y)
