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
STAND_IN_CAPABILITY = (9, 0)
"""Compute capability that host code is told of: what has tensor descriptors and all number formats."""
STAND_IN_NAME = "CPU (Triton interpreter)"
STAND_IN_SHARED = 227 * 1024
"""Bytes of shared memory that a block may have, as host code is told."""


_UNMOVED = (torch.Tensor.cuda, torch.Tensor.pin_memory)
_IS_CUDA = torch.Tensor.is_cuda.__get__  # type: ignore[attr-defined]  # torch declares a bool


class _AnyDevice(contextlib.nullcontext[None]):
    """Stands in for `torch.cuda.device`, which is a class."""

    def __init__(self, *_: Any) -> None:
        super().__init__()


class _Stream:
    """Stands in for `torch.cuda.Stream`: all work is done when a call returns, so there is nothing to wait for."""

    cuda_stream = 0
    device = torch.device("cpu")

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return _Event() if event is None else event

    def synchronize(self) -> None:
        pass

    def wait_event(self, _: Any) -> None:
        pass

    def wait_stream(self, _: Any) -> None:
        pass


class _Event:
    """Stands in for `torch.cuda.Event`: it is over at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def elapsed_time(self, _: Any) -> float:
        """A second, so that a benchmark that counts on it repeats nothing."""
        return 1000.0

    def query(self) -> bool:
        return True

    def record(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait(self, *_: Any) -> None:
        pass


def _nothing() -> Any:
    """For calls that wait for a device or choose one; torch._dynamo wants each to be an object of its own."""
    return lambda *_, **__: None


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
    major, minor = STAND_IN_CAPABILITY
    properties = types.SimpleNamespace(
        name=STAND_IN_NAME, multi_processor_count=STAND_IN_SMS, major=major, minor=minor, total_memory=2**32,
        warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        shared_memory_per_block_optin=STAND_IN_SHARED, shared_memory_per_multiprocessor=STAND_IN_SHARED,
        L2_cache_size=2**20,
    )  # fmt: skip
    stream = _Stream()
    stand_ins: dict[str, Any] = {
        "synchronize": _nothing(),
        "empty_cache": _nothing(),
        "set_device": _nothing(),
        "set_stream": _nothing(),
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: STAND_IN_CAPABILITY,
        "get_device_name": lambda *_: STAND_IN_NAME,
        "current_stream": lambda *_: stream,
        "default_stream": lambda *_: stream,
        "stream": lambda _: stream,
        "Stream": _Stream,
        "Event": _Event,
        "device": _AnyDevice,
        "device_of": type("_AnyDeviceOf", (_AnyDevice,), {}),
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
