"""Kernels that rewrites are tried on, each whole file with `main()`, which returns (result, what it should be)."""

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

ADD = (
    HEAD
    + '''@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Adds."""
    pid = tl.program_id(0)  # which block
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=(mask))

    tl.store(out_ptr + offsets, x + y, mask=mask,)


def main():
    x, y = torch.randn(1000), torch.randn(1000)
    out = torch.empty_like(x)
    BLOCK = 128
    grid = (triton.cdiv(x.numel(), BLOCK),)
    add[grid](x, y, out, x.numel(), BLOCK=BLOCK)
    return out, x + y
'''
)
META = ADD.replace("    BLOCK = 128\n", "").replace(
    "grid = (triton.cdiv(x.numel(), BLOCK),)", 'grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)'
).replace("BLOCK=BLOCK)", "BLOCK=128, num_warps=8)")  # fmt: skip

SOFTMAX = (
    HEAD
    + """@triton.jit
def softmax(x_ptr, out_ptr, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    total = tl.sum(e, axis=0)
    tl.store(out_ptr + row * n + i, e / total, mask=i < n)


def main():
    x = torch.randn(7, 100)
    out = torch.empty_like(x)
    softmax[(x.shape[0],)](x, out, x.shape[1], B=128, num_warps=4)
    return out, torch.softmax(x, -1)
"""
)

ROW_LOOP = (
    HEAD
    + """@triton.jit
def rms(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        total += v * v
    scale = 1.0 / tl.sqrt(tl.sum(total, axis=0) / n + eps)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
        tl.store(out_ptr + row * n + i, v * scale, mask=i < n)


def main():
    x = torch.randn(5, 300)
    out = torch.empty_like(x)
    rms[(5,)](x, out, 300, 1e-5, BLOCK=64)
    return out, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)
"""
)

LOGSUM = (
    HEAD
    + """@triton.jit
def logsum(x_ptr, out_ptr, PARTS: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for part in range(PARTS):
        i = part * B + tl.arange(0, B)
        total += tl.sum(tl.exp(tl.load(x_ptr + row * PARTS * B + i)), axis=0)
    tl.store(out_ptr + row, tl.log(total))


def main():
    x = torch.randn(6, 64)
    out = torch.empty(6)
    logsum[(6,)](x, out, PARTS=4, B=16)
    return out, torch.logsumexp(x, -1)
"""
)

MATMUL = (
    HEAD
    + """@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)  # columns
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0)
        y = tl.load(b + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(x, y, input_precision="ieee")
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def main():
    a, b = torch.randn(50, 40), torch.randn(40, 70)
    c = torch.empty(50, 70)
    BM, BN = 16, 16
    matmul[(triton.cdiv(50, BM), triton.cdiv(70, BN))](a, b, c, 50, 70, 40, BM=BM, BN=BN, BK=16)
    return c, a @ b
"""
)

WAITING = (
    HEAD
    + """@triton.jit
def waits(x_ptr, flag, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.atomic_add(flag, 1)
    while tl.atomic_add(flag, 0) < tl.num_programs(0):
        pass
    tl.store(x_ptr + i, tl.exp(x), mask=i < n)


def main():
    x = torch.randn(64)
    waits[(4,)](x, torch.zeros(1, dtype=torch.int32), 64, BLOCK=16)
    return x, x
"""
)
TUNED = ADD.replace(
    "@triton.jit", '@triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])\n@triton.jit'
).replace(", BLOCK=BLOCK)", ")").replace("grid = (triton.cdiv(x.numel(), BLOCK),)", "grid = (16,)")  # fmt: skip
UNMASKED = (
    HEAD
    + """@triton.jit
def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, eviction_policy="evict_first"), cache_modifier=".cs",
             eviction_policy="evict_first")


def main():
    x = torch.randn(256)
    out = torch.empty_like(x)
    BLOCK = 64
    copy[(256 // BLOCK,)](x, out, BLOCK=BLOCK)
    return out, x
"""
)
FIXED_GRID = ADD.replace("grid = (triton.cdiv(x.numel(), BLOCK),)", "grid = (8,)")
EARLY = SOFTMAX.replace("    i = tl.arange(0, B)\n", "    if row >= 7:\n        return\n    i = tl.arange(0, B)\n", 1)
KERNELS = {
    "add": ADD, "meta": META, "softmax": SOFTMAX, "rms": ROW_LOOP, "logsum": LOGSUM, "matmul": MATMUL,
    "waiting": WAITING, "tuned": TUNED, "unmasked": UNMASKED, "fixed-grid": FIXED_GRID, "early": EARLY,
}  # fmt: skip
