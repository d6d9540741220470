"""Generated for the sizes of one problem: matmul4096."""

import torch
import triton
import triton.language as tl


def processors(device):
    if device.type != "cuda":
        return 4
    return torch.cuda.get_device_properties(device).multi_processor_count


def fitted(x, shape, stride):
    """The tensor as the kernels expect it; other sizes are not what they were made for."""
    if tuple(x.shape) != shape:
        raise ValueError(f"made for {shape}, not for {tuple(x.shape)}")
    if x.stride() == stride or all(a == b or n == 1 for a, b, n in zip(x.stride(), stride, shape)):
        return x
    return torch.empty_strided(shape, stride, device=x.device, dtype=x.dtype).copy_(x)


@triton.jit
def kernel(x0, x1, y0, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    for turn in tl.range(tl.program_id(0), 512, tl.num_programs(0)):
        tile = turn % 512
        batch = tl.full([], 0, tl.int64) + turn // 512
        first = tile // 128 * 4
        high = tl.minimum(16 - first, 4)
        m = (first + tile % 128 % high) * ROWS + tl.arange(0, ROWS)
        n = tile % 128 // high * COLUMNS + tl.arange(0, COLUMNS)
        k = tl.arange(0, DEPTH)
        left = x0 + 0 + batch * 0 + m[:, None] * 4096 + k[None, :] * 1
        right = x1 + 0 + batch * 0 + k[:, None] * 4096 + n[None, :] * 1
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, 4096, DEPTH):
            x = tl.load(left)
            y = tl.load(right)
            total = tl.dot(x, y, total)
            left += DEPTH * 1
            right += DEPTH * 4096
        tl.store(y0 + m[:, None] * 4096 + n[None, :], total.to(tl.bfloat16))


class ModelNew(torch.nn.Module):
    def __init__(self, *_, **__):
        super().__init__()

    def forward(self, x0, x1):
        x0 = fitted(x0, (4096, 4096), (4096, 1))
        x1 = fitted(x1, (4096, 4096), (4096, 1))
        device = x0.device
        y0 = torch.empty_strided((4096, 4096), (4096, 1), device=device, dtype=torch.bfloat16)
        kernel[(min(512, 1 * processors(device)),)](x0, x1, y0, ROWS=256, COLUMNS=128, DEPTH=64, num_warps=8, num_stages=3)
        return y0
