"""bf16 in and out, fp32 between."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=float("-inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * cols + column, (power / tl.sum(power, axis=0)).to(tl.bfloat16), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
