"""Writes its first argument and returns it, as the reference does."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_relu(x, y, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(x + at, tl.maximum(total, 0.0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        add_relu[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), block=1024)
        return x
