import torch

M = 8
N = 96


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(M, N)]


def get_init_inputs():
    return []
