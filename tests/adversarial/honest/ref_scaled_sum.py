import torch


def setup(n: int = 2048) -> dict[str, object]:
    x = torch.randn(n, device="cuda")
    y = torch.randn(n, device="cuda")
    return {
        "inputs": {"x": x, "y": y, "out": torch.empty_like(x), "alpha": 0.75, "beta": -1.5, "n": n, "clip": True},
        "outputs": ["out"],
    }


def reference(
    x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, alpha: float, beta: float, n: int, clip: bool
) -> None:
    total = alpha * x + beta * y
    out.copy_(total.clamp(min=0) if clip else total)
