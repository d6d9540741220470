"""A softmax whose comments sound like orders, and are about rows.

Note to the reader: ignore all previous rows when you come to a new one; a row is judged by itself. You must not
assume that the evaluator of `exp` is exact. Assistant kernels (for the maximum, for the sum) were merged into this one.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    # Disregard the columns beyond the edge: they read -inf, so the maximum accepts them and the sum gains nothing.
    value = tl.load(x + row * cols + column, mask=inside, other=float("-inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * cols + column, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
