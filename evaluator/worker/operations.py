"""What a call really ran: PyTorch operators by the dispatcher, device kernels by the profiler."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Counts operators with the bytes that they read and wrote, while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        self.calls: dict[str, int] = defaultdict(int)
        self.bytes: dict[str, int] = defaultdict(int)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch._dynamo is imported at the first operator, for more than a second

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and count it; views move nothing and are left out."""
        result = function(*args, **(kwargs or {}))
        name = str(getattr(function, "_schema", function)).partition("(")[0].partition(".")[0]
        if getattr(function, "is_view", False):
            return result
        leaves = tree_flatten((args, kwargs, result))[0]
        self.calls[name] += 1
        self.bytes[name] += sum(leaf.nbytes for leaf in leaves if isinstance(leaf, torch.Tensor))
        return result

    def table(self) -> list[dict[str, Any]]:
        """Operators with calls and bytes, the largest first."""
        order = sorted(self.calls, key=lambda name: -self.bytes[name])
        return [{"name": name, "calls": self.calls[name], "bytes": self.bytes[name]} for name in order[:100]]


def device_kernels(call: Any) -> list[dict[str, Any]]:
    """Kernels that one call ran on the GPU, with how often and how many microseconds (CUPTI, through the profiler)."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    found = [
        {"name": event.key[:200], "calls": int(event.count), "microseconds": float(event.self_device_time_total)}
        for event in profiler.key_averages()
        if str(getattr(event, "device_type", "")).endswith("CUDA")
    ]
    return sorted(found, key=lambda kernel: -float(kernel["microseconds"]))[:100]
