"""Two outputs of two types: the maximum of each row and where it stands (int64)."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_max(x, values, indices, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    value = tl.load(x + row * cols + column, mask=column < cols, other=float("-inf"))
    tl.store(values + row, tl.max(value, axis=0))
    tl.store(indices + row, tl.argmax(value, axis=0).to(tl.int64))


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows, cols = x.shape
        values = torch.empty(rows, dtype=x.dtype, device=x.device)
        indices = torch.empty(rows, dtype=torch.int64, device=x.device)
        row_max[(rows,)](x, values, indices, cols, block=triton.next_power_of_2(cols))
        return values, indices
