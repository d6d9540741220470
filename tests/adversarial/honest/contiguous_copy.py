"""Copies a transposed input to a contiguous one with torch first; the sum is the kernel's own."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_norm(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    value = tl.load(x + row * cols + column, mask=column < cols, other=0.0)
    tl.store(out + row, tl.sum(tl.abs(value), axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not x.is_contiguous():
            x = x.contiguous()
        out = torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
        row_norm[(x.shape[0],)](x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
