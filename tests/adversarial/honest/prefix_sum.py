"""Inclusive prefix sum with `tl.cumsum`, block after block with a carry."""

import torch
import triton
import triton.language as tl


@triton.jit
def prefix_sum(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, cols, block):
        column = start + tl.arange(0, block)
        value = tl.load(x + row * cols + column, mask=column < cols, other=0.0)
        tl.store(out + row * cols + column, carry + tl.cumsum(value, axis=0), mask=column < cols)
        carry += tl.sum(value, axis=0)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        prefix_sum[(x.shape[0],)](x, out, x.shape[1], block=128)
        return out
