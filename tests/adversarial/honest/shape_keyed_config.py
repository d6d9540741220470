"""Remembers launch parameters, not results, by the shape of its input."""

import functools
from typing import ClassVar

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm(x, weight, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    rrms = tl.rsqrt(tl.sum(value * value, axis=0) / cols + eps)
    tl.store(out + row * cols + column, value * rrms * tl.load(weight + column, mask=inside), mask=inside)


@functools.lru_cache(maxsize=64)
def warps_for(block: int) -> int:
    return min(16, max(1, block // 256))


class ModelNew(torch.nn.Module):
    _configurations: ClassVar[dict[tuple[torch.Size, torch.dtype], tuple[int, int]]] = {}

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = (x.shape, x.dtype)
        if key not in self._configurations:
            block = triton.next_power_of_2(x.shape[1])
            self._configurations[key] = (block, warps_for(block))
        block, warps = self._configurations[key]
        out = torch.empty_like(x)
        rmsnorm[(x.shape[0],)](x, self.weight, out, x.shape[1], self.eps, block=block, num_warps=warps)
        return out
