"""Reads each row three times: for the maximum, for the sum, for the result. A row and its neighbours in flight do not
fit into L2."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_three_pass(x, y, cols, block: tl.constexpr):
    row = x + tl.program_id(0).to(tl.int64) * cols
    out = y + tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, block)
    largest = tl.full((block,), -float("inf"), tl.float32)
    for start in range(0, cols, block):
        inside = start + at < cols
        largest = tl.maximum(largest, tl.load(row + start + at, mask=inside, other=-float("inf")))
    top = tl.max(largest, axis=0)
    sums = tl.zeros((block,), tl.float32)
    for start in range(0, cols, block):
        inside = start + at < cols
        sums += tl.exp(tl.load(row + start + at, mask=inside, other=-float("inf")) - top)
    total = tl.sum(sums, axis=0)
    for start in range(0, cols, block):
        inside = start + at < cols
        tl.store(out + start + at, tl.exp(tl.load(row + start + at, mask=inside) - top) / total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        rows, cols = x.shape
        softmax_three_pass[(rows,)](x, y, cols, block=2048, num_warps=8)
        return y
