"""Has one buffer more than the reference, a workspace that each call writes and none reads."""

import torch
import triton
import triton.language as tl


@triton.jit
def layernorm(x, weight, bias, variances, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    off = tl.where(inside, value - tl.sum(value, axis=0) / cols, 0.0)
    variance = tl.sum(off * off, axis=0) / cols
    tl.store(variances + row, variance)
    rstd = 1.0 / tl.sqrt(variance + eps)
    scale = tl.load(weight + column, mask=inside)
    tl.store(out + row * cols + column, off * rstd * scale + tl.load(bias + column, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.register_buffer("variances", torch.zeros(4096), persistent=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        rows, cols = x.shape
        layernorm[(rows,)](
            x, self.norm.weight, self.norm.bias, self.variances, out, cols, 1e-5, block=triton.next_power_of_2(cols)
        )
        return out
