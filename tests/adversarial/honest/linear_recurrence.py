"""A gated recurrence as an associative scan: another order of products and sums than the reference's loop."""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(gate_left, state_left, gate_right, state_right):
    return gate_left * gate_right, state_left * gate_right + state_right


@triton.jit
def recurrence(gate, x, out, steps, block: tl.constexpr):
    row = tl.program_id(0)
    step = tl.arange(0, block)
    inside = step < steps
    g = tl.sigmoid(tl.load(gate + row * steps + step, mask=inside, other=0.0))
    value = tl.load(x + row * steps + step, mask=inside, other=0.0)
    _, state = tl.associative_scan((g, value), axis=0, combine_fn=combine)
    tl.store(out + row * steps + step, state, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        recurrence[(x.shape[0],)](gate, x, out, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
        return out
