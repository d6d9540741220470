"""What the device does at best: kernels that copy, fill and multiply (PyTorch's) and read, timed like any other call.

Nothing of a candidate runs in the process that measures this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from evaluator.worker.measurement.clock import Clock

_SPIN_US = 150.0
_WARM = 3
_ELEMENT = 4
BLOCK = 8192
MATMULS = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""Element types of the matrix products; `tf32` is float32 with TF32 on."""


@triton.jit  # type: ignore[untyped-decorator]  # triton does not annotate it
def _sums(source, target, n, block: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads annotations itself
    """One sum of each block: reads all and writes next to nothing."""
    place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(target + tl.program_id(0), tl.sum(tl.load(source + place, mask=place < n, other=0.0), 0))


def reading(source: torch.Tensor) -> Callable[[], Any]:
    count = triton.cdiv(len(source), BLOCK)
    target = torch.empty(count, device=source.device)
    return lambda: _sums[(count,)](source, target, len(source), BLOCK, num_warps=8)


def rate(clock: Clock, device: torch.device, message: dict[str, Any]) -> list[float]:
    """Microseconds of each sample of one kind: `copy`, `read`, `fill`, `copy+read`, `copy+fill`, `read+fill`, `launch`
    or `matmul`. `read_bytes` and `written_bytes`, or `n` and `dtype`, give its size."""
    torch.backends.cuda.matmul.allow_tf32 = message.get("dtype") == "tf32"
    try:
        call = _call(device, message)
        for _ in range(_WARM):
            call()
        return [_sample(clock, call) for _ in range(int(message["samples"]))]
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def _sample(clock: Clock, call: Callable[[], Any]) -> float:
    spin = _SPIN_US
    while True:
        measured, result = clock.sample(call, spin)
        del result
        done = clock.finish(measured)
        if not done["late"] or spin > 1e5:
            return float(done["us"])
        spin *= 2


def _call(device: torch.device, message: dict[str, Any]) -> Callable[[], Any]:
    kind = message["kind"]
    if kind == "launch":
        one = torch.zeros(32, device=device)
        return lambda: one.add_(1)
    if kind == "matmul":
        n = int(message["n"])
        dtype = MATMULS[message["dtype"]]
        a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
        out = torch.empty(n, n, device=device, dtype=dtype)
        return lambda: torch.mm(a, b, out=out)
    return traffic(kind, int(message["read_bytes"]), int(message["written_bytes"]), device)


def traffic(kind: str, read_bytes: int, written_bytes: int, device: torch.device) -> Callable[[], Any]:
    """Kernels that read and write so many bytes: a copy for what is both, then a read or a fill for the rest."""
    copied = min(read_bytes, written_bytes) // _ELEMENT if kind.startswith("copy") else 0
    source = torch.zeros(max(1, read_bytes // _ELEMENT), device=device)
    target = torch.empty(max(1, written_bytes // _ELEMENT), device=device)
    steps: list[Callable[[], Any]] = []
    if copied:
        here, there = source[:copied], target[:copied]
        steps.append(lambda: there.copy_(here))
    if "read" in kind and len(source) > copied:
        rest = source[copied:]
        steps.append(reading(rest))
    if "fill" in kind and len(target) > copied:
        blank = target[copied:]
        steps.append(lambda: blank.fill_(1.0))

    def run() -> None:
        for step in steps:
            step()

    return run
