"""Cross-entropy with integer targets: a loss for each row, then torch's mean of the few losses."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_losses(scores, targets, losses, classes, block: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, block)
    score = tl.load(scores + row * classes + column, mask=column < classes, other=float("-inf"))
    peak = tl.max(score, axis=0)
    total = tl.log(tl.sum(tl.exp(score - peak), axis=0))
    right = tl.load(scores + row * classes + tl.load(targets + row))
    tl.store(losses + row, total + (peak - right))


class ModelNew(torch.nn.Module):
    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        batch, classes = scores.shape
        losses = torch.empty(batch, dtype=torch.float32, device=scores.device)
        row_losses[(batch,)](scores, targets, losses, classes, block=triton.next_power_of_2(classes))
        return losses.mean()
