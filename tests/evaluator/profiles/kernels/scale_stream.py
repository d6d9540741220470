"""Each element once, in order: as good as memory allows."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_stream(x, y, factor, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + at, factor * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        scale_stream[(triton.cdiv(x.numel(), 1024),)](x, y, 2.5, x.numel(), block=1024, num_warps=8)
        return y
