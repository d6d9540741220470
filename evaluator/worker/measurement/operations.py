"""What a call really ran: PyTorch operators by the dispatcher's own observer, device kernels by the profiler."""

from __future__ import annotations

import contextlib
import json
import os
import random
import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch._C import _profiler as observer

_add: Any = observer._add_execution_trace_observer
_start: Any = observer._enable_execution_trace_observer
_remove: Any = observer._remove_execution_trace_observer
_empty, _memory = torch.empty, os.memfd_create
"""Bound before any candidate; `evaluator.worker.measurement.integrity.hide` takes the names away."""
_LIBRARIES = frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())
"""Namespaces of operators that PyTorch has without any candidate."""
_MOVES = frozenset(
    "aten::" + name
    for name in (
        "_local_scalar_dense", "_pin_memory", "_reshape_alias", "_to_copy", "_unsafe_view", "alias", "arange",
        "as_strided", "as_strided_", "broadcast_to", "chunk", "clone", "contiguous", "copy", "copy_", "data_ptr",
        "detach", "detach_", "diagonal", "empty", "empty_like", "empty_permuted", "empty_strided", "expand",
        "expand_as", "eye", "fill", "fill_", "flatten", "full", "full_like", "imag", "is_nonzero", "is_pinned",
        "item", "mT", "movedim", "narrow", "new_empty", "new_empty_strided", "new_full", "new_ones",
        "new_tensor", "new_zeros", "numpy_T", "ones", "ones_like", "permute", "real", "record_stream",
        "requires_grad_", "reshape", "reshape_as", "resize_", "resolve_conj", "result_type",
        "scalar_tensor", "select", "set_", "size", "slice", "split", "split_with_sizes", "squeeze", "squeeze_",
        "stride", "swapaxes", "t", "t_", "to", "transpose", "transpose_", "tril_indices", "type_as", "unbind",
        "unflatten", "unfold", "unsqueeze", "unsqueeze_", "view", "view_as", "view_as_real", "zero_", "zeros",
        "zeros_like",
    )
)  # fmt: skip
"""Operators that make memory or move it, and compute nothing."""
_HANDED_OVER = frozenset({"aten::resolve_neg", "aten::lift_fresh"})
"""Operators by which NumPy and lists get what a tensor holds, and give it back: no observer sees them compute."""
_COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph")
"""Beginnings of what the observer calls code of PyTorch's compiler, whose kernels are no operators."""
_MARK = 1 << 40


class Operators:
    """Counts operators with the bytes that they read and wrote, in all threads, while it is active.

    PyTorch's observer of execution traces sees each operator and what called it. Those count that no other called that
    counts, with the bytes of what they call where these are more: who adds an operator to PyTorch's hides nothing in
    it. An operator of the candidate's own is none of a library's, and what it calls is counted.
    """

    def __init__(self) -> None:
        self.blinded = False
        """Whether something took the observer away while it was active: a mark was not seen."""
        self._trace = -1
        self._marks = [_MARK + random.getrandbits(40) for _ in range(2)]
        self._table: list[dict[str, Any]] = []

    def __enter__(self) -> Operators:
        self._trace = _memory("")  # no file that the candidate could see
        _add(f"/proc/self/fd/{self._trace}")
        _start()
        _empty((0, self._marks[0]))
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # whatever the candidate made of the process
            _empty((0, self._marks[1]))
        _remove()  # which stops it as well; to stop what is not there ends the process
        try:
            with os.fdopen(self._trace, "rb") as trace:
                trace.seek(0)
                nodes = json.load(trace)["nodes"]
        except (OSError, ValueError, KeyError):
            self.blinded = True
            return
        marks = [shape[1] for node in nodes if (shape := _mark(node)) is not None]
        self.blinded = [mark for mark in marks if mark in self._marks] != self._marks
        self._table = _counted([node for node in nodes if _mark(node) is None])

    def table(self) -> list[dict[str, Any]]:
        """Operators with calls and bytes, the largest first."""
        return self._table


class Nothing(contextlib.nullcontext[None]):
    """No watch."""

    blinded = False

    def table(self) -> list[dict[str, Any]]:
        """Nothing was seen."""
        return []


def _mark(node: dict[str, Any]) -> list[Any] | None:
    """The shape that a mark asks for; None for other nodes."""
    shape = (node["inputs"]["values"] or [None])[0]
    marks = node["name"] == "aten::empty" and isinstance(shape, list) and len(shape) == 2
    return shape if marks and shape[0] == 0 and isinstance(shape[1], int) and shape[1] >= _MARK else None


def _counted(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The operators that compute, but for those that one of them called."""
    names = {node["name"] for node in nodes}
    known = {name for name in names if name.partition("::")[0] in _LIBRARIES}
    computing = {name for name in known if name in _HANDED_OVER or (name not in _MOVES and not _is_view(name))}
    by_id = {node["id"]: node for node in nodes}
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    called: dict[int, int] = defaultdict(int)
    for node in sorted(nodes, key=lambda node: -node["id"]):  # what an operator calls is numbered after it
        if node["name"] not in computing:
            continue
        sides = ("inputs", "outputs")
        own = sum(size for side in sides for size in _sizes(node[side]["values"], node[side]["types"]))
        touched = max(own, called[node["id"]])
        caller = next((caller for caller in _callers(node, by_id) if caller["name"] in computing), None)
        if caller is not None:
            called[caller["id"]] += touched
            continue
        found[node["name"]][0] += 1
        found[node["name"]][1] += touched
    compiled = sum(node["name"].startswith(_COMPILED) for node in nodes)
    if compiled:
        found["torch.compile"] = [compiled, _MARK]  # of unknown size: it is taken for all of the problem
    order = sorted(found, key=lambda name: -found[name][1])
    return [{"name": name, "calls": found[name][0], "bytes": found[name][1]} for name in order[:100]]


def _callers(node: dict[str, Any], by_id: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What called an operator, and what called that; the outermost node is its own caller."""
    while (caller := by_id.get(node["ctrl_deps"], node)) is not node:
        yield caller
        node = caller


def _sizes(values: list[Any], types: list[str]) -> Iterator[int]:
    """Bytes of the tensors: each is [id, storage, offset, elements, bytes of one, device]."""
    for value, kind in zip(values, types, strict=False):
        if kind.startswith("Tensor("):
            yield value[3] * value[4]
        elif kind.startswith("GenericList[Tensor("):
            yield from (one[3] * one[4] for one in value if isinstance(one, list) and len(one) == 6)


def _is_view(name: str) -> bool:
    """Whether an operator gives the memory of its argument another shape."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    return packet is not None and any(getattr(packet, overload).is_view for overload in packet.overloads())


def device_kernels(call: Any) -> list[dict[str, Any]]:
    """Kernels that one call ran on the GPU, with how often and how many microseconds (CUPTI, through the profiler)."""
    from torch.profiler import ProfilerActivity, profile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of events that are cleared between sessions
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            call()
            torch.cuda.synchronize()
    found = [
        {"name": event.key[:200], "calls": int(event.count), "microseconds": float(event.self_device_time_total)}
        for event in profiler.key_averages()
        if str(getattr(event, "device_type", "")).endswith("CUDA")
    ]
    return sorted(found, key=lambda kernel: -float(kernel["microseconds"]))[:100]
