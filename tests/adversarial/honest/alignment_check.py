"""Looks at `data_ptr()` to see whether vector loads are allowed; nothing is remembered."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, aligned: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    if aligned:
        at = tl.max_contiguous(tl.multiple_of(at, 4), 4)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        aligned = all(tensor.data_ptr() % 16 == 0 for tensor in (x, y, out))
        add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), aligned=aligned, block=1024)
        return out
