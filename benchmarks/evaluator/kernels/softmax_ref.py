"""Softmax of rows."""

import torch

M = 4096
N = 1024


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)


def get_inputs():
    return [torch.randn(M, N)]


def get_init_inputs():
    return []
