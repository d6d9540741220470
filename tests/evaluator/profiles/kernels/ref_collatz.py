import torch

LONG = 837799
"""Takes 524 steps; numbers below 64 take 112 at most."""


def setup(n: int = 4194304) -> dict[str, object]:
    starts = torch.randint(1, 64, (n,), dtype=torch.int32, device="cuda")
    starts[7::32] = LONG
    return {"inputs": {"starts": starts, "steps": torch.empty_like(starts), "n": n}, "outputs": ["steps"]}


def reference(starts: torch.Tensor, steps: torch.Tensor, n: int) -> None:
    value, count = starts.long(), torch.zeros_like(starts)
    while bool((value != 1).any()):
        count += (value != 1).int()
        value = torch.where(value == 1, value, torch.where(value % 2 == 1, 3 * value + 1, value // 2))
    steps.copy_(count)
