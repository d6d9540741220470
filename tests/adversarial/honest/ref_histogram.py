import torch

N = 4096
BINS = 100


class Model(torch.nn.Module):
    def __init__(self, bins: int) -> None:
        super().__init__()
        self.bins = bins

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return torch.bincount(index, minlength=self.bins).to(torch.int32)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, BINS, (N,))]


def get_init_inputs() -> list[object]:
    return [BINS]
