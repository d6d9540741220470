import torch
import triton
import triton.language as tl


@triton.jit
def scaled_relu(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n)
    tl.store(y + row * n + i, tl.maximum(v, 0.0) * 2.0, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        scaled_relu[(x.shape[0],)](x, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=1)
        return y
