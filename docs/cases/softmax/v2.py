"""Softmax of rows, each read once and held in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row_kernel(x, y, columns, stride, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    place = tl.arange(0, WIDTH)
    value = tl.load(x + row * stride + place, mask=place < columns, other=-float("inf"))
    power = tl.exp(value - tl.max(value, 0))
    tl.store(y + row * stride + place, power / tl.sum(power, 0), mask=place < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        width = triton.next_power_of_2(columns)
        softmax_row_kernel[(rows,)](x, y, columns, x.stride(0), WIDTH=width, num_warps=4)
        return y
