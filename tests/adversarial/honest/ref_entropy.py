import torch

ROWS = 8
COLS = 320


class Model(torch.nn.Module):
    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return -p * torch.log(p)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(ROWS, COLS) + 0.01]


def get_init_inputs() -> list[object]:
    return []
