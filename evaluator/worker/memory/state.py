"""What every part of a worker works on: its device, the code under examination, and the parent's buffers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from evaluator.worker.memory import tensors as memory
from evaluator.worker.memory.values import NUMBERS, StructureError, Tree, constant, deliver, is_exact, results

_device = torch._C.TensorBase.device.__get__
"""Bound before any candidate."""


class WorkerState:
    """Base of the parts of `evaluator.worker.process.child.Worker`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.device = torch.device("cpu")
        self.subject: Any = None
        """The code under examination, see `evaluator.worker.loading.subjects`."""
        self.buffers: dict[int, memory.Mapping] = {}
        """The parent's buffers that are mapped, by number."""
        self.tensors: dict[str, list[torch.Tensor]] = {}
        """What was made and can be fetched: inputs, init, weights, results."""
        self.findings: Callable[[], dict[str, Any]] = dict
        """What the candidate left behind: replaced functions, threads, processes."""

    def shared(self, spec: dict[str, Any]) -> torch.Tensor:
        """The tensor that a message describes, in the parent's buffer."""
        return memory.view(self.buffers[spec["buffer"]].base, spec["offset"], spec)

    def arguments(self, specs: list[dict[str, Any]]) -> list[torch.Tensor]:
        """The tensors of a message on the worker's device: shared ones as they are, host ones copied over."""
        shared = [self.shared(spec) for spec in specs]
        return [t if t.device.type == self.device.type else t.to(self.device) for t in shared]

    def copy_out(
        self, result: Any, tree: Tree, specs: list[dict[str, Any]], arguments: list[torch.Tensor]
    ) -> dict[str, Any]:
        """Copy what the candidate returned into the parent's buffers, where the reference's `tree` has tensors.

        `returned` tells type, shape and place of each value, or `misbuilt` how the result differs from the tree;
        `others` are the values where the tree has no tensors. Where nothing is asked for, nothing is looked at.
        """
        found: list[dict[str, Any]] = []
        others: list[Any] = []
        try:
            values = results(result, tree, others=others) if specs else []
        except StructureError as error:
            return {"returned": found, "misbuilt": str(error)[:500]}
        for spec, value in zip(specs, values, strict=True):
            exact = is_exact(value)
            entry: dict[str, Any] = {
                "type": f"{type(value).__module__}.{type(value).__qualname__}"[:200],
                "exact": exact,
            }
            if exact:
                place = {"device": _device(value).type, "alias": memory.alias(value, arguments)}
                entry |= {**memory.spec_of(value), **place}
            elif type(value) in NUMBERS and spec["shape"] == []:
                entry |= {"exact": True, "shape": [], "dtype": spec["dtype"], "device": self.device.type, "alias": None}
            earlier = [n for n, one in enumerate(values[: len(found)]) if exact and is_exact(one)]
            entry["within"] = next((n for n in earlier if memory.shares(value, values[n])), None)
            deliver(value, self.shared(spec))
            found.append(entry)
        return {"returned": found, "others": [constant(value) for value in others]}

    def wait(self) -> None:
        """Wait until the device has done what was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
