"""A driver for Triton where there is none: it answers what host code asks, and neither compiles nor launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def properties(multiprocessors: int, shared: int) -> dict[str, int]:
    """What a candidate may ask of its device."""
    return {
        "max_shared_mem": shared,
        "max_num_regs": 65536,
        "multiprocessor_count": multiprocessors,
        "warpSize": 32,
        "sm_clock_rate": 0,
        "mem_clock_rate": 0,
        "mem_bus_width": 0,
    }


class _Utils:
    """What a driver's `utils` are asked."""

    def __init__(self, told: dict[str, int], load_binary: Callable[..., Any] | None) -> None:
        self.load_binary = load_binary
        self.told = told

    def get_device_properties(self, _device: Any = 0) -> dict[str, int]:
        """A copy of what a candidate is told."""
        return dict(self.told)


def _timed_once(call: Callable[[], Any], quantiles: Any = None, **_: Any) -> Any:
    """In place of a benchmark: one call, and no time."""
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0


def stand_in(
    target: Any,
    told: dict[str, int],
    *,
    benchmarker: Callable[[], Callable[..., Any]] = lambda: _timed_once,
    launcher: Any = None,
    load_binary: Callable[..., Any] | None = None,
) -> Any:
    """What `triton.runtime.driver.active` is then: its GPU is `target`, with the properties `told`."""
    from triton.backends.driver import DriverBase

    class StandIn(DriverBase):  # type: ignore[misc]  # triton has no types
        """Answers what `triton.runtime.driver.active` is asked."""

        @classmethod
        def is_active(cls) -> bool:
            return True

        def __init__(self) -> None:
            self.launcher_cls = launcher
            self.utils = _Utils(told, load_binary)
            self.get_device_capability = lambda *_: divmod(target.arch, 10)
            self.get_current_stream = lambda *_: 0
            self.get_current_device = lambda: 0
            self.set_current_device = lambda *_: None

        def get_current_target(self) -> Any:
            return target

        def get_active_torch_device(self) -> torch.device:
            return torch.device("cpu")

        def get_device_interface(self) -> Any:
            return torch.cuda

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_benchmarker(self) -> Callable[..., Any]:
            return benchmarker()

        def get_empty_cache_for_benchmark(self) -> torch.Tensor:
            return torch.empty(0)

        def clear_cache(self, cache: torch.Tensor) -> None:
            del cache

    return StandIn()
