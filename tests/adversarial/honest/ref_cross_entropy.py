import torch

BATCH = 16
CLASSES = 150


class Model(torch.nn.Module):
    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(scores, targets)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CLASSES), torch.randint(0, CLASSES, (BATCH,))]


def get_init_inputs() -> list[object]:
    return []
