"""The device that is asked for, and whether it is there."""

from __future__ import annotations

import re

import torch

from kbs.common.errors import NoGpuError, UsageError

_GPU = re.compile(r"cuda(:(0|[1-9][0-9]{0,3}))?")


def require_gpu(device: str, hint: str) -> None:
    """Raises `UsageError` for what names no GPU, and `NoGpuError`, with `hint`, where that GPU is not there."""
    if not _GPU.fullmatch(device):
        raise UsageError(f"{device!r} is no GPU", code="device_unknown", hint="Such as --device cuda:0.")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if int(device.partition(":")[2] or 0) >= count:
        found = f"no more than {count}" if count else "no GPU"
        built = "" if torch.version.cuda else " (this PyTorch is a CPU build)"
        raise NoGpuError(f"{device} was asked for, and there is {found}{built}", code="no_gpu", hint=hint)


def device_name(device: str) -> str:
    """The driver's name of a GPU that is there; empty where it is not, and for the CPU."""
    if device == "cpu" or not torch.cuda.is_available():
        return ""
    index = torch.device(device).index or 0
    return str(torch.cuda.get_device_name(index)) if index < torch.cuda.device_count() else ""


def l2_bytes(device: torch.device) -> int:
    """Size of a GPU's L2 cache as the driver tells this process; 0 where it does not."""
    return int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))


_CROWDED = 40


def crowded(device: torch.device, size: int) -> bool:
    """Whether a problem with so many bytes of inputs and results is so large for the GPU's memory that there is no
    room for further copies of them."""
    return device.type == "cuda" and torch.cuda.mem_get_info(device)[1] < _CROWDED * size
