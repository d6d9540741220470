"""Oracles and kernels for tests: small sources in real workers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from evaluator.correctness.candidate import KernelProcess
from evaluator.correctness.reference import ReferenceProcess, Shape, Values
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.memory.tensors import spec_of
from evaluator.worker.memory.values import flatten, names_of
from evaluator.worker.process.isolation import Limits

LIMITS = Limits(memory=3 << 30, processes=32, file_size=1 << 30, limit_data=True)
CPU = torch.device("cpu")


def reference_process(
    server: ForkServer, text: str, *, files: dict[str, bytes] | None = None, **message: Any
) -> ReferenceProcess:
    """A worker that has loaded `text` as the reference of a function, unless `message` says otherwise."""
    worker = server.spawn("reference", LIMITS, {"reference.py": text.encode(), **(files or {})})
    made = ReferenceProcess(worker, CPU, 30, 30)
    try:
        made.load({**_message("reference", "reference.py", "reference"), **message})
    except BaseException:
        made.close()
        raise
    return made


def kernel(server: ForkServer, text: str, *, seed: int = 1, seconds: float = 30, **message: Any) -> KernelProcess:
    """A worker that has loaded `text` as a candidate with a function `run`, unless `message` says otherwise."""
    worker = server.spawn("candidate", LIMITS, {"candidate.py": text.encode()})
    made = KernelProcess(worker, CPU, 30, seconds, random.Random(seed))
    try:
        made.load({**_message("candidate", "candidate.py", "run"), **message})
    except BaseException:
        made.close()
        raise
    return made


def _message(role: str, file: str, entry: str) -> dict[str, Any]:
    return {
        "form": "function",
        "role": role,
        "file": file,
        "entry": entry,
        "inputs": "",
        "dims": {},
        "device": "cpu",
        "maps_cuda": False,
    }


def values(*arguments: Any, **named: Any) -> Values:
    """Arguments as the oracle hands them out: positional ones, or named ones."""
    tensors: list[torch.Tensor] = []
    tree = flatten(named or list(arguments), tensors)
    names = names_of(tree)
    return Values(tree, [{"name": names[n], **spec_of(t)} for n, t in enumerate(tensors)], tensors)


def specs(*tensors: torch.Tensor) -> list[dict[str, Any]]:
    """What is expected to be returned."""
    return [
        {"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch."), "alias": None, "within": None}
        for t in tensors
    ]


def shaped(returned: Sequence[dict[str, Any]] = (), written: Sequence[int] = (), filled: Sequence[int] = ()) -> Shape:
    """What a reference would tell that returns tensors of these specs, one alone or as a tuple."""
    parts = [{"tensor": n} for n in range(len(returned))]
    tree: dict[str, Any] = parts[0] if len(parts) == 1 else {"tuple": parts}
    return Shape(list(returned), tree, list(written), list(filled))


def bits(tensors: Sequence[torch.Tensor]) -> list[list[int]]:
    """The bytes of some tensors."""
    return [t.clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8).tolist() for t in tensors]
