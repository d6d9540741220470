"""RMSNorm, a row a program."""

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


class ModelNew(torch.nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        rmsnorm[(x.shape[0],)](x, self.weight, out, x.shape[1], self.eps, block=triton.next_power_of_2(x.shape[1]))
        return out
