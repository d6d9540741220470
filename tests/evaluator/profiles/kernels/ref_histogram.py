import torch


def setup(n: int = 16777216, bins: int = 256) -> dict[str, object]:
    keys = torch.randint(0, bins, (n,), dtype=torch.int32, device="cuda")
    keys = torch.where(torch.rand(n, device="cuda") < 0.9, torch.full_like(keys, 7), keys)
    counts = torch.empty(bins, dtype=torch.int32, device="cuda")
    return {"inputs": {"keys": keys, "counts": counts, "n": n, "bins": bins}, "outputs": ["counts"]}


def reference(keys: torch.Tensor, counts: torch.Tensor, n: int, bins: int) -> None:
    counts.copy_(torch.bincount(keys, minlength=bins))
