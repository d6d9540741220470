import torch

N = 2048
BINS = 64


class Model(torch.nn.Module):
    def __init__(self, bins: int) -> None:
        super().__init__()
        self.bins = bins

    def forward(self, values: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.zeros(self.bins, dtype=values.dtype, device=values.device).index_add(0, index, values)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N), torch.randint(0, BINS, (N,))]


def get_init_inputs() -> list[object]:
    return [BINS]
