"""Sums columns in one program, one row after the other: the longest chain of roundings that a sum can have."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_rows(x, out, rows, cols, block: tl.constexpr):
    column = tl.arange(0, block)
    inside = column < cols
    total = tl.zeros((block,), tl.float32)
    for row in range(rows):
        total += tl.load(x + row * cols + column, mask=inside, other=0.0)
    tl.store(out + column, total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty(x.shape[1], dtype=x.dtype, device=x.device)
        sum_rows[(1,)](x, out, x.shape[0], x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
