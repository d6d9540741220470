"""setup / run_kernel form with floats, an integer and a bool among the arguments."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled_sum(x, y, out, alpha, beta, n, clip: tl.constexpr, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    total = alpha * tl.load(x + at, mask=at < n) + beta * tl.load(y + at, mask=at < n)
    if clip:
        total = tl.maximum(total, 0.0)
    tl.store(out + at, total, mask=at < n)


def run_kernel(
    x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, alpha: float, beta: float, n: int, clip: bool
) -> None:
    scaled_sum[(triton.cdiv(n, 512),)](x, y, out, alpha, beta, n, clip=clip, block=512)
