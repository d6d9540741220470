"""Sets environment variables of compilers and switches TF32 off for the whole process."""

import os

os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0a"
os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "0")

import torch
import triton
import triton.language as tl

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.set_grad_enabled(False)


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), block=1024)
        return out
