"""Gathers rows of a table by integer ids; nothing is computed, so every bit must be right."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(tokens, table, out, width, block: tl.constexpr):
    place = tl.program_id(0)
    column = tl.arange(0, block)
    token = tl.load(tokens + place)
    tl.store(
        out + place * width + column, tl.load(table + token * width + column, mask=column < width), mask=column < width
    )


class ModelNew(torch.nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        weight = self.table.weight
        out = torch.empty(*tokens.shape, weight.shape[1], dtype=weight.dtype, device=weight.device)
        gather[(tokens.numel(),)](tokens, weight, out, weight.shape[1], block=triton.next_power_of_2(weight.shape[1]))
        return out
