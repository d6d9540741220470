"""Has a test and a stopwatch of its own below `__main__`; none of that runs here."""

import argparse
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, out, cols, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=float("-inf"))
    power = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * cols + column, power / tl.sum(power, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        softmax[(x.shape[0],)](x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4096)
    arguments = parser.parse_args(sys.argv[1:])
    sample = torch.randn(arguments.rows, 4096, device="cuda")
    started = time.perf_counter()
    result = ModelNew()(sample)
    torch.cuda.synchronize()
    print("seconds", time.perf_counter() - started)
    assert torch.allclose(result, torch.softmax(sample, dim=-1), atol=1e-5)
    sys.exit(0)
