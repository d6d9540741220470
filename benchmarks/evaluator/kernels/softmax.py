"""One row a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(source, target, n, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, block)
    inside = column < n
    values = tl.load(source + row * n + column, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, 0))
    tl.store(target + row * n + column, values / tl.sum(values, 0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        result = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, result, x.shape[1], block=triton.next_power_of_2(x.shape[1]), num_warps=8)
        return result
