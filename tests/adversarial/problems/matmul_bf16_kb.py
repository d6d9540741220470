"""The product of two bfloat16 matrices."""

import torch
from torch import nn

M = 256
K = 256
N = 256


class Model(nn.Module):
    def forward(self, a, b):
        """Compute."""
        return torch.matmul(a, b)


def get_inputs():
    """One fresh draw."""
    return [torch.rand(M, K).to(torch.bfloat16), torch.rand(K, N).to(torch.bfloat16)]


def get_init_inputs():
    """What the constructor takes."""
    return []
