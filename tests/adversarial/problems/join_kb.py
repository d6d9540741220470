"""Two vectors one behind the other."""

import torch
from torch import nn

N = 4194304


class Model(nn.Module):
    def forward(self, x, y):
        """Compute."""
        return torch.cat([x, y])


def get_inputs():
    """One fresh draw."""
    return [torch.randn(N), torch.randn(N)]


def get_init_inputs():
    """What the constructor takes."""
    return []
