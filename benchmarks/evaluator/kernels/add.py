"""A sum of two vectors."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(first, second, target, n, block: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    inside = place < n
    tl.store(target + place, tl.load(first + place, mask=inside) + tl.load(second + place, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        result = torch.empty_like(a)
        add_kernel[(triton.cdiv(a.numel(), 1024),)](a, b, result, a.numel(), block=1024)
        return result
