"""Never returns."""

import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Compute."""
        end = time.monotonic() + 900.0
        while time.monotonic() < end:
            x = x + 0.0
        return x
