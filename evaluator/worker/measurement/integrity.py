"""Whether a candidate replaced what others rely on: clocks, comparisons, synchronization."""

from __future__ import annotations

import builtins
import gc
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.profiler
from torch import overrides
from torch.autograd import profiler as autograd_profiler
from torch.nn.modules import module as modules
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext

from evaluator.worker.measurement.clock import Clock

WATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch, ("allclose", "equal", "isclose", "eq", "empty", "empty_like", "rand", "randn")),
    (torch.testing, ("assert_close",)),
    (torch.Tensor, ("copy_", "clone", "data_ptr", "untyped_storage", "__eq__", "to", "cpu", "float", "double")),
    (
        torch.Tensor,
        (
            "numpy",
            "__dlpack__",
            "view",
            "as_strided",
            "__getitem__",
            "detach",
            "fill_",
            "zero_",
            "stride",
            "numel",
            "dim",
        ),
    ),
    (torch.Tensor, ("shape", "dtype", "device", "layout", "is_meta", "is_floating_point")),
    (DeviceContext, ("__torch_function__",)),
    (torch.cuda, ("synchronize", "Event", "Stream", "current_stream", "default_stream", "set_stream", "stream")),
    (torch.cuda.Event, ("elapsed_time", "record", "synchronize", "query", "wait")),
    (torch.cuda.Stream, ("synchronize", "wait_event", "wait_stream", "record_event", "query")),
    (torch.profiler, ("profile",)),
    (torch.profiler.profile, ("start", "stop", "__enter__", "__exit__", "events")),
    (autograd_profiler.profile, ("__enter__", "__exit__")),
    (autograd_profiler, ("_enable_profiler", "_disable_profiler", "_prepare_profiler")),
    (Clock, ("sample", "finish", "empty_pairs")),
    (torch.nn.Module, ("__call__", "load_state_dict", "state_dict")),
    (time, ("perf_counter", "perf_counter_ns", "time", "time_ns", "monotonic", "monotonic_ns")),
    (statistics, ("mean", "median", "stdev", "fmean")),
    (builtins, ("isinstance", "type", "abs", "sum", "min", "max", "len", "id", "hash", "open")),
    (gc, ("collect",)),
)

_NATIVE = (
    *("_cuda_synchronize", "_cuda_getCurrentStream", "_cuda_getCurrentRawStream", "_cuda_getDefaultStream"),
    *("_cuda_setStream", "_CudaEventBase", "_CudaStreamBase"),
)
"""Of torch._C, where torch is built for CUDA: what the functions above call."""

_OBSERVER = (
    *(f"_{what}_execution_trace_observer" for what in ("add", "enable", "disable", "remove")),
    "_enable_record_function",
)

_function_modes: Callable[[], list[Any]] = overrides._get_current_function_mode_stack
_dispatch_modes: Callable[[], list[Any]] = _python_dispatch._get_current_dispatch_mode_stack
_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks")
"""Of torch.nn.modules.module: hooks that every module runs."""

_current_device: Callable[[], int] | None = getattr(torch._C, "_cuda_getDevice", None)
_current_stream: Callable[[int], tuple[int, int, int]] | None = getattr(torch._C, "_cuda_getCurrentStream", None)
_is_initialized: Callable[[], bool] = torch.cuda.is_initialized


def hide() -> None:
    """Take the evaluator's modules out of reach by name: an import of one makes another, which measures nothing.

    What runs is bound already. Whoever searches memory for them finds them all the same; what they could change there
    is held against kopt's own clock and comparisons, in another process. So are the functions that take away the
    observer of operators.
    """
    for owner in (torch._C._profiler, torch._C._autograd, torch.autograd, torch.profiler.profiler):
        for name in _OBSERVER:
            if hasattr(owner, name):
                delattr(owner, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "evaluator"]:
        del sys.modules[name]


def watch() -> Callable[[], list[str]]:
    """Remember what stands now; the answer tells which names have changed since.

    A function has changed too where its code or the defaults of its parameters have. A stream that was left current,
    a hook on all modules, and what would see every operator or every call of Python's, count among the names.
    """
    watched = list(WATCHED)
    testing = sys.modules.get("triton.testing")
    if testing is not None:
        watched.append((testing, ("do_bench", "do_bench_cudagraph")))
    watched.append((torch._C, tuple(name for name in _NATIVE if hasattr(torch._C, name))))
    before = [
        (f"{getattr(owner, '__name__', owner)}.{name}", owner, name, _parts(getattr(owner, name, None)))
        for owner, names in watched
        for name in names
    ]
    hooks, stream, modes, tracers = _hooks(), _stream(), _modes(), _tracers()

    def changed() -> list[str]:
        found = [label for label, owner, name, parts in before if not _same(parts, getattr(owner, name, None))]
        if _hooks() != hooks:
            found.append("the table of hooks on all modules")
        if _stream() != stream:
            found.append("the current stream")
        if _modes() != modes:
            found.append("a mode that sees every operator")
        if _tracers() != tracers:
            found.append("a tracer of Python's calls or collections")
        return found

    return changed


def _parts(value: Any) -> tuple[Any, ...]:
    """What a function consists of, itself first; the parts keep them from being made anew at the same address."""
    return (value, *(getattr(value, name, None) for name in ("__code__", "__defaults__", "__kwdefaults__")))


def _same(parts: tuple[Any, ...], value: Any) -> bool:
    return all(old is new for old, new in zip(parts, _parts(value), strict=True))


def _hooks() -> list[list[Any]]:
    """The hooks that every module runs."""
    return [list(getattr(modules, name, {}).values()) for name in _HOOKS]


def _modes() -> list[Any]:
    """Modes of torch that see every operator; not the one of `torch.set_default_device`, which is no fault."""
    return [mode for mode in (*_function_modes(), *_dispatch_modes()) if type(mode) is not DeviceContext]


def _tracers() -> list[Any]:
    """Functions that Python calls by itself: at each call, and at each collection of garbage."""
    return [sys.gettrace(), sys.getprofile(), *gc.callbacks]


def _stream() -> int:
    """Number of the stream on which work is launched; 0 is the default stream, which is current from the start."""
    if _current_stream is None or _current_device is None or not _is_initialized():
        return 0
    return _current_stream(_current_device())[0]
