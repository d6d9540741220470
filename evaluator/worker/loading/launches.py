"""What Triton would launch on a GPU that is not there: a stand-in for its driver that compiles and runs nothing.

The host code of a candidate runs as it is, on CPU tensors; Triton itself specializes and compiles each kernel for the
named target as it would on that GPU. Where it would load the binary and launch it, the binary is kept instead.
"""

from __future__ import annotations

import contextlib
import io
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from evaluator.worker.loading.stand_in_driver import properties, stand_in

MAX_BINARIES = 64
"""Compiled kernels that are kept of one candidate."""
MAX_CONFIGURATIONS = 16
"""Configurations that an autotuner may try; which of them would win is known on a GPU alone."""
_SHARED_LIMIT = 1 << 20
"""No kernel is refused for its shared memory: how much it needs is what is asked."""
_USED = re.compile(r"Used (\d+) registers")
_TEXT = 200


class TooManyError(Exception):
    """A candidate that compiles without end."""


class Launches:
    """Keeps every binary that a candidate launches, once."""

    def __init__(self, folder: Path, target: Any, multiprocessors: int) -> None:
        """`target` is the GPUTarget; `multiprocessors` is what a persistent kernel is told of."""
        self.folder = folder
        self.target = target
        self.multiprocessors = multiprocessors
        self.kept: list[dict[str, Any]] = []
        self.skipped = 0
        """Configurations of autotuners that were not compiled."""
        self.printed = io.StringIO()
        """What was printed since the last binary: the assembler's log among it."""
        self._known: list[tuple[str, bytes, str, str]] = []
        self._source: Any = None
        self._metadata: Any = None

    def driver(self) -> Any:
        """The stand-in for Triton's driver."""
        return stand_in(
            self.target,
            properties(self.multiprocessors, _SHARED_LIMIT),
            benchmarker=self.benchmarker,
            launcher=self.launcher,
            load_binary=self.keep,
        )

    def benchmarker(self) -> Callable[..., list[float]]:
        """In place of a benchmark: each configuration is compiled, none is timed, and the first counts as the best."""
        tried = 0

        def benchmark(call: Callable[[], Any], quantiles: Any = None, **_: Any) -> list[float]:
            nonlocal tried
            del quantiles
            tried += 1
            if tried > MAX_CONFIGURATIONS:
                self.skipped += 1
                return [2.0, 2.0, 2.0]
            call()
            return [1.0, 1.0, 1.0]

        return benchmark

    def launcher(self, source: Any, metadata: Any) -> Callable[..., None]:
        """What Triton makes before it loads a binary; it launches nothing."""
        self._source, self._metadata = source, metadata
        return lambda *_, **__: None

    def keep(self, name: str, binary: bytes, shared: int, device: int) -> tuple[None, None, int, int, int]:
        """In place of loading a binary: (module, function, registers, spills, threads)."""
        del device
        used = _USED.findall(self.add(name, binary, shared, self._source, self._metadata))
        return None, None, max(1, int(used[-1])) if used else 1, 0, 1024

    def add(self, name: str, binary: bytes, shared: int, source: Any, metadata: Any) -> str:
        """Write one binary and the assembler's log of it into the folder, unless the same was kept already; the log."""
        log = self.printed.getvalue()
        self.printed.seek(0)
        self.printed.truncate()
        known = (name, binary, repr(_constants(source)), repr(_types(source)))
        if known in self._known:
            return log
        self._known.append(known)
        if len(self.kept) >= MAX_BINARIES:
            raise TooManyError(f"it compiles more than {MAX_BINARIES} kernels")
        number = len(self.kept)
        (self.folder / f"kernel{number}.cubin").write_bytes(binary)
        (self.folder / f"kernel{number}.log").write_text(log, "utf-8", "replace")
        self.kept.append(
            {
                "name": str(name)[:_TEXT],
                "shared": int(shared),
                "num_warps": int(getattr(metadata, "num_warps", 0) or 0),
                "num_stages": int(getattr(metadata, "num_stages", 0) or 0),
                "signature": _types(source),
                "constants": _constants(source),
            }
        )
        return log

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Everything inside finds the stand-in where it asks for Triton's driver, and the target where it asks PyTorch
        which GPU there is."""
        from triton import knobs
        from triton.runtime import driver

        driver.set_active(self.driver())
        knobs.nvidia.dump_ptxas_log = True
        major, minor = divmod(self.target.arch, 10)
        told = torch.cuda.get_device_properties(0)
        told.name, told.major, told.minor = f"sm_{self.target.arch} (nothing is launched)", major, minor
        told.multi_processor_count = self.multiprocessors
        stand_ins: dict[str, Any] = {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "get_device_capability": lambda *_: (major, minor),
            "get_device_name": lambda *_: told.name,
            "current_stream": lambda *_: types.SimpleNamespace(cuda_stream=0, synchronize=lambda: None),
        }
        for attribute, answer in stand_ins.items():
            setattr(torch.cuda, attribute, answer)  # for the rest of this process's life
        with contextlib.redirect_stdout(self.printed):
            yield


def _types(source: Any) -> dict[str, str]:
    signature = getattr(source, "signature", None) or {}
    return {str(name)[:_TEXT]: str(kind)[:_TEXT] for name, kind in list(signature.items())[:64]}


def _constants(source: Any) -> dict[str, str]:
    """Values of the parameters that the compiler knew, by name."""
    names = getattr(getattr(source, "fn", None), "arg_names", [])
    found = {}
    for path, value in list((getattr(source, "constants", None) or {}).items())[:64]:
        first = path[0] if isinstance(path, tuple) and path else path
        name = names[first] if isinstance(first, int) and first < len(names) else str(path)
        found[str(name)[:_TEXT]] = str(getattr(value, "__name__", value))[:_TEXT]
    return found
