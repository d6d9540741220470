"""A linear layer with random weights."""

import torch
from torch import nn

ROWS = 64
WIDTH = 96
OUT = 64


class Model(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)

    def forward(self, x):
        """Compute."""
        return self.linear(x)


def get_inputs():
    """One fresh draw."""
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    """What the constructor takes."""
    return [WIDTH, OUT]
