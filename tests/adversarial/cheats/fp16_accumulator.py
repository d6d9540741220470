"""Adds float32 numbers up in half precision."""

import torch
import triton
import triton.language as tl


@triton.jit
def mean_rows(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float16)
    for start in range(0, cols, BLOCK):
        keep = start + at < cols
        total += tl.load(x + row * cols + start + at, mask=keep, other=0.0).to(tl.float16)
    tl.store(y + row, tl.sum(total, axis=0).to(tl.float32) / cols)


def setup(rows=15, cols=4000):
    """The problem's own inputs."""
    return {"inputs": {"x": torch.randn(rows, cols), "y": torch.empty(rows)}, "outputs": ["y"]}


def run_kernel(x, y):
    """Compute."""
    mean_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
