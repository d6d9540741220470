"""Copies a small table from the host's pinned memory in every call, before the kernel that reads it."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, table, out, cols, block: tl.constexpr):
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * block + tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside) * tl.load(table + column, mask=inside)
    tl.store(out + row * cols + column, value, mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        if cols not in self.tables:
            self.tables[cols] = torch.exp(-torch.arange(cols, dtype=torch.float32) / cols).pin_memory()
        x = x.contiguous()
        table = self.tables[cols].to(x.device, non_blocking=True)
        out = torch.empty_like(x)
        scale[(rows, triton.cdiv(cols, 1024))](x, table, out, cols, block=1024)
        return out
