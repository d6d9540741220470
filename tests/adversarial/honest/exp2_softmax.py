"""Softmax in base two: inputs are scaled by log2(e) before the maximum is subtracted."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    scaled = tl.load(x + row * cols + column, mask=inside, other=float("-inf")) * 1.4426950408889634
    power = tl.exp2(scaled - tl.max(scaled, axis=0))
    tl.store(out + row * cols + column, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
