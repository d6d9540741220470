"""Tensors whose memory the candidate takes as arrays of another library: NumPy computes where no observer looks.

What NumPy then does with them cannot be seen (`a @ b` calls nothing), so the bytes that are handed over count, and
those that come back.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

_frame = sys._getframe
_numel, _size = torch._C.TensorBase.numel, torch._C.TensorBase.element_size
_exact = torch.Tensor
"""Bound before any candidate."""
_TAKES = ("numpy", "__dlpack__")
"""Methods of tensors through which every other library gets at their memory; `__array__` calls the first."""


class Arrays:
    """Counts the bytes of tensors that code in one folder turns into arrays, and of arrays that it turns into tensors,
    once `install`ed; in all threads."""

    def __init__(self, folder: Path) -> None:
        self._own = str(folder) + os.sep
        triton = sys.modules.get("triton")
        inside = [Path(__file__).parents[2], *([Path(triton.__file__).parent] if triton and triton.__file__ else [])]
        self._interpreters = tuple(str(path) + os.sep for path in inside)
        self._found: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def install(self) -> None:
        """For the rest of this process's life."""
        for name in _TAKES:
            setattr(torch.Tensor, name, self._counting(f"Tensor.{name}", getattr(torch.Tensor, name), before=True))
        torch.from_numpy = self._counting("torch.from_numpy", torch.from_numpy, before=False)

    def _counting(self, name: str, original: Any, *, before: bool) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            tensor = args[0] if before and args else result
            if isinstance(tensor, _exact) and self._is_asked():
                entry = self._found[name]
                entry[0] += 1
                entry[1] += _numel(tensor) * _size(tensor)
            return result

        counted.__name__ = counted.__qualname__ = name.rpartition(".")[2]
        counted.__doc__ = original.__doc__
        return counted

    def _is_asked(self) -> bool:
        """Whether the candidate asked, not Triton's interpreter on its behalf."""
        frame = _frame(2)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(self._own):
                return True
            if file.startswith(self._interpreters):
                return False
            frame = frame.f_back  # type: ignore[assignment]  # None ends it
        return True  # a thread of its own that some library runs

    def start(self) -> None:
        """Count from here on."""
        self._found.clear()

    def table(self) -> list[dict[str, Any]]:
        """What was counted since, as operators are."""
        return [{"name": name, "calls": calls, "bytes": size} for name, (calls, size) in self._found.items()]
