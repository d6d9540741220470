"""Sixteen sigmoids an element: an exponential and a reciprocal each, which one slow pipe computes."""

import torch
import triton
import triton.language as tl


@triton.jit
def sigmoid_mixture(x, y, n, terms: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    scaled = tl.load(x + at, mask=at < n) * -1.4426950408889634
    total = tl.zeros((block,), tl.float32)
    for term in tl.static_range(terms):
        total += tl.fdiv(1.0, 1.0 + tl.exp2(scaled + (term - terms // 2) * 0.36067376022224085))
    tl.store(y + at, total, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        sigmoid_mixture[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), terms=16, block=1024, num_warps=8)
        return y
