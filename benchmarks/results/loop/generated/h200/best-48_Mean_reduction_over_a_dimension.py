"""Generated for the sizes of one problem: 48_Mean_reduction_over_a_dimension."""

import torch
import triton
import triton.language as tl


def fitted(x, shape, stride):
    """The tensor as the kernels expect it; other sizes are not what they were made for."""
    if tuple(x.shape) != shape:
        raise ValueError(f"made for {shape}, not for {tuple(x.shape)}")
    if x.stride() == stride or all(a == b or n == 1 for a, b, n in zip(x.stride(), stride, shape)):
        return x
    return torch.empty_strided(shape, stride, device=x.device, dtype=x.dtype).copy_(x)


@triton.jit
def kernel_part1(x0, v2_states, BESIDE: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    part_at = tl.program_id(0) % 4
    o = tl.full([], 0, tl.int64) + (tl.program_id(0) // 4) // 32
    i = ((tl.program_id(0) // 4) % 32) * BESIDE + tl.arange(0, BESIDE)
    i_in = i < 4095
    low = part_at * 1024
    high = tl.minimum(low + 1024, 4096)
    v2_0 = tl.full([BLOCK, BESIDE], 0.0, tl.float32)
    for start in tl.range(low, high, BLOCK, num_stages=STAGES):
        r = start + tl.arange(0, BLOCK)
        v1 = tl.load(x0 + (o * 16773120) + (r * 4095)[:, None] + i[None, :], mask=i_in[None, :], other=0)
        v2_0 = v2_0 + v1
    v2 = tl.sum(v2_0, axis=0)
    tl.store(v2_states + (o * 4 + part_at) * 4095 + i, v2, mask=i_in)


@triton.jit
def kernel_rest(v2_states, y0, BESIDE: tl.constexpr):
    o = tl.full([], 0, tl.int64) + tl.program_id(0) // 16
    i = (tl.program_id(0) % 16) * BESIDE + tl.arange(0, BESIDE)
    i_in = i < 4095
    part = tl.arange(0, 4)
    v2_all0 = tl.load(v2_states + (o * 4 + part[:, None]) * 4095 + i[None, :], mask=i_in[None, :], other=0.0)
    v2 = tl.sum(v2_all0, axis=0)
    v4 = (v2 / 4096.0)
    tl.store(y0 + o * 4095 + i, v4, mask=i_in)


class ModelNew(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, x0):
        x0 = fitted(x0, (128, 4096, 4095), (16773120, 4095, 1))
        device = x0.device
        y0 = torch.empty_strided((128, 4095), (4095, 1), device=device, dtype=torch.float32)
        v2_states = torch.empty(2096640, device=device, dtype=torch.float32)
        kernel_part1[(16384,)](x0, v2_states, BESIDE=128, BLOCK=16, STAGES=1, num_warps=16)
        kernel_rest[(2048,)](v2_states, y0, BESIDE=256, num_warps=4)
        return y0
