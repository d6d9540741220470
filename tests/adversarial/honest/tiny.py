"""One short kernel, a few microseconds on a GPU: launching it takes longer than running it."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 512),)](x, y, out, x.numel(), block=512)
        return out
