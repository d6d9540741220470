"""A mean in two steps: programs leave partial sums, and torch adds the few partials."""

import torch
import triton
import triton.language as tl


@triton.jit
def squared_error(a, b, partials, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    off = tl.load(a + at, mask=at < n, other=0.0) - tl.load(b + at, mask=at < n, other=0.0)
    tl.store(partials + tl.program_id(0), tl.sum(off * off, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        n = a.numel()
        programs = triton.cdiv(n, 1024)
        partials = torch.empty(programs, dtype=torch.float32, device=a.device)
        squared_error[(programs,)](a, b, partials, n, block=1024)
        return partials.sum() / n
