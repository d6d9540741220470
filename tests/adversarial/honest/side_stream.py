"""Half of the work on a second stream that waits for the first one and is waited for before the call returns."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, start, end, block: tl.constexpr):
    at = start + tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + at, tl.load(x + at, mask=at < end) + tl.load(y + at, mask=at < end), mask=at < end)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        n = x.numel()
        half = n // 2
        main = torch.cuda.current_stream()
        self.side.wait_stream(main)
        with torch.cuda.stream(self.side):
            add[(triton.cdiv(n - half, 1024),)](x, y, out, half, n, block=1024)
        add[(triton.cdiv(half, 1024),)](x, y, out, 0, half, block=1024)
        main.wait_stream(self.side)
        for tensor in (x, y, out):
            tensor.record_stream(self.side)
        return out
