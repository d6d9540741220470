"""Matmul."""

import torch
import triton
import triton.language as tl
from tests.adversarial.precision.rounding import keep

DTYPE = torch.float32
BITS = 0
PRECISION = "ieee"
M, N, K = 80, 96, 96


@triton.jit
def matmul(
    a,
    b,
    out,
    m,
    n,
    k,
    bits: tl.constexpr,
    precision: tl.constexpr,
    bm: tl.constexpr,
    bn: tl.constexpr,
    bk: tl.constexpr,
):
    row = tl.program_id(0) * bm + tl.arange(0, bm)[:, None]
    column = tl.program_id(1) * bn + tl.arange(0, bn)[None, :]
    inner = tl.arange(0, bk)
    total = tl.zeros((bm, bn), tl.float32)
    for start in range(0, k, bk):
        at = start + inner
        left = tl.load(a + row * k + at[None, :], mask=(row < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + column, mask=(at[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(keep(left, bits), keep(right, bits), total, input_precision=precision)
    tl.store(out + row * n + column, total.to(out.dtype.element_ty), mask=(row < m) & (column < n))


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        matmul[grid](a, b, out, m, n, k, bits=BITS, precision=PRECISION, bm=32, bn=32, bk=32)
        return out


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K).to(DTYPE), torch.randn(K, N).to(DTYPE)]
