"""The product of two matrices."""

import torch
from torch import nn

M = 64
K = 96
N = 64


class Model(nn.Module):
    def forward(self, a, b):
        """Compute."""
        return torch.matmul(a, b)


def get_inputs():
    """One fresh draw."""
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    """What the constructor takes."""
    return []
