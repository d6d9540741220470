"""C = A B of bf16 matrices in PyTorch."""

import torch


def setup(m: int = 4096, n: int = 4096, k: int = 4096) -> dict[str, object]:
    a = torch.randn(m, k, device="cuda").to(torch.bfloat16)
    b = torch.randn(k, n, device="cuda").to(torch.bfloat16)
    c = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
    return {"inputs": {"a": a, "b": b, "c": c, "m": m, "n": n, "k": k}, "outputs": ["c"]}


def reference(a, b, c, m, n, k):  # noqa: ARG001  # the names of the parameters of solve
    torch.mm(a, b, out=c)
