"""LayerNorm whose statistics are merged block by block (Chan's form of Welford's update)."""

import torch
import triton
import triton.language as tl


@triton.jit
def layernorm(x, weight, bias, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, block)
    count = 0.0
    mean = 0.0
    spread = 0.0
    for start in range(0, cols, block):
        inside = start + lane < cols
        value = tl.load(x + row * cols + start + lane, mask=inside, other=0.0)
        more = tl.sum(inside.to(tl.float32), axis=0)
        here = tl.sum(value, axis=0) / more
        off = tl.where(inside, value - here, 0.0)
        step = here - mean
        spread += tl.sum(off * off, axis=0) + step * step * count * more / (count + more)
        mean += step * more / (count + more)
        count += more
    rstd = 1.0 / tl.sqrt(spread / cols + eps)
    for start in range(0, cols, block):
        column = start + lane
        inside = column < cols
        value = tl.load(x + row * cols + column, mask=inside, other=0.0)
        scale = tl.load(weight + column, mask=inside)
        shift = tl.load(bias + column, mask=inside)
        tl.store(out + row * cols + column, (value - mean) * rstd * scale + shift, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        norm = self.norm
        layernorm[(x.shape[0],)](x, norm.weight, norm.bias, out, x.shape[1], norm.eps, block=128)
        return out
