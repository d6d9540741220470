"""Memory that the parent makes and lends to workers: one allocation a buffer, passed as a file descriptor."""

from __future__ import annotations

import fcntl
import itertools
import math
import mmap
import os
import random
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from evaluator.worker.memory import tensors as memory
from kbs.common.errors import KoptError

GUARD = 4096
"""Bytes on both sides of a tensor that nobody may write."""
_ALIGNED = 512
"""Bytes: tensors of a row begin where an allocator of PyTorch's would let them begin."""
_GAP = 1 << 20
"""Bytes: the largest gap between two tensors of a row."""
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_GAPS = 4
"""A tensor that reaches over so many times its own elements is laid out without gaps."""
_FILES = 65_536
_numbers = itertools.count(1)


@dataclass
class Buffer:
    """One allocation, seen by this process as bytes."""

    id: int
    kind: str
    """`host` or `device`."""
    size: int
    descriptor: int
    base: torch.Tensor
    """All its bytes, uint8, shape (size,)."""
    sent_to: set[int] = field(default_factory=set)
    """Workers that have mapped it."""
    _release: Any = None

    def close(self) -> None:
        """Let go of it; a worker that still maps it keeps its own view."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
        if self._release is not None:
            # A copy that is still under way, on whatever GPU this is, must not lose the memory under its feet.
            torch.cuda.synchronize(self.base.device)
            self.base = torch.empty(0, dtype=torch.uint8)
            self._release()
            self._release = None


def host_buffer(size: int) -> Buffer:
    """A memfd that no process can shrink under another's feet."""
    size = max(size, mmap.PAGESIZE)
    _room_for_files()
    descriptor = os.memfd_create("kopt", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
    base = torch.frombuffer(mmap.mmap(descriptor, size), dtype=torch.uint8)
    return Buffer(next(_numbers), "host", size, descriptor, base)


def _room_for_files() -> None:
    """Open as many files as may be opened: a buffer is one or two, and a large model has a thousand weights."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def device_buffer(size: int, device: int) -> Buffer:
    """An allocation of the driver's, never a block of a caching allocator, which would show its neighbours too."""
    from evaluator.worker.memory import cuda_driver

    _room_for_files()
    torch.empty(0, device=f"cuda:{device}")
    try:
        try:
            allocation, rounded, descriptor = cuda_driver.allocate(size, device)
        except cuda_driver.CudaError:
            torch.cuda.empty_cache()  # what this process keeps for later
            allocation, rounded, descriptor = cuda_driver.allocate(size, device)
    except cuda_driver.CudaError as error:
        raise KoptError(
            f"{size / 1e9:.1f} GB for a tensor cannot be had on the GPU: {error}",
            code="out_of_memory",
            hint="Give smaller --dims, or free the GPU's memory.",
        ) from error
    address = cuda_driver.map_allocation(allocation, rounded, device)
    base = memory.device_bytes(address, rounded, device)
    buffer = Buffer(next(_numbers), "device", rounded, descriptor, base)
    buffer._release = lambda: cuda_driver.release(address, rounded, allocation)
    return buffer


@dataclass
class SharedTensor:
    """A tensor in a buffer of its own, between two guard bands."""

    buffer: Buffer
    spec: dict[str, Any]
    """Shape, dtype and stride, as a worker is told."""
    tensor: torch.Tensor

    @property
    def message(self) -> dict[str, Any]:
        """The tensor as it is named to a worker."""
        return {**self.spec, "buffer": self.buffer.id, "offset": GUARD}

    def guards(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The bytes before and after the tensor."""
        end = GUARD + extent_bytes(self.spec)
        return self.buffer.base[:GUARD], self.buffer.base[end : end + GUARD]

    def close(self) -> None:
        """Let go of the memory."""
        self.tensor = torch.empty(0)
        self.buffer.close()


@dataclass
class SharedRow:
    """Tensors of one spec in one buffer: what as many calls take or return."""

    buffer: Buffer
    spec: dict[str, Any]
    offsets: list[int]
    """Bytes from the buffer's begin to each."""
    tensors: list[torch.Tensor]

    def message(self, first: int = 0) -> dict[str, Any]:
        """The row, without those before `first`, as it is named to a worker."""
        return {**self.spec, "buffer": self.buffer.id, "offsets": self.offsets[first:]}

    def close(self) -> None:
        """Let go of the memory."""
        self.tensors = []
        self.buffer.close()


def shared_row(spec: dict[str, Any], count: int, device: torch.device, draw: random.Random) -> SharedRow:
    """Uninitialized memory for `count` tensors of `spec` and its strides. Raises `KoptError` where there is no room.

    In an order drawn at random, with gaps of up to half a tensor or `_GAP` between them: who knows where one lies knows
    nothing of the others.
    """
    kept = {"shape": list(spec["shape"]), "dtype": spec["dtype"], "stride": spec.get("stride")}
    units = -(-extent_bytes(kept) // _ALIGNED) or 1
    offsets, end = [], GUARD // _ALIGNED
    for _ in range(count):
        end += draw.randrange(1 + min(units // 2 + 1, _GAP // _ALIGNED))
        offsets.append(end * _ALIGNED)
        end += units
    draw.shuffle(offsets)
    buffer = _buffer(end * _ALIGNED + GUARD, device)
    tensors = [memory.view(buffer.base, offset, kept) for offset in offsets]
    return SharedRow(buffer, kept, offsets, tensors)


def extent_bytes(spec: dict[str, Any]) -> int:
    """Bytes from a tensor's first element to its last."""
    size: int = memory.DTYPES[spec["dtype"]].itemsize
    return memory.extent(spec["shape"], spec.get("stride")) * size


def contiguous(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of a tensor of the same shape and dtype without gaps."""
    return {"shape": spec["shape"], "dtype": spec["dtype"], "stride": None}


def laid_out(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the strides that its maker chose, such as those of a transposed matrix.

    Contiguous where elements share memory, as in an expanded tensor, or lie far apart in a much larger one.
    """
    kept = contiguous(spec)
    stride = spec.get("stride")
    if stride is None or 0 in spec["shape"]:
        return kept
    reach, count = 1, math.prod(spec["shape"])
    for step, size in sorted(zip(stride, spec["shape"], strict=True)):
        if size > 1 and step < reach:
            return kept
        reach += (size - 1) * step
    plain, dense = True, 1
    for step, size in zip(reversed(stride), reversed(spec["shape"]), strict=True):
        plain = plain and (step == dense or size == 1)
        dense *= size
    return kept if plain or reach > _GAPS * count else {**kept, "stride": list(stride)}


def shared_tensor(spec: dict[str, Any], device: torch.device) -> SharedTensor:
    """Uninitialized memory for a tensor of `spec`; strides that reach over gaps are kept."""
    kept = {"shape": list(spec["shape"]), "dtype": spec["dtype"], "stride": spec.get("stride")}
    buffer = _buffer(2 * GUARD + extent_bytes(kept), device)
    return SharedTensor(buffer, kept, memory.view(buffer.base, GUARD, kept))


def _buffer(size: int, device: torch.device) -> Buffer:
    return host_buffer(size) if device.type == "cpu" else device_buffer(size, device.index or 0)


def shared_tensors(specs: Sequence[dict[str, Any]], device: torch.device) -> list[SharedTensor]:
    """One for each spec."""
    return [shared_tensor(spec, device) for spec in specs]
