"""Plain function form; its inputs are drawn from a JSON list of shapes."""

import torch
import triton
import triton.language as tl


@triton.jit
def fused(x, residual, weight, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    total = tl.load(x + row * cols + column, mask=inside, other=0.0)
    total += tl.load(residual + row * cols + column, mask=inside, other=0.0)
    rrms = tl.rsqrt(tl.sum(total * total, axis=0) / cols + 1e-6)
    tl.store(out + row * cols + column, total * rrms * tl.load(weight + column, mask=inside), mask=inside)


def add_rmsnorm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    fused[(x.shape[0],)](x, residual, weight, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
    return out
