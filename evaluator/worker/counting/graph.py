"""What one call of a reference computes, as a graph of PyTorch's operators. What it means is not decided here.

Tensors are told by what made them, and a view by the storage, strides and offset that it has: whoever reads the graph
needs no rule for any of the operators that only look at memory in another way.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves

from evaluator.worker.counting.counting import named_tensors, on_fake
from evaluator.worker.loading.subjects import KernelBench
from evaluator.worker.memory.values import UnsupportedValueError

MOST = 400
"""Operators of a reference that are written down."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Writes down every operator that makes a new tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        self.sources: list[dict[str, Any]] = []
        """Inputs, weights and constants, as they are met."""
        self.nodes: list[dict[str, Any]] = []
        self._base: dict[int, tuple[torch.UntypedStorage, dict[str, Any]]] = {}
        """Address of a storage → (the storage, which keeps the address from being used again; what made it)."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch._dynamo is imported at the first operator, for more than a second

    def know(self, tensor: torch.Tensor, what: str, name: str) -> None:
        """A tensor that was there before the call."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self._base:
            self._base[storage._cdata] = (storage, {"source": len(self.sources)})
            self.sources.append({"what": what, "name": name, **_spec(tensor)})

    def seen(self, value: Any) -> Any:
        """A value of an operator's arguments: where its memory comes from and how it is looked at; or a plain one."""
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage._cdata not in self._base:
                self.know(value, "constant", f"constant {len(self.sources)}")
            return {"tensor": {**self._base[storage._cdata][1], **_spec(value)}}
        if isinstance(value, (list, tuple)):
            return [self.seen(item) for item in value]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        return str(value).removeprefix("torch.")

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and write it down, unless what it returns is a view."""
        kwargs = kwargs or {}
        if function.namespace == "prim":
            return function(*args, **kwargs)
        name = function._schema.name.removeprefix("aten::")
        if function._schema.is_mutable:
            raise UnsupportedValueError(f"{name} changes its argument in place")
        given = {name: self.seen(value) for name, value in _by_name(function, args, kwargs).items()}
        before = set(self._base)
        result = function(*args, **kwargs)
        results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        if not results:
            raise UnsupportedValueError(f"{name} makes a number that Python goes on with")
        if all(one.untyped_storage()._cdata in before for one in results):
            return result
        if len(self.nodes) == MOST:
            raise UnsupportedValueError(f"it runs more than {MOST} operators")
        for place, one in enumerate(results):
            storage = one.untyped_storage()
            self._base[storage._cdata] = (storage, {"node": len(self.nodes), "result": place})
        self.nodes.append({"op": name, "args": given, "results": [_spec(one) for one in results]})
        return result


def _by_name(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Every argument by its name in the schema, those that were not given too."""
    found = {}
    for place, argument in enumerate(function._schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        found[argument.name] = args[place] if place < len(args) else kwargs.get(argument.name, default)
    return found


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    if tensor.layout is not torch.strided:
        raise UnsupportedValueError(f"a tensor has the layout {tensor.layout}")
    return {
        "shape": [int(n) for n in tensor.shape],
        "stride": [int(n) for n in tensor.stride()],
        "offset": int(tensor.storage_offset()),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }


def _numbers(values: Any) -> list[dict[str, Any]]:
    """Arguments that are plain numbers, and where they stand."""
    listed = enumerate(values) if isinstance(values, (list, tuple)) else ()
    plain = [(n, one) for n, one in listed if isinstance(one, (bool, int, float))]
    return [{"position": n, "value": one} for n, one in plain if math.isfinite(one)]


def trace(subject: Any, seed: int) -> dict[str, Any]:
    """The graph of one call of a model, without memory: on fake tensors alone.

    Raises what the reference raises; `UnsupportedValueError` where values decide what is computed.
    """

    def graph(values: Any, outputs: list[str]) -> dict[str, Any]:
        recorder = Recorder()
        tensors, names = named_tensors(values)
        for n, tensor in enumerate(tensors):
            recorder.know(tensor, "input", names[n])
        if isinstance(subject, KernelBench):
            for name, tensor in subject.model.state_dict().items():
                recorder.know(tensor, "weight", name)
        with torch.no_grad(), recorder:
            returned = subject.call(values)
        leaves, _ = tree_flatten(returned)
        single = isinstance(returned, torch.Tensor)
        return {
            "sources": recorder.sources,
            "nodes": recorder.nodes,
            "outputs": [recorder.seen(leaf) for leaf in leaves],
            "single": single,
            "written": outputs,
            "numbers": _numbers(values),
        }

    found: dict[str, Any] = on_fake(subject, seed, graph)
    return found
