"""LayerNorm that reads its input once for the statistics: variance as E[x²] − E[x]²."""

import torch
import triton
import triton.language as tl


@triton.jit
def layernorm(x, weight, bias, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / cols
    variance = tl.maximum(tl.sum(value * value, axis=0) / cols - mean * mean, 0.0)
    scale = tl.load(weight + column, mask=inside) / tl.sqrt(variance + eps)
    tl.store(out + row * cols + column, (value - mean) * scale + tl.load(bias + column, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        layernorm[(x.shape[0],)](x, self.norm.weight, self.norm.bias, out, x.shape[1], self.norm.eps, block=block)
        return out
