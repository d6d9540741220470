"""Reads a transposed input by its strides."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_norm(x, out, rows, cols, down, across, high: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * high + tl.arange(0, high)
    column = tl.arange(0, wide)
    inside = (row[:, None] < rows) & (column[None, :] < cols)
    value = tl.load(x + row[:, None] * down + column[None, :] * across, mask=inside, other=0.0)
    tl.store(out + row, tl.sum(tl.abs(value), axis=1), mask=row < rows)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        wide = triton.next_power_of_2(cols)
        row_norm[(triton.cdiv(rows, 16),)](x, out, rows, cols, x.stride(0), x.stride(1), high=16, wide=wide)
        return out
