"""What softmax.py computes."""

import torch

M = 64
N = 512


class Model(torch.nn.Module):
    def forward(self, x):
        """Compute."""
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(M, N)]


def get_init_inputs():
    return []
