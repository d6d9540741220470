"""A CUDA graph, captured once a shape: each call copies its inputs in, replays, and hands out a copy of the result."""

import torch
import triton
import triton.language as tl


@triton.jit
def rmsnorm(x, weight, out, cols, eps, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    inside = column < cols
    value = tl.load(x + row * cols + column, mask=inside, other=0.0)
    rrms = tl.rsqrt(tl.sum(value * value, axis=0) / cols + eps)
    tl.store(out + row * cols + column, value * rrms * tl.load(weight + column, mask=inside), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.eps = eps
        self.graphs: dict[torch.Size, tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]] = {}

    def launch(self, x: torch.Tensor, out: torch.Tensor) -> None:
        rmsnorm[(x.shape[0],)](x, self.weight, out, x.shape[1], self.eps, block=triton.next_power_of_2(x.shape[1]))

    def capture(self, x: torch.Tensor) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor]:
        static_x, static_out = x.clone(), torch.empty_like(x)
        self.launch(static_x, static_out)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.launch(static_x, static_out)
        return graph, static_x, static_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda, "this kernel needs a GPU"
        if x.shape not in self.graphs:
            self.graphs[x.shape] = self.capture(x)
        graph, static_x, static_out = self.graphs[x.shape]
        static_x.copy_(x)
        graph.replay()
        return static_out.clone()
