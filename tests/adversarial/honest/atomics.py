"""Adds by atomics: on a GPU the order of additions, and so the last bits, differ from call to call."""

import torch
import triton
import triton.language as tl


@triton.jit
def index_add(values, index, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    tl.atomic_add(out + tl.load(index + at, mask=inside, other=0), tl.load(values + at, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, bins: int) -> None:
        super().__init__()
        self.bins = bins

    def forward(self, values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(self.bins, dtype=values.dtype, device=values.device)
        n = values.numel()
        index_add[(triton.cdiv(n, 512),)](values, index, out, n, block=512)
        return out
