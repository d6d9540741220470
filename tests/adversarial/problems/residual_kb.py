"""A step so small that the result is nearly its input."""

import torch
from torch import nn

ROWS = 16
COLS = 4096


class Model(nn.Module):
    def forward(self, x):
        """Compute."""
        return x + 1e-3 * torch.tanh(x)


def get_inputs():
    """One fresh draw."""
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    """What the constructor takes."""
    return []
