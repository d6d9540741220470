"""Running code that was written for a GPU on the CPU: where it names CUDA, it gets the CPU.

For correctness alone. Nothing here stands in for a measurement.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class StandIn:
    """A GPU whose facts a candidate on the CPU is told when it asks."""

    name: str
    """As `torch.cuda.get_device_name` gives it."""
    multiprocessors: int
    capability: tuple[int, int]
    shared: int
    """Bytes of shared memory that a block may ask for."""
    threads: int
    """Resident threads of a multiprocessor."""
    l2: int
    """MiB."""
    memory: int
    """GiB."""


STAND_INS = (
    StandIn("NVIDIA H100 80GB HBM3", 132, (9, 0), 227 << 10, 2048, 50, 80),
    StandIn("NVIDIA H100 PCIe", 114, (9, 0), 227 << 10, 2048, 50, 80),
    StandIn("NVIDIA H200", 132, (9, 0), 227 << 10, 2048, 50, 141),
    StandIn("NVIDIA A100-SXM4-80GB", 108, (8, 0), 163 << 10, 2048, 40, 80),
    StandIn("NVIDIA L40S", 142, (8, 9), 99 << 10, 1536, 48, 48),
    StandIn("NVIDIA B200", 148, (10, 0), 227 << 10, 2048, 126, 180),
)
"""Real GPUs, the first where nobody chose. Multiprocessors, caches and memory: NVIDIA's data sheets and architecture
white papers; shared memory and threads: the table of compute capabilities in the CUDA C++ Programming Guide."""
USUAL = [number for number, device in enumerate(STAND_INS) if device.capability == (9, 0)]
"""Numbers of those that have tensor descriptors and all number formats, which code asks for that has no other way."""


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
def on_the_cpu(told: StandIn = STAND_INS[0], *, available: bool = False) -> Iterator[None]:
    """Everything inside sees a CPU where it asks for a GPU, and the facts of `told` where it asks which.

    `available`: who asks whether there is a GPU is told so, as a kernel for one would be.
    """
    major, minor = told.capability
    properties = types.SimpleNamespace(
        name=told.name, multi_processor_count=told.multiprocessors, major=major, minor=minor, warp_size=32,
        total_memory=told.memory << 30, max_threads_per_multi_processor=told.threads, regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10, shared_memory_per_block_optin=told.shared,
        shared_memory_per_multiprocessor=told.shared + 1024, L2_cache_size=told.l2 << 20,
    )  # fmt: skip
    stream = _Stream()
    stand_ins: dict[str, Any] = {
        "synchronize": _nothing(),
        "empty_cache": _nothing(),
        "set_device": _nothing(),
        "set_stream": _nothing(),
        "current_device": lambda: 0,
        "get_device_properties": lambda *_: properties,
        "get_device_capability": lambda *_: told.capability,
        "get_device_name": lambda *_: told.name,
        "current_stream": lambda *_: stream,
        "default_stream": lambda *_: stream,
        "stream": lambda _: stream,
        "Stream": _Stream,
        "Event": _Event,
        "device": _AnyDevice,
        "device_of": type("_AnyDeviceOf", (_AnyDevice,), {}),
    }
    if available:
        stand_ins |= {"is_available": lambda: True, "device_count": lambda: 1}
    kept = {name: getattr(torch.cuda, name) for name in stand_ins}
    for name, stand_in in stand_ins.items():
        setattr(torch.cuda, name, stand_in)
    try:
        with CudaIsCpu():
            yield
    finally:
        for name, original in kept.items():
            setattr(torch.cuda, name, original)
