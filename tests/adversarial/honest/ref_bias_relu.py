import torch


def reference(x: torch.Tensor, bias: torch.Tensor, out: torch.Tensor, rows: int, cols: int) -> None:
    out.copy_(torch.relu(x + bias))
