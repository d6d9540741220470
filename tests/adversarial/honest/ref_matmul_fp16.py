import torch

M = 80
N = 96
K = 112


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(M, K).half(), torch.randn(K, N).half()]


def get_init_inputs() -> list[object]:
    return []
