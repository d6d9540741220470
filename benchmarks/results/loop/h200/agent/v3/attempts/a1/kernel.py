import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, B)
    v = tl.load(x + row + i, mask=i < n, other=float("-inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row + i, e / tl.sum(e, axis=0), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_rows[(x.shape[0],)](x, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=2)
        return y
