"""Keeps its workspace between calls: every call writes all of it before it reads any of it."""

import torch
import triton
import triton.language as tl

SPLITS = 4


@triton.jit
def partial_sums(x, workspace, rows, cols, height, block: tl.constexpr):
    part = tl.program_id(0)
    column = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for row in range(part * height, tl.minimum((part + 1) * height, rows)):
        total += tl.load(x + row * cols + column, mask=column < cols, other=0.0)
    tl.store(workspace + part * cols + column, total, mask=column < cols)


@triton.jit
def add_up(workspace, out, cols, parts, block: tl.constexpr):
    column = tl.arange(0, block)
    total = tl.zeros((block,), tl.float32)
    for part in range(parts):
        total += tl.load(workspace + part * cols + column, mask=column < cols, other=0.0)
    tl.store(out + column, total, mask=column < cols)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.workspace: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, cols = x.shape
        if self.workspace is None or self.workspace.shape[1] != cols or self.workspace.device != x.device:
            self.workspace = torch.empty(SPLITS, cols, dtype=torch.float32, device=x.device)
        out = torch.empty(cols, dtype=x.dtype, device=x.device)
        block = triton.next_power_of_2(cols)
        partial_sums[(SPLITS,)](x, self.workspace, rows, cols, triton.cdiv(rows, SPLITS), block=block)
        add_up[(1,)](self.workspace, out, cols, SPLITS, block=block)
        return out
