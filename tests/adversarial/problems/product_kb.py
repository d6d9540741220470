"""The product of two square matrices, large enough to keep a GPU busy."""

import torch
from torch import nn

SIDE = 2048


class Model(nn.Module):
    def forward(self, a, b):
        """Compute."""
        return torch.mm(a, b)


def get_inputs():
    """One fresh draw."""
    return [torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)]


def get_init_inputs():
    """What the constructor takes."""
    return []
