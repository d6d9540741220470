"""Arguments and results as they cross between processes: a tree of lists, scalars and numbered tensors."""

from __future__ import annotations

from typing import Any

import torch

Tree = dict[str, Any]
"""`{"tensor": n}`, `{"scalar": x}`, `{"list" or "tuple": [...]}`, `{"dict": [[key, tree], ...]}`."""
MAX_ITEMS = 1000
_copy = torch._C.TensorBase.copy_
_fill = torch._C.TensorBase.fill_
_detach = torch._C.TensorBase.detach
"""Bound before any candidate, as those of `evaluator.worker.memory.tensors` are."""


class UnsupportedValueError(Exception):
    """A value that cannot cross: neither a tensor, nor a number, text, None, nor a container of such."""


def flatten(value: object, tensors: list[torch.Tensor]) -> Tree:
    """The tree of a value; its tensors are appended to `tensors`."""
    if isinstance(value, torch.Tensor):
        if len(tensors) == MAX_ITEMS:
            raise UnsupportedValueError(f"more than {MAX_ITEMS} tensors")
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"scalar": value}
    if isinstance(value, (torch.dtype, torch.device)):
        return {"torch": str(value).removeprefix("torch."), "kind": type(value).__name__}
    if isinstance(value, torch.Size):
        return {"tuple": [{"scalar": int(n)} for n in value]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [flatten(item, tensors) for item in value]}
    if isinstance(value, dict):
        strange = [key for key in value if not isinstance(key, str)]
        if strange:  # JSON would turn it into text, and the other side would not find it
            raise UnsupportedValueError(f"a dict with the key {strange[0]!r} cannot be passed; keys are text")
        return {"dict": [[key, flatten(item, tensors)] for key, item in value.items()]}
    raise UnsupportedValueError(f"a value of type {type(value).__name__} cannot be passed to another process")


def rebuild(tree: Tree, tensors: list[torch.Tensor]) -> Any:
    """The value of a tree whose tensors are given."""
    if "tensor" in tree:
        return tensors[tree["tensor"]]
    if "scalar" in tree:
        return tree["scalar"]
    if "torch" in tree:
        return getattr(torch, tree["torch"]) if tree["kind"] == "dtype" else torch.device(tree["torch"])
    if "list" in tree:
        return [rebuild(item, tensors) for item in tree["list"]]
    if "tuple" in tree:
        return tuple(rebuild(item, tensors) for item in tree["tuple"])
    return {key: rebuild(item, tensors) for key, item in tree["dict"]}


def names_of(tree: Tree, prefix: str = "") -> dict[int, str]:
    """Tensor number → where in the tree it stands, such as `x` or `inputs[0]`."""
    if "tensor" in tree:
        return {tree["tensor"]: prefix or "0"}
    found: dict[int, str] = {}
    for kind in ("list", "tuple"):
        for n, item in enumerate(tree.get(kind, ())):
            found |= names_of(item, f"{prefix}[{n}]" if prefix else str(n))
    for key, item in tree.get("dict", ()):
        found |= names_of(item, f"{prefix}.{key}" if prefix else key)
    return found


def leaves(value: Any) -> list[Any]:
    """Everything in nested lists, tuples and dicts but None, in their order."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [] if value is None else [value]


def is_exact(value: Any) -> bool:
    """Whether it is a tensor, and of no class that could compute when it is looked at."""
    return type(value) is torch.Tensor or type(value) is torch.nn.Parameter


def deliver(value: Any, place: torch.Tensor) -> None:
    """Copy a tensor of the same shape and type, or a number for a scalar; anything else is left undelivered."""
    if is_exact(value):
        fits = value.shape == place.shape and value.dtype == place.dtype
        if fits and value.layout is torch.strided and not value.is_meta:
            _copy(place, _detach(value))
    elif isinstance(value, (int, float)) and place.shape == ():
        _fill(place, value)
