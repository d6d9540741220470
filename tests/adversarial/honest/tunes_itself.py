"""Times its own variants at the first call of a shape, with events and a wait for the device, and keeps the best."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < n)
    inner = 1.5957691216057308 * (value + 0.044715 * value * value * value)
    tl.store(out + at, value / (1.0 + tl.exp(-inner)), mask=at < n)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: dict[int, int] = {}

    def launch(self, x: torch.Tensor, out: torch.Tensor, block: int) -> None:
        gelu[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), block=block)

    def took(self, x: torch.Tensor, out: torch.Tensor, block: int) -> float:
        self.launch(x, out, block)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(5):
            self.launch(x, out, block)
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        n = x.numel()
        if n not in self.blocks:
            self.blocks[n] = min((512, 1024, 2048), key=lambda block: self.took(x, out, block))
        self.launch(x, out, self.blocks[n])
        return out
