"""A program a row, the row in registers: one read and one write."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, cols, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, block)
    values = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * cols + at, exponentials / tl.sum(exponentials, axis=0), mask=at < cols)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_rows[(rows,)](x, y, cols, block=triton.next_power_of_2(cols), num_warps=8)
        return y
