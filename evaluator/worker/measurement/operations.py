"""What a call really ran: PyTorch operators by the dispatcher, device kernels by the profiler."""

from __future__ import annotations

import contextlib
import math
from collections import defaultdict
from typing import Any

import torch
from torch._library import custom_ops
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

Counts = dict[str, list[int]]
"""Calls and bytes of each operator."""


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Counts operators with the bytes that they read and wrote, while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        self.found: Counts = defaultdict(lambda: [0, 0])

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch._dynamo is imported at the first operator, for more than a second

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and count it; views move nothing and are left out.

        An operator that the candidate defined in Python is no library's: the operators inside it are counted.
        """
        name = str(getattr(function, "_schema", function)).partition("(")[0].partition(".")[0]
        written = _written_in_python(name, args, kwargs)
        if written is not None:
            with self:
                return written(*args, **(kwargs or {}))
        result = function(*args, **(kwargs or {}))
        if getattr(function, "is_view", False):
            return result
        self.found[name][0] += 1
        self.found[name][1] += _bytes((args, kwargs, result))
        return result

    def table(self) -> list[dict[str, Any]]:
        """Operators with calls and bytes, the largest first."""
        return _largest(self.found)


class OperatorsOfAllThreads:
    """The same by PyTorch's profiler, which sees every thread of the process; slower to start, and without dtypes."""

    _ELEMENT = 4
    """Bytes that an element of an unknown dtype is taken for."""

    def __init__(self) -> None:
        from torch.profiler import ProfilerActivity, profile

        try:
            every = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
        except TypeError:  # an older PyTorch, which records the calling thread alone
            every = None
        self._profile = profile(activities=[ProfilerActivity.CPU], record_shapes=True, experimental_config=every)

    def __enter__(self) -> OperatorsOfAllThreads:
        self._profile.__enter__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        return self

    def __exit__(self, *error: object) -> None:
        self._profile.__exit__(*error)  # type: ignore[no-untyped-call]  # torch does not annotate it

    def table(self) -> list[dict[str, Any]]:
        """Operators with calls and bytes, the largest first."""
        found: Counts = defaultdict(lambda: [0, 0])
        for event in self._profile.key_averages(group_by_input_shape=True):
            if event.key.startswith("aten::") and not _is_view(event.key):
                sizes = [math.prod(shape) for shape in event.input_shapes or () if shape and isinstance(shape[0], int)]
                found[event.key][0] += int(event.count)
                found[event.key][1] += int(event.count) * self._ELEMENT * (sum(sizes) + max(sizes, default=0))
        return _largest(found)


def _bytes(value: Any) -> int:
    """Of all tensors in an operator's arguments and results. Containers are Python's own here, and looked into by their
    types: whatever torch's registry of containers has become, nothing is left out."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    return sum(map(_bytes, value.values())) if isinstance(value, dict) else 0


def _written_in_python(name: str, args: Any, kwargs: Any) -> Any:
    """What `torch.library.custom_op` would call for these arguments, where it made the operator; None for others."""
    made = getattr(custom_ops, "OPDEFS", {}).get(name)
    functions = getattr(made, "_backend_fns", {})
    devices = {leaf.device.type for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)}
    special = [functions[device] for device in devices if device in functions]
    return special[0] if special else functions.get(None)


def _largest(found: Counts) -> list[dict[str, Any]]:
    order = sorted(found, key=lambda name: -found[name][1])
    return [{"name": name, "calls": found[name][0], "bytes": found[name][1]} for name in order[:100]]


def _is_view(name: str) -> bool:
    """Whether an operator gives the memory of its argument another shape: the profiler names these too."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    return packet is not None and any(getattr(packet, overload).is_view for overload in packet.overloads())


class _Nothing(contextlib.nullcontext[None]):
    """No watch."""

    def table(self) -> list[dict[str, Any]]:
        """Nothing was seen."""
        return []


def watching(how: str) -> Any:
    """A context with a `table`: `operators` (of the calling thread), `threads` (of all threads), or none."""
    kinds: dict[str, Any] = {"operators": Operators, "threads": OperatorsOfAllThreads}
    return kinds.get(how, _Nothing)()


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
