import torch


def setup(n: int = 16777216, stride: int = 8) -> dict[str, object]:
    x = torch.randn(n * stride, device="cuda")
    return {"inputs": {"x": x, "y": torch.empty(n, device="cuda"), "n": n, "stride": stride}, "outputs": ["y"]}


def reference(x: torch.Tensor, y: torch.Tensor, n: int, stride: int) -> None:
    y.copy_(2 * x[::stride])
