"""Languages of kernels besides Triton, CUDA C++ and plain PyTorch, told by what a file imports. Nothing is executed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from evaluator.source.python_source import imported, parse
from evaluator.source.source_file import SourceFile, is_cuda
from kbs.common.errors import ConfigurationError, UsageError

_HIP_HEADER = re.compile(r'^\s*#\s*include\s*[<"]hip/', re.MULTILINE)
_SECONDS = 20


@dataclass(frozen=True)
class Language:
    """A language of kernels."""

    name: str
    module: str
    """The Python module that a file of it imports; empty for HIP."""
    install: str
    """What it needs to run, in a sentence."""


HIP = Language(
    "HIP C++",
    "",
    "kopt compiles no HIP. On an NVIDIA GPU it would need hipcc with HIP_PLATFORM=nvidia, which calls nvcc: write the"
    " kernel as a .cu file instead, with cuda… in place of hip… calls. On an AMD GPU kopt runs nothing.",
)
LANGUAGES = (
    Language("TileLang", "tilelang", "Install it for the interpreter that runs kernels: pip install tilelang."),
    Language(
        "CuTe DSL", "cutlass", "Install it for the interpreter that runs kernels: pip install nvidia-cutlass-dsl."
    ),
    Language(
        "FlyDSL",
        "flydsl",
        "Install it for the interpreter that runs kernels: pip install flydsl. It compiles for AMD GPUs, with ROCm.",
    ),
)


def language_of(source: SourceFile) -> Language | None:
    """The language of a kernel's file; None for Triton, CUDA C++, plain Python, and what cannot be read."""
    if Path(source.name).suffix.lower() == ".hip" or (is_cuda(source) and _HIP_HEADER.search(source.text)):
        return HIP
    if is_cuda(source):
        return None
    try:
        modules = {name.partition(".")[0] for name in imported(parse(source.name, source.text))}
    except UsageError:
        return None
    return next((one for one in LANGUAGES if one.module in modules), None)


def language_words(source: SourceFile, backend: str) -> str:
    """`triton`, or `TileLang, backend torch`."""
    known = language_of(source)
    return backend if known is None else f"{known.name}, backend {backend}"


def check_language(source: SourceFile, python: str = sys.executable) -> None:
    """Raise `ConfigurationError` (`language_missing`) if what a kernel's language needs is not there.

    `python`: the interpreter that runs kernels.
    """
    language = language_of(source)
    if language is None or (language is not HIP and _has(language.module, python)):
        return
    missing = f", and {python} has no module {language.module}" if language.module else ""
    raise ConfigurationError(
        f"{source.name} is written in {language.name}{missing}", code="language_missing", hint=language.install
    )


def _has(module: str, python: str) -> bool:
    """Whether an interpreter has a module. It is looked for and not imported."""
    if python == sys.executable:
        return importlib.util.find_spec(module) is not None
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", asked], timeout=_SECONDS, capture_output=True).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return True  # what is wrong with the interpreter shows when it is started
