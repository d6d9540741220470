"""Returns a transposed view: the right shape and values, but strides of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 0.125, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        scale[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), block=1024)
        return out.t()
