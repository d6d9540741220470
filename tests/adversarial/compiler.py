"""Compiles CUDA for Hopper alone, as the evaluator does on such a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path


def compile_for_hopper(source: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """What nvcc says of a `.cu` file; the library lies in `folder`."""
    target = ("-gencode=arch=compute_90a,code=sm_90a", "--shared", "-Xcompiler", "-fPIC")
    words = ["nvcc", *target, "-o", str(folder / "solve.so"), str(source)]
    return subprocess.run(words, capture_output=True, text=True, check=False)
