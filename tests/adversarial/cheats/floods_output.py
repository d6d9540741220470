"""Prints without end: at most 1 GB."""

import os

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Compute."""
        block = b"x" * (1 << 20)
        for _ in range(1024):
            os.write(1, block)
        return torch.ones_like(x)
