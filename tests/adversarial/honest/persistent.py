"""A persistent kernel: as many programs as multiprocessors, each with rows of its own; it asks the device for that."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, rows, cols, block: tl.constexpr):
    column = tl.arange(0, block)
    inside = column < cols
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        value = tl.load(x + row * cols + column, mask=inside, other=float("-inf"))
        power = tl.exp(value - tl.max(value, axis=0))
        tl.store(out + row * cols + column, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.programs = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        rows, cols = x.shape
        softmax[(min(self.programs, rows),)](x, out, rows, cols, block=triton.next_power_of_2(cols))
        return out
