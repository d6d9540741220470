"""Arguments and results as they cross between processes: a tree of lists, scalars and numbered tensors."""

from __future__ import annotations

from typing import Any

import torch

Tree = dict[str, Any]
"""`{"tensor": n}`, `{"scalar": x}`, `{"list" or "tuple": [...]}`, `{"dict": [[key, tree], ...]}`."""
MAX_ITEMS = 1000
MAX_TEXT = 1000
"""Characters of a text in a candidate's result that are told: a longer one of the reference's is told as short."""
NUMBERS = (bool, int, float)
"""Python's own numbers."""
_NAMED = tuple(k for k in vars(torch.return_types).values() if isinstance(k, type) and issubclass(k, tuple))
_LISTS = (list, tuple, torch.Size, *_NAMED)
"""Python's own, and the named tuples of operators: types whose methods nobody can replace."""
_shape, _dtype, _layout, _is_meta = (
    getattr(torch._C.TensorBase, name).__get__ for name in ("shape", "dtype", "layout", "is_meta")
)
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


class StructureError(Exception):
    """A result that is not built as the reference's is."""


def constants(tree: Tree) -> list[Tree]:
    """What a tree holds besides tensors, in order: text, None, types and devices."""
    if "scalar" in tree or "torch" in tree:
        value = tree.get("scalar")
        return [{"scalar": value[:MAX_TEXT]} if isinstance(value, str) else tree]
    items = [*tree.get("list", ()), *tree.get("tuple", ()), *(item for _, item in tree.get("dict", ()))]
    return [leaf for item in items for leaf in constants(item)]


def constant(value: Any) -> Tree:
    """The same of one value of a candidate's, which nothing of its making runs for; its type alone where it is none."""
    if value is None or type(value) in (str, *NUMBERS):
        return {"scalar": value[:MAX_TEXT] if type(value) is str else value}
    if type(value) in (torch.dtype, torch.device):
        return flatten(value, [])
    return {"type": type(value).__name__[:MAX_TEXT]}


def results(value: Any, tree: Tree, where: str = "", others: list[Any] | None = None) -> list[Any]:
    """The values of a candidate's result that stand where the reference has tensors, in the order of its tree; those
    that stand where it has something else are appended to `others`.

    Containers are lists, tuples and dicts themselves and no classes of somebody's making, so that nothing of the
    candidate's runs while they are read. A tensor alone may stand in a list or tuple of one. Raises `StructureError`.
    """
    if "scalar" in tree or "torch" in tree:  # the reference returns no number but as a tensor
        if others is not None:
            others.append(value)
        return []
    kind = next((kind for kind in ("list", "tuple", "dict") if kind in tree), "")
    if not kind:
        items = _items(value)
        return results(items[0], tree, where, others) if items is not None and len(items) == 1 else [value]
    if kind == "dict":
        wanted = dict(tree["dict"])
        if type(value) is not dict or list(map(type, value)) != [str] * len(value) or value.keys() != wanted.keys():
            raise StructureError(f"{_what(value, where)}, the reference returns a dict with {', '.join(wanted)}")
        return [leaf for key, part in tree["dict"] for leaf in results(value[key], part, f"{where}[{key!r}]", others)]
    items, parts = _items(value), tree[kind]
    if items is None and len(parts) == 1:
        return results(value, parts[0], where, others)
    if items is None or len(items) != len(parts):
        raise StructureError(f"{_what(value, where)}, the reference returns {len(parts)} values")
    return [leaf for n, part in enumerate(parts) for leaf in results(items[n], part, f"{where}[{n}]", others)]


def _items(value: Any) -> list[Any] | None:
    """The items of a list or a tuple; None for anything else."""
    return list(value) if type(value) in _LISTS else None


def _what(value: Any, where: str) -> str:
    """A value in words, by its type alone."""
    items = list(value) if type(value) is dict else _items(value)
    return f"the result{where} is a {type(value).__name__}" + (f" of {len(items)}" if items is not None else "")


def is_exact(value: Any) -> bool:
    """Whether it is a tensor, and of no class that could compute when it is looked at."""
    return type(value) is torch.Tensor or type(value) is torch.nn.Parameter


def deliver(value: Any, place: torch.Tensor) -> None:
    """Copy a tensor of the same shape and type, or a number for a scalar; anything else is left undelivered."""
    if is_exact(value):
        fits = _shape(value) == _shape(place) and _dtype(value) == _dtype(place)
        if fits and _layout(value) is torch.strided and not _is_meta(value):
            _copy(place, _detach(value))
    elif type(value) in NUMBERS and _shape(place) == ():
        _fill(place, value)
