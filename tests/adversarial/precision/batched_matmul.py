"""Batched matmul, a batch a plane of programs."""

import torch
import triton
import triton.language as tl
from tests.adversarial.precision.rounding import keep

DTYPE = torch.float32
BITS = 0
PRECISION = "ieee"
B, M, N, K = 3, 64, 64, 80


@triton.jit
def bmm(
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
    batch = tl.program_id(2)
    a += batch * m * k
    b += batch * k * n
    row = tl.program_id(0) * bm + tl.arange(0, bm)[:, None]
    column = tl.program_id(1) * bn + tl.arange(0, bn)[None, :]
    inner = tl.arange(0, bk)
    total = tl.zeros((bm, bn), tl.float32)
    for start in range(0, k, bk):
        at = start + inner
        left = tl.load(a + row * k + at[None, :], mask=(row < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + column, mask=(at[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(keep(left, bits), keep(right, bits), total, input_precision=precision)
    place = out + batch * m * n + row * n + column
    tl.store(place, total.to(out.dtype.element_ty), mask=(row < m) & (column < n))


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        (batches, m, k), n = a.shape, b.shape[2]
        out = torch.empty(batches, m, n, dtype=a.dtype, device=a.device)
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 64), batches)
        bmm[grid](a, b, out, m, n, k, bits=BITS, precision=PRECISION, bm=32, bn=64, bk=32)
        return out


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(B, M, K).to(DTYPE), torch.randn(B, K, N).to(DTYPE)]
