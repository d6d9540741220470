import torch

N = 67108864
TERMS = 16


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x)
        for term in range(TERMS):
            total = total + torch.sigmoid(x - 0.25 * (term - TERMS // 2))
        return total


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N)]


def get_init_inputs() -> list[object]:
    return []
