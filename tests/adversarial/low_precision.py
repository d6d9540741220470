"""Writes out the files of precision.toml: a problem's reference and kernel at a variant's precision."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

HERE = Path(__file__).resolve().parent
PROBLEMS = HERE / "precision"
_IMPORT = re.compile(r"^from tests\.adversarial\.precision\.rounding import keep\n+", re.MULTILINE)
_NO_ARGUMENTS = "\n\ndef get_init_inputs() -> list[object]:\n    return []\n"


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Variant(_Row):
    """A precision at which every problem is tried."""

    id: str
    dtype: Literal["float32", "float16", "bfloat16"]
    """Of the problem's inputs and outputs."""
    bits: Literal[0, 7, 10]
    """Bits of mantissa that the kernel keeps of its inputs; 0: all."""
    verdict: Literal["accepted", "incorrect"]
    """What the evaluator must say."""
    why: str


class Problem(_Row):
    """One operation."""

    id: str
    """Also the name of its file."""
    dot: bool = False
    """Whether it uses `tl.dot`, which has a real TF32 on a GPU."""

    @property
    def path(self) -> Path:
        """The file with reference and kernel."""
        return PROBLEMS / f"{self.id}.py"


class PrecisionSet(_Row):
    """All problems at all variants."""

    variant: tuple[Variant, ...]
    problem: tuple[Problem, ...]


def load() -> PrecisionSet:
    """Read precision.toml."""
    with (HERE / "precision.toml").open("rb") as file:
        return PrecisionSet.model_validate(tomllib.load(file))


def write(problem: Problem, variant: Variant, device: Literal["cpu", "gpu"], folder: Path) -> tuple[Path, Path]:
    """(candidate, reference) in this folder.

    Both files are the problem's, with other constants: one is asked for its kernel, the other for its `Model`.
    """
    bits, precision = variant.bits, "ieee"
    if device == "gpu" and problem.dot and bits == 10:
        bits, precision = 0, "tf32"
    shared = (PROBLEMS / "rounding.py").read_text("utf-8")
    keep = shared[shared.index("@triton.jit") :]
    text, found = _IMPORT.subn("", problem.path.read_text("utf-8"))
    assert found == 1, f"{problem.path.name} does not import keep on a line of its own"
    body, kernel = text.split("\n@triton.jit\n", 1)
    text = f"{body}\n{keep}\n\n@triton.jit\n{kernel}{_NO_ARGUMENTS}"
    reference = _with(text, "DTYPE", f"torch.{variant.dtype}")
    candidate = _with(reference, "BITS", str(bits))
    if problem.dot:
        candidate = _with(candidate, "PRECISION", f'"{precision}"')
    paths = (folder / "candidate.py", folder / "reference.py")
    for path, written in zip(paths, (candidate, reference), strict=True):
        path.write_text(written, "utf-8")
    return paths


def _with(text: str, name: str, value: str) -> str:
    replaced, found = re.subn(rf"^{name} = .*$", f"{name} = {value}", text, flags=re.MULTILINE)
    assert found == 1, f"{name} is not set once"
    return replaced
