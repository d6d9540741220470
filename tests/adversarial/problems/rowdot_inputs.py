"""Inputs of `rowdot`."""

import torch


def get_inputs():
    """One fresh draw."""
    return [torch.randn(16, 4096), torch.randn(16, 4096)]
