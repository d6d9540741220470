"""Logarithm of whatever comes: NaN for negative inputs and for zero times infinity, where the reference has NaN too."""

import torch
import triton
import triton.language as tl


@triton.jit
def entropy(p, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(p + at, mask=at < n, other=1.0)
    tl.store(out + at, -value * tl.log(value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, p: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(p)
        entropy[(triton.cdiv(p.numel(), 1024),)](p, out, p.numel(), block=1024)
        return out
