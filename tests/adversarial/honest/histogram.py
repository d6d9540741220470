"""Counts by integer atomics: integer input, integer output, no floating number anywhere."""

import torch
import triton
import triton.language as tl


@triton.jit
def count(index, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    ones = tl.full((block,), 1, tl.int32)
    tl.atomic_add(out + tl.load(index + at, mask=inside, other=0), ones, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, bins: int) -> None:
        super().__init__()
        self.bins = bins

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(self.bins, dtype=torch.int32, device=index.device)
        count[(triton.cdiv(index.numel(), 1024),)](index, out, index.numel(), block=1024)
        return out
