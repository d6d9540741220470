import torch

TOKENS = 48
VOCABULARY = 100
WIDTH = 96


class Model(torch.nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, VOCABULARY, (TOKENS,))]


def get_init_inputs() -> list[object]:
    return [VOCABULARY, WIDTH]
