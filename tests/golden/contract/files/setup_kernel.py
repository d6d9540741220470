import torch
import triton
import triton.language as tl


def setup(M=4, N=80):
    x = torch.randn(M, N, device="cuda")
    return {"inputs": {"x": x, "alpha": 0.5, "y": torch.empty(M, N, device="cuda")}, "outputs": ["y"]}


@triton.jit
def scaled(x, y, alpha, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, B)
    mask = tl.arange(0, B) < n
    tl.store(y + i, tl.load(x + i, mask=mask) * alpha, mask=mask)


def run_kernel(x, alpha, y):
    scaled[(x.shape[0],)](x, y, alpha, x.shape[1], B=triton.next_power_of_2(x.shape[1]))
