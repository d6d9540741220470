import torch


def add_rmsnorm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    total = x + residual
    return total * torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
