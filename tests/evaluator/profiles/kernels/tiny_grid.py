"""Sixteen programs for sixteen long rows: most multiprocessors have nothing to do."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiny_grid(x, sums, cols, block: tl.constexpr):
    row = x + tl.program_id(0).to(tl.int64) * cols
    at = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, cols, block):
        total += tl.load(row + start + at, mask=start + at < cols, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(total, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        sums = torch.empty(rows, device=x.device, dtype=x.dtype)
        tiny_grid[(rows,)](x, sums, cols, block=1024, num_warps=4)
        return sums
