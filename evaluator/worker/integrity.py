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

_WATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (torch, ("allclose", "equal", "isclose", "eq", "empty", "empty_like", "rand", "randn")),
    (torch.testing, ("assert_close",)),
    (torch.Tensor, ("copy_", "clone", "data_ptr", "untyped_storage", "__eq__", "to", "cpu", "float", "double")),
    (torch.cuda, ("synchronize", "Event", "Stream", "current_stream")),
    (torch.cuda.Event, ("elapsed_time", "record", "synchronize", "query", "wait")),
    (torch.nn.Module, ("__call__", "load_state_dict", "state_dict")),
    (time, ("perf_counter", "perf_counter_ns", "time", "time_ns", "monotonic", "monotonic_ns")),
    (statistics, ("mean", "median", "stdev", "fmean")),
    (builtins, ("isinstance", "type", "abs", "sum", "min", "max", "len", "id", "hash", "open")),
    (gc, ("collect",)),
)


def watch() -> Callable[[], list[str]]:
    """Remember what stands now; the answer tells which names have changed since."""
    watched = list(_WATCHED)
    testing = sys.modules.get("triton.testing")
    if testing is not None:
        watched.append((testing, ("do_bench", "do_bench_cudagraph")))
    before = [
        (f"{getattr(owner, '__name__', owner)}.{name}", owner, name, getattr(owner, name, None))
        for owner, names in watched
        for name in names
    ]

    def changed() -> list[str]:
        return [label for label, owner, name, value in before if getattr(owner, name, None) is not value]

    return changed
