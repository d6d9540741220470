"""Names its weights otherwise than the reference, in the same order."""

import torch
import triton
import triton.language as tl


@triton.jit
def layernorm(x, gamma, beta, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    off = tl.where(inside, value - tl.sum(value, axis=0) / cols, 0.0)
    variance = tl.sum(off * off, axis=0) / cols
    rstd = 1.0 / tl.sqrt(variance + eps)
    scale = tl.load(gamma + column, mask=inside)
    tl.store(out + row * cols + column, off * rstd * scale + tl.load(beta + column, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = torch.nn.Parameter(torch.ones(width))
        self.beta = torch.nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        rows, cols = x.shape
        layernorm[(rows,)](x, self.gamma, self.beta, out, cols, 1e-5, block=triton.next_power_of_2(cols))
        return out
