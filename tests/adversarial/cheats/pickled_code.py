"""Returns an object that runs code in whoever unpickles it."""

from pathlib import Path

import torch


class Surprise:
    """Plants a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("/tmp/planted_by_a_cheat"),)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        """Compute."""
        return Surprise()
