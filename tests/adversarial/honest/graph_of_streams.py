"""A graph captured from two streams, one forked from the other and joined to it; calls copy their inputs in first."""

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
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor, torch.Tensor]] = {}

    def launch(self, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        main, side = torch.cuda.current_stream(), torch.cuda.Stream()
        n = x.numel()
        half = n // 2
        side.wait_stream(main)
        with torch.cuda.stream(side):
            add[(triton.cdiv(n - half, 1024),)](x, y, out, half, n, block=1024)
        add[(triton.cdiv(half, 1024),)](x, y, out, 0, half, block=1024)
        main.wait_stream(side)

    def capture(
        self, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.cuda.CUDAGraph, torch.Tensor, torch.Tensor, torch.Tensor]:
        held = x.clone(), y.clone(), torch.empty_like(x)
        self.launch(*held)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.launch(*held)
        return graph, *held

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.numel() not in self.graphs:
            self.graphs[x.numel()] = self.capture(x, y)
        graph, held_x, held_y, held_out = self.graphs[x.numel()]
        held_x.copy_(x)
        held_y.copy_(y)
        graph.replay()
        return held_out.clone()
