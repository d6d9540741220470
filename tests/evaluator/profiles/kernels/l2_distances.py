"""Every program reads the whole vector, which fits into L2 and not into L1. Each starts at another place, so that not
all ask the same slice of L2 at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def l2_distances(x, centres, sums, n, block: tl.constexpr):
    number = tl.program_id(0)
    centre = tl.load(centres + number)
    at = tl.arange(0, block)
    blocks = n // block
    total = tl.zeros((block,), tl.float32)
    for step in range(0, blocks):
        place = (step + number * 61) % blocks
        total += tl.abs(tl.load(x + place * block + at) - centre)
    tl.store(sums + number, tl.sum(total, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
        sums = torch.empty_like(centres)
        l2_distances[(centres.numel(),)](x, centres, sums, x.numel(), block=4096, num_warps=8)
        return sums
