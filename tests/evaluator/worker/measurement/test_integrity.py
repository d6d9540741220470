"""Whether the functions that others rely on are still the same ones."""

from __future__ import annotations

import builtins
import gc
import statistics
import sys
import time
import types
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from evaluator.worker.measurement import integrity
from evaluator.worker.measurement.integrity import WATCHED, watch

NAMES = [(owner, name) for owner, names in WATCHED for name in names]


def label(owner: Any, name: str) -> str:
    """How it is told."""
    return f"{owner.__name__}.{name}"


def test_nothing_has_changed_where_nothing_was_done() -> None:
    changed = watch()
    torch.ones(2).clone().copy_(torch.zeros(2))
    statistics.median([time.perf_counter()])
    torch.nn.Linear(2, 2)(torch.ones(2))
    assert changed() == []


@pytest.mark.parametrize(("owner", "name"), NAMES, ids=[label(owner, name) for owner, name in NAMES])
def test_a_replaced_function_is_told(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    assert getattr(owner, name, None) is not None, "a name that is not there protects nothing"
    changed = watch()
    original = getattr(owner, name)
    stand_in: Any
    with monkeypatch.context() as patch:
        if owner is builtins:  # what replaces it must work, since all code calls it
            stand_in = (
                type("type", (type,), {}) if name == "type" else types.FunctionType(_call.__code__, {"f": original})
            )
        else:
            stand_in = lambda *_, **__: None  # noqa: E731 - a stand-in
        patch.setattr(owner, name, stand_in)
        told = changed()
    assert told == [label(owner, name)]
    assert changed() == []


def _call(*words: Any, **named: Any) -> Any:
    return f(*words, **named)  # type: ignore[name-defined]  # noqa: F821 - the original, given as a global


def test_a_deleted_function_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = watch()
    monkeypatch.delattr(torch, "allclose")
    assert changed() == ["torch.allclose"]


def test_tritons_benchmarks_are_watched_where_they_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    testing = types.ModuleType("triton.testing")
    testing.do_bench = len  # type: ignore[attr-defined]  # a made-up module
    monkeypatch.setitem(sys.modules, "triton.testing", testing)
    changed = watch()
    testing.do_bench = max  # type: ignore[attr-defined]  # likewise
    testing.do_bench_cudagraph = max  # type: ignore[attr-defined]  # likewise
    assert changed() == ["triton.testing.do_bench", "triton.testing.do_bench_cudagraph"]


def test_other_code_in_the_same_function_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = watch()
    with monkeypatch.context() as patch:
        patch.setattr(statistics.fmean, "__code__", _average.__code__)
        assert changed() == ["statistics.fmean"]
    assert changed() == []


def test_other_defaults_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = watch()
    with monkeypatch.context() as patch:
        patch.setattr(torch.cuda.synchronize, "__defaults__", (0,))
        assert changed() == ["torch.cuda.synchronize"]
    assert changed() == []


def _average(data: Any, weights: Any = None) -> float:
    return 0.0


def test_a_hook_on_all_modules_is_told() -> None:
    changed = watch()
    hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda *_: None)
    assert changed() == ["the table of hooks on all modules"]
    hook.remove()
    assert changed() == []


class Sees(TorchFunctionMode):
    """A mode that could."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do it."""
        return function(*args, **(kwargs or {}))


def test_a_mode_that_is_left_is_told() -> None:
    changed = watch()
    with Sees(), torch.device("cpu"):
        assert changed() == ["a mode that sees every operator"]
    assert changed() == []


def test_a_default_device_is_none_of_them() -> None:
    changed = watch()
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        assert changed() == []
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == before


def test_what_python_calls_by_itself_is_told() -> None:
    changed, traced = watch(), "a tracer of Python's calls or collections"
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        assert changed() == [traced]
    finally:
        sys.setprofile(before)
    gc.callbacks.append(print)
    try:
        assert changed() == [traced]
    finally:
        gc.callbacks.remove(print)
    assert changed() == []


def test_a_stream_that_is_left_current_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity, "_is_initialized", lambda: True)
    monkeypatch.setattr(integrity, "_current_device", lambda: 1)
    current = {1: 0}
    monkeypatch.setattr(integrity, "_current_stream", lambda device: (current[device], device, 1))
    changed = watch()
    assert changed() == []
    current[1] = 7
    assert changed() == ["the current stream"]


def test_the_native_functions_are_watched_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_cuda_synchronize", len, raising=False)
    changed = watch()
    monkeypatch.setattr(torch._C, "_cuda_synchronize", max)
    assert changed() == ["torch._C._cuda_synchronize"]
