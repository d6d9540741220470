import torch

BATCH = 48
WIDE = 96
NARROW = 80


class Model(torch.nn.Module):
    def __init__(self, wide: int, narrow: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(wide, narrow)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDE)]


def get_init_inputs() -> list[object]:
    return [WIDE, NARROW]
