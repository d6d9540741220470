import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm(x, weight, y, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row + i, mask=i < columns, other=0.0)
    w = tl.load(weight + i, mask=i < columns, other=0.0)
    factor = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(y + row + i, v * factor * w, mask=i < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x, weight):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        rms_norm[(rows,)](x, weight, y, columns, 1e-6, BLOCK=block, num_warps=1)
        return y
