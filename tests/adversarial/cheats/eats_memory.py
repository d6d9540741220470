"""Takes memory until there is none, at most 6 GB, and keeps it."""

import torch

taken = []


class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Compute nothing."""
        while len(taken) < 24:
            taken.append(bytearray(256 * 1024 * 1024))
            taken[-1][::4096] = b"x" * len(taken[-1][::4096])
        return torch.zeros_like(x)
