"""Code that torch.compile generates; allowed by `--allow-library`."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.compiled = torch.compile(self.compute)

    @staticmethod
    def compute(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.compiled(x)
