import torch


def setup(m: int = 4096, n: int = 4096, k: int = 4096) -> dict[str, object]:
    a, b = torch.randn(k, m, device="cuda"), torch.randn(k, n, device="cuda")
    c = torch.empty(m, n, device="cuda")
    return {"inputs": {"a": a, "b": b, "c": c, "m": m, "n": n, "k": k}, "outputs": ["c"]}


def reference(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, m: int, n: int, k: int) -> None:
    c.copy_(a.t() @ b)
