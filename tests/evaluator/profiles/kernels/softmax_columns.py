"""A program a column of a row-major matrix: neighbouring threads read numbers that lie a whole row apart."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_columns(x, y, rows, cols, block: tl.constexpr):
    at = tl.arange(0, block)
    place = at * cols + tl.program_id(0)
    values = tl.load(x + place, mask=at < rows, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + place, exponentials / tl.sum(exponentials, axis=0), mask=at < rows)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_columns[(cols,)](x, y, rows, cols, block=triton.next_power_of_2(rows), num_warps=8)
        return y
