"""Updates two of its arguments in place: they are inputs and outputs at once."""

import torch
import triton
import triton.language as tl


@triton.jit
def step(parameter, momentum, gradient, rate, decay, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    speed = decay * tl.load(momentum + at, mask=inside) + tl.load(gradient + at, mask=inside)
    tl.store(momentum + at, speed, mask=inside)
    tl.store(parameter + at, tl.load(parameter + at, mask=inside) - rate * speed, mask=inside)


def run_kernel(
    parameter: torch.Tensor, momentum: torch.Tensor, gradient: torch.Tensor, rate: float, decay: float, n: int
) -> None:
    step[(triton.cdiv(n, 1024),)](parameter, momentum, gradient, rate, decay, n, block=1024)
