"""The requests of the reference's worker: arguments, inputs, and what the reference computes from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from evaluator.worker.loading.subjects import KernelBench, Setup, Solve
from evaluator.worker.memory import tensors as memory
from evaluator.worker.memory.state import WorkerState
from evaluator.worker.memory.values import Tree, UnsupportedValueError, flatten, names_of, rebuild

_WRITES = (Setup, Solve)
"""Forms whose results are arguments that they write, not what they return."""
_LARGE = 1 << 30
"""Bytes of results after which the process gives its unused memory back to the device."""
PRECISIONS = {"double": torch.float64, "lower": torch.bfloat16}


class ReferenceWorker(WorkerState):
    """What a worker does with a reference; `evaluator.worker.process.child.Worker` is one."""

    first_returned: tuple[torch.Tensor, ...] = ()
    """What the first run returned, until the second has come to its end."""

    def do_init(self, message: dict[str, Any]) -> dict[str, Any]:
        """The constructor's arguments, KernelBench form."""
        values = self.subject.init_inputs(message["seed"]) if isinstance(self.subject, KernelBench) else []
        return self._keep("init", values)

    def do_inputs(self, message: dict[str, Any]) -> dict[str, Any]:
        """One fresh draw of inputs; kept until they are fetched."""
        values, outputs = self.subject.make_inputs(message["seed"])
        return {**self._keep("inputs", values), "outputs": outputs}

    def _keep(self, name: str, values: Any) -> dict[str, Any]:
        tensors: list[torch.Tensor] = []
        tree = flatten(values, tensors)
        self.tensors[name] = [t.detach() for t in tensors]
        names = names_of(tree)
        return {"tree": tree, "tensors": [{"name": names[n], **spec} for n, spec in enumerate(_specs(tensors))]}

    def do_fetch(self, message: dict[str, Any]) -> dict[str, Any]:
        """Copy kept tensors into the parent's buffers."""
        kept = self.tensors[message["what"]]
        for spec, tensor in zip(message["tensors"], kept, strict=True):
            self.shared(spec).copy_(tensor)
        self.wait()
        del self.tensors[message["what"]]  # not before: where memory was short, it is fetched once more
        if self.device.type == "cuda" and not message["keeps"] and sum(t.nbytes for t in kept) > _LARGE:
            kept.clear()
            tensor = torch.empty(0)
            torch.cuda.empty_cache()
        return {}

    def do_reference(self, message: dict[str, Any]) -> dict[str, Any]:
        """Run the reference on copies of the inputs at a precision; its results are kept until they are fetched."""
        dtype = PRECISIONS.get(message["precision"])
        shared = self.arguments(message["tensors"])
        own = [_own(t, dtype) for t in shared]
        before = [t.clone() for t in own] if message["mutations"] else []
        self.subject.evaluates = bool(message.get("evaluates"))
        result = self.subject.at(dtype)(rebuild(message["tree"], own))
        self.wait()
        results, specs, tree = self._results(result, own, message["results"])
        returned = results[: len(results) - len(message["results"])]
        reused = any(memory.alias(tensor, list(self.first_returned)) is not None for tensor in returned)
        self.first_returned = tuple(returned) if message["mutations"] else ()
        self.tensors["results"] = results
        mutated = [n for n, (a, b) in enumerate(zip(before, own, strict=False)) if not _same(a, b)]
        return {"results": specs, "tree": tree, "mutated": mutated, "reused": reused}

    def _results(
        self, result: Any, arguments: list[torch.Tensor], named: list[int]
    ) -> tuple[list[torch.Tensor], list[dict[str, Any]], Tree]:
        """What counts as the result: returned tensors, then arguments that are written (`named`, by number); and how
        what is returned is built."""
        returned: list[torch.Tensor] = []
        tree = {} if isinstance(self.subject, _WRITES) else flatten(_as_tensors(result), returned)
        results = [t.detach() for t in returned] + [arguments[n] for n in named]
        specs = [
            {
                **spec,
                "alias": memory.alias(results[n], arguments) if n < len(returned) else None,
                "within": next(
                    (m for m in range(min(n, len(returned))) if memory.shares(results[n], results[m])), None
                ),
            }
            for n, spec in enumerate(_specs(results))
        ]
        return results, specs, tree

    def do_count(self, message: dict[str, Any]) -> dict[str, Any]:
        """What one call of the reference must read, write and compute."""
        from evaluator.worker.counting.counting import count

        return {"count": count(self.subject, message["seed"], message["outputs"])}

    def do_trace(self, message: dict[str, Any]) -> dict[str, Any]:
        """What one call of the reference computes, as a graph of operators."""
        from evaluator.worker.counting.graph import trace

        return {"graph": trace(self.subject, message["seed"])}


def _specs(tensors: Sequence[torch.Tensor]) -> list[dict[str, Any]]:
    """Their specs; raises `UnsupportedValueError` for what shared memory cannot hold."""
    specs = [memory.spec_of(tensor) for tensor in tensors]
    for tensor, spec in zip(tensors, specs, strict=True):
        if spec["dtype"] not in memory.DTYPES or spec["stride"] is None:
            kind = spec["dtype"] if spec["stride"] is not None else f"the layout {tensor.layout}"
            raise UnsupportedValueError(f"tensors of {kind} cannot be passed to another process")
    return specs


def _own(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """A copy at a precision."""
    cast = tensor
    if tensor.is_complex() and dtype is torch.float64:
        cast = tensor.to(torch.complex128)
    elif tensor.is_floating_point() and dtype is not None:
        cast = tensor.to(dtype)
    return memory.own(tensor) if cast is tensor else cast


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a.flatten().view(torch.uint8), b.flatten().view(torch.uint8)))


def _as_tensors(result: Any) -> Any:
    """A reference that returns a Python number returns a tensor of no dimensions."""
    if isinstance(result, (bool, int, float)):
        return torch.tensor(result)
    if isinstance(result, (list, tuple)):
        return [_as_tensors(item) for item in result]
    if isinstance(result, dict):
        return {key: _as_tensors(item) for key, item in result.items()}
    return result
