import torch

ROWS = 8
COLS = 512


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * 2.0 + y


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLS).to(torch.bfloat16) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
