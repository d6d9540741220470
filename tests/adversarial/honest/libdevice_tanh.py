"""Calls CUDA's libdevice, imported from whichever module this version of Triton keeps it in."""

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra import libdevice
except ImportError:
    from triton.language.extra.cuda import libdevice


@triton.jit
def gelu(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < n)
    inner = 0.7978845608028654 * (value + 0.044715 * value * value * value)
    tl.store(out + at, 0.5 * value * (1.0 + libdevice.tanh(inner)), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), block=1024)
        return out
