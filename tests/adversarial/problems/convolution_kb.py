"""A convolution of 3 by 3 without padding."""

import torch
from torch import nn

BATCH = 16
CHANNELS = 64
SIDE = 66


class Model(nn.Module):
    def forward(self, x, weight):
        """Compute."""
        return torch.conv2d(x, weight)


def get_inputs():
    """One fresh draw."""
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE), torch.randn(CHANNELS, CHANNELS, 3, 3) / 24]


def get_init_inputs():
    """What the constructor takes."""
    return []
