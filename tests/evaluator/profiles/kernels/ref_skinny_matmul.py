import torch


def setup(n: int = 540672, depth: int = 16) -> dict[str, object]:
    x, w = torch.randn(depth, n, device="cuda"), torch.randn(depth, 128, device="cuda")
    y = torch.empty(128, n, device="cuda")
    return {"inputs": {"x": x, "w": w, "y": y, "n": n, "depth": depth}, "outputs": ["y"]}


def reference(x: torch.Tensor, w: torch.Tensor, y: torch.Tensor, n: int, depth: int) -> None:
    y.copy_(w.t() @ x)
