"""Writes a whole block where the output ends before it."""

import torch
import triton
import triton.language as tl


@triton.jit
def mean_rows(x, y, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    at = tl.arange(0, BLOCK)
    keep = (row[:, None] < rows) & (at[None, :] < cols)
    value = tl.load(x + row[:, None] * cols + at[None, :], mask=keep, other=0.0)
    tl.store(y + row, tl.sum(value, axis=1) / cols)


def setup(rows=15, cols=4000):
    """The problem's own inputs."""
    return {"inputs": {"x": torch.randn(rows, cols), "y": torch.empty(rows)}, "outputs": ["y"]}


def run_kernel(x, y):
    """Compute."""
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    mean_rows[(triton.cdiv(rows, 4),)](x, y, rows, cols, BLOCK_ROWS=4, BLOCK=block)
