import torch


def setup(n: int = 3000) -> dict[str, object]:
    names = ("parameter", "momentum", "gradient")
    inputs: dict[str, object] = {name: torch.randn(n, device="cuda") for name in names}
    return {"inputs": {**inputs, "rate": 0.01, "decay": 0.9, "n": n}, "outputs": ["parameter", "momentum"]}


def reference(
    parameter: torch.Tensor, momentum: torch.Tensor, gradient: torch.Tensor, rate: float, decay: float, n: int
) -> None:
    momentum.mul_(decay).add_(gradient)
    parameter.sub_(rate * momentum)
