"""Derives launch parameters from its arguments with `triton.heuristics`."""

import torch
import triton
import triton.language as tl


@triton.heuristics({"even": lambda args: args["n"] % args["block"] == 0})
@triton.jit
def add(x, y, out, n, block: tl.constexpr, even: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    if even:
        tl.store(out + at, tl.load(x + at) + tl.load(y + at))
    else:
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), block=1024)
        return out
