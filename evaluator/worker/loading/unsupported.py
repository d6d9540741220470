"""Whose fault it is that something was raised on a machine without a GPU: the candidate's or the interpreter's.

Decided by where it was raised. Whatever stays in doubt is the candidate's.
"""

from __future__ import annotations

import importlib.util
import traceback
import types
from pathlib import Path

import numpy as np
import torch

_OURS = str(Path(__file__).parent) + "/"
_NUMPY = str(Path(np.__file__).parent) + "/"
_TORCH = str(Path(torch.__file__).parent) + "/"
_NUMBERS = (int, float, bool)
_TEXT = 300


def _triton() -> str:
    """The folder of Triton; nothing lies in the answer where it is not installed."""
    found = importlib.util.find_spec("triton")
    return str(Path(found.origin).parent) + "/" if found is not None and found.origin else "\0"


_TRITON = _triton()
_INTERPRETER, _LANGUAGE = f"{_TRITON}runtime/interpreter.py", f"{_TRITON}language/core.py"


def unsupported(error: BaseException) -> str:
    """Why the interpreter could not run it; empty where the fault is the candidate's."""
    in_kernel = False
    seen: set[int] = set()
    while error.__cause__ is not None and id(error) not in seen:
        seen.add(id(error))
        in_kernel = in_kernel or _is_the_interpreters(error)
        error = error.__cause__
    in_kernel = in_kernel or _is_the_interpreters(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not _limit(error, frames, in_kernel=in_kernel):
        return ""
    return f"Triton's interpreter cannot run it: {type(error).__name__}: {str(error)[:_TEXT]}"


def _is_the_interpreters(error: BaseException) -> bool:
    """Whether this is how the interpreter passes on what a kernel raised."""
    return type(error).__name__ == "InterpreterError" and type(error).__module__.startswith("triton.")


def _limit(error: BaseException, frames: list[types.FrameType], *, in_kernel: bool) -> bool:
    where = [frame.f_code.co_filename for frame in frames]
    innermost = where[-1] if where else ""
    if isinstance(error, AttributeError) and _lacks(error, in_kernel=in_kernel):
        return True
    if isinstance(error, NotImplementedError):
        return innermost.startswith((_TRITON, _OURS))
    if isinstance(error, (RuntimeError, AssertionError)) and innermost.startswith(_TORCH):
        dummy = innermost == f"{_TORCH}_utils.py" and "dummy base class" in str(error)
        return dummy or (innermost.startswith(f"{_TORCH}cuda/") and frames[-1].f_code.co_name == "_lazy_init")
    if isinstance(error, ValueError) and in_kernel and innermost == _LANGUAGE:
        return "`_semantic` argument must be provided" in str(error)
    if isinstance(error, (TypeError, ValueError, KeyError)) and in_kernel:
        return _in_an_operation(frames, where)
    return False


def _lacks(error: AttributeError, *, in_kernel: bool) -> bool:
    """A method or field that the interpreter or a stand-in does not have, or that a number has in the compiler."""
    owner = error.obj
    home = owner.__name__ if isinstance(owner, types.ModuleType) else type(owner).__module__
    if home == "triton.runtime.interpreter" or home.startswith("evaluator.worker.loading"):
        return True
    if not in_kernel or error.name is None:
        return False
    if error.name == "value":  # of a constexpr, which the interpreter has as it was given
        return type(owner) in (*_NUMBERS, str)
    from triton import language

    return type(owner) in _NUMBERS and hasattr(language.tensor, error.name)


def _in_an_operation(frames: list[types.FrameType], where: list[str]) -> bool:
    """Whether an operation of the interpreter's, or NumPy called by one, raised it.

    Triton has checked types and shapes before, in frames of `triton.language`; operations that pass judgement on the
    kernel raise `AssertionError` and `IndexError`, which are the candidate's.
    """
    for frame, file in zip(reversed(frames), reversed(where), strict=True):
        if file == _INTERPRETER or file.startswith(_OURS):
            owner = frame.f_locals.get("self")
            if type(owner).__module__ == "triton.runtime.interpreter":
                return type(owner).__name__ in _OPERATIONS and frame.f_code.co_name not in _JUDGEMENTS
            continue  # a function that an operation called
        if not file.startswith((_NUMPY, _TORCH)):
            return False
    return False


_OPERATIONS = ("InterpreterBuilder", "ReduceOps", "ScanOps", "BlockPointerHandle", "TensorDescHandle")
_JUDGEMENTS = ("create_assert", "create_assume", "check_axis", "check_tensor", "validate")
