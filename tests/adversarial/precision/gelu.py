"""GELU by tanh, element by element."""

import torch
import triton
import triton.language as tl
from tests.adversarial.precision.rounding import keep

DTYPE = torch.float32
BITS = 0
ROWS, COLS = 16, 320


@triton.jit
def gelu(x, out, n, bits: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = keep(tl.load(x + at, mask=at < n, other=0.0).to(tl.float32), bits)
    inner = 1.5957691216057308 * (value + 0.044715 * value * value * value)
    tl.store(out + at, (value * tl.sigmoid(inner)).to(out.dtype.element_ty), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        gelu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), bits=BITS, block=1024)
        return out


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS).to(DTYPE)]
