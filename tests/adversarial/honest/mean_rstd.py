"""Two outputs that are views of one allocation."""

import torch
import triton
import triton.language as tl


@triton.jit
def statistics_of_rows(x, out, rows, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    mean = tl.sum(value, axis=0) / cols
    off = tl.where(inside, value - mean, 0.0)
    tl.store(out + row, mean)
    tl.store(out + rows + row, 1.0 / tl.sqrt(tl.sum(off * off, axis=0) / cols + eps))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, cols = x.shape
        both = torch.empty(2, rows, dtype=x.dtype, device=x.device)
        statistics_of_rows[(rows,)](x, both, rows, cols, 1e-5, block=triton.next_power_of_2(cols))
        return both[0], both[1]
