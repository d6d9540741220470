"""Tensors over memory that the parent made: a sealed memfd on the CPU, a device allocation on a GPU."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from evaluator.worker.memory import cuda_driver

DTYPES = {
    name: getattr(torch, name)
    for name in (
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128",
    )
}  # fmt: skip
"""Element types that can cross between processes, by their name without `torch.`."""
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_shape, _dtype, _layout = (getattr(torch._C.TensorBase, name).__get__ for name in ("shape", "dtype", "layout"))
_stride, _storage = torch._C.TensorBase.stride, torch._C.TensorBase.untyped_storage
_numel, _address = torch._C.TensorBase.numel, torch._C.TensorBase.data_ptr
_starts, _nbytes = (getattr(torch._C.StorageBase, name) for name in ("data_ptr", "nbytes"))
_part = torch._C.TensorBase.__getitem__
_view = torch._C.TensorBase.view
_as_strided = torch._C.TensorBase.as_strided
_detach = torch._C.TensorBase.detach
"""Bound before any candidate: what a candidate puts on `torch.Tensor` in their place never runs."""


class _DeviceMemory:
    """A device address in the form that `torch.as_tensor` reads."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


@dataclass
class Mapping:
    """A buffer as this process sees it."""

    base: torch.Tensor
    """All its bytes, uint8, shape (size,)."""
    address: int = 0
    """On the device; 0 for host memory."""
    size: int = 0
    allocation: int = 0

    def close(self) -> None:
        """Let go of it. Host memory goes with the last tensor over it; a view of device memory that somebody kept
        is a fault of theirs when it is read."""
        self.base = torch.empty(0, dtype=torch.uint8)
        if self.address:
            torch.cuda.synchronize()
            cuda_driver.release(self.address, self.size, self.allocation)
            self.address = 0


def map_host(descriptor: int, size: int) -> Mapping:
    """Map a memfd; the descriptor is closed."""
    memory = mmap.mmap(descriptor, size)
    os.close(descriptor)
    return Mapping(torch.frombuffer(memory, dtype=torch.uint8))


def map_device(descriptor: int, size: int, device: int) -> Mapping:
    """Map a device allocation; the descriptor is closed."""
    torch.empty(0, device=f"cuda:{device}")  # makes the context current in this thread
    allocation = cuda_driver.import_allocation(descriptor)
    os.close(descriptor)
    address = cuda_driver.map_allocation(allocation, size, device)
    return Mapping(device_bytes(address, size, device), address, size, allocation)


def device_bytes(address: int, size: int, device: int) -> torch.Tensor:
    """All bytes at a device address as uint8, shape (size,)."""
    return torch.as_tensor(_DeviceMemory(address, size), device=f"cuda:{device}")


def view(base: torch.Tensor, offset: int, spec: dict[str, Any]) -> torch.Tensor:
    """A tensor of `spec["shape"]`, `spec["dtype"]` and, where given, `spec["stride"]` (elements) at a byte offset."""
    dtype = DTYPES[spec["dtype"]]
    shape = [int(n) for n in spec["shape"]]
    stride = spec.get("stride")
    count = extent(shape, stride)
    flat = _view(_part(base, slice(offset, offset + count * dtype.itemsize)), dtype)
    return _as_strided(flat, shape, [int(n) for n in stride]) if stride is not None else _view(flat, shape)


def apart(mapping: Mapping, offset: int, spec: dict[str, Any]) -> torch.Tensor:
    """The same in a mapped buffer, with a storage on the device that ends where the tensor does: no way leads from it
    to what lies beside it."""
    if not mapping.address:
        return view(mapping.base, offset, spec)
    size = extent([int(n) for n in spec["shape"]], spec.get("stride")) * DTYPES[spec["dtype"]].itemsize
    device = mapping.base.device.index or 0
    return view(device_bytes(mapping.address + offset, size, device), 0, spec) if size else view(mapping.base, 0, spec)


def span(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from the first to the last element of a strided tensor, as one row of its element type."""
    return _as_strided(tensor, [extent(list(_shape(tensor)), list(_stride(tensor)))], [1])


def own(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides that begins where its memory does."""
    return _as_strided(span(tensor).clone(), list(_shape(tensor)), list(_stride(tensor)), 0)


def held(tensor: torch.Tensor) -> torch.Tensor:
    """Another tensor over the same memory, which keeps that and not the tensor itself."""
    return _detach(tensor)


def extent(shape: list[int], stride: list[int] | None) -> int:
    """Elements from the first to the last of a strided tensor."""
    if stride is None or 0 in shape:
        return prod(shape)
    return 1 + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))


def spec_of(tensor: torch.Tensor) -> dict[str, Any]:
    """Shape, element type and strides, for a message."""
    return {
        "shape": list(_shape(tensor)),
        "dtype": NAMES.get(_dtype(tensor), str(_dtype(tensor)).removeprefix("torch.")),
        "stride": list(_stride(tensor)) if _layout(tensor) is torch.strided else None,
    }


def alias(tensor: torch.Tensor, arguments: list[torch.Tensor]) -> int | None:
    """Number of the argument whose storage the tensor shares."""
    if _numel(tensor) == 0 or _layout(tensor) is not torch.strided:
        return None
    storage = _storage(tensor)
    start = _starts(storage)
    end = start + _nbytes(storage)
    for n, argument in enumerate(arguments):
        if _numel(argument) and start <= _address(argument) < end:
            return n
    return None


def shares(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have an element in the same memory; views of one memory beside each other have none."""
    if any(_numel(t) == 0 or _layout(t) is not torch.strided for t in (one, other)):
        return False
    begins = [_address(t) for t in (one, other)]
    steps = [[step * _dtype(t).itemsize for step in _stride(t)] for t in (one, other)]
    bytes_of = [([*_shape(t), _dtype(t).itemsize], [*s, 1]) for t, s in zip((one, other), steps, strict=True)]
    ends = [begin + extent(shape, stride) for begin, (shape, stride) in zip(begins, bytes_of, strict=True)]
    if min(ends) <= max(begins):
        return False
    first = min(begins)
    marks = torch.zeros(max(ends) - first, dtype=torch.bool)
    mine, others = (
        _as_strided(marks, shape, stride, begin - first)
        for begin, (shape, stride) in zip(begins, bytes_of, strict=True)
    )
    mine.fill_(True)
    return bool(others.any())


def overlaps(spec: dict[str, Any]) -> bool:
    """Whether elements of a tensor share memory: it has more of them than lie between its first and its last."""
    return spec["stride"] is not None and prod(spec["shape"]) > extent(spec["shape"], spec["stride"])
