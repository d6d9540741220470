"""Running code that was written for a GPU on the CPU: where it names CUDA, it gets the CPU.

For correctness alone. Nothing here stands in for a measurement.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

STAND_IN_SMS = 8
"""Multiprocessors that a persistent kernel is told of, so that its grid is small."""


_UNMOVED = (torch.Tensor.cuda, torch.Tensor.pin_memory)
_IS_CUDA = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]  # torch declares a bool


class _AnyDevice(contextlib.nullcontext[None]):
    """Stands in for `torch.cuda.device`, which is a class."""

    def __init__(self, *_: Any) -> None:
        super().__init__()


def _mapped(value: Any) -> Any:
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


class CudaIsCpu(TorchFunctionMode):
    """`device="cuda"` and `.cuda()` give CPU tensors, and these say that they are on a GPU."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Map the device among the arguments, then call."""
        if function in _UNMOVED:
            return args[0]
        if function == _IS_CUDA:  # `assert x.is_cuda` is what kernels for a GPU begin with
            return True
        args = tuple(_mapped(value) for value in args)
        kwargs = {name: _mapped(value) for name, value in (kwargs or {}).items()}
        kwargs.pop("pin_memory", None)
        return function(*args, **kwargs)


@contextlib.contextmanager
def on_the_cpu() -> Iterator[None]:
    """Everything inside sees a CPU where it asks for a GPU."""
    nothing: Any = lambda *_, **__: None  # noqa: E731 - one stand-in for calls that wait for or choose a device
    properties = types.SimpleNamespace(
        name="CPU (Triton interpreter)", multi_processor_count=STAND_IN_SMS, major=0, minor=0, total_memory=2**32,
        warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        shared_memory_per_block_optin=227 * 1024, L2_cache_size=2**20,
    )  # fmt: skip
    stand_ins: dict[str, Any] = {
        "synchronize": nothing,
        "empty_cache": nothing,
        "set_device": nothing,
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: properties,
        "device": _AnyDevice,
    }
    kept = {name: getattr(torch.cuda, name) for name in stand_ins}
    for name, stand_in in stand_ins.items():
        setattr(torch.cuda, name, stand_in)
    try:
        with CudaIsCpu():
            yield
    finally:
        for name, original in kept.items():
            setattr(torch.cuda, name, original)
