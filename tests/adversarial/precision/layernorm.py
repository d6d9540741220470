"""LayerNorm of rows, scale and shift among the inputs."""

import torch
import triton
import triton.language as tl
from tests.adversarial.precision.rounding import keep

DTYPE = torch.float32
BITS = 0
ROWS, COLS = 16, 320


@triton.jit
def layernorm(x, weight, bias, out, rows, cols, eps, bits: tl.constexpr, high: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * high + tl.arange(0, high)[:, None]
    column = tl.arange(0, wide)[None, :]
    inside = (row < rows) & (column < cols)
    value = keep(tl.load(x + row * cols + column, mask=inside, other=0.0).to(tl.float32), bits)
    off = tl.where(inside, value - tl.sum(value, axis=1, keep_dims=True) / cols, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(off * off, axis=1, keep_dims=True) / cols + eps)
    scale = tl.load(weight + column, mask=column < cols, other=0.0).to(tl.float32)
    shift = tl.load(bias + column, mask=column < cols, other=0.0).to(tl.float32)
    tl.store(out + row * cols + column, (off * rstd * scale + shift).to(out.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        rows, cols = x.shape
        wide = triton.next_power_of_2(cols)
        layernorm[(triton.cdiv(rows, 8),)](x, weight, bias, out, rows, cols, 1e-5, bits=BITS, high=8, wide=wide)
        return out


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(*shape).to(DTYPE) for shape in ((ROWS, COLS), (COLS,), (COLS,))]
