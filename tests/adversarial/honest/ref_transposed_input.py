import torch

ROWS = 64
COLS = 96


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs().sum(dim=-1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(COLS, ROWS).t()]


def get_init_inputs() -> list[object]:
    return []
