"""Softmax with a running maximum and a running sum, rescaled as the maximum grows; a second pass writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, block)
    peak = -float("inf")
    total = 0.0
    for start in range(0, cols, block):
        column = start + lane
        value = tl.load(x + row * cols + column, mask=column < cols, other=float("-inf"))
        higher = tl.maximum(peak, tl.max(value, axis=0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(value - higher), axis=0)
        peak = higher
    for start in range(0, cols, block):
        column = start + lane
        value = tl.load(x + row * cols + column, mask=column < cols, other=float("-inf"))
        tl.store(out + row * cols + column, tl.exp(value - peak) / total, mask=column < cols)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], block=128)
        return out
