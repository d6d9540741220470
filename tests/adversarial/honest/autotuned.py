"""Picks its block and warps by trial, under `triton.autotune`: the tuner calls the kernel often and times it."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"block": 256}, num_warps=2),
        triton.Config({"block": 512}, num_warps=4),
        triton.Config({"block": 1024}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def gelu(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < n)
    inner = 1.5957691216057308 * (value + 0.044715 * value * value * value)
    tl.store(out + at, value / (1.0 + tl.exp(-inner)), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        gelu[lambda meta: (triton.cdiv(x.numel(), meta["block"]),)](x, out, x.numel())
        return out
