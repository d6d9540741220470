"""Kernels whose bottleneck was written down before they were profiled: the table expected.toml, and the reports that
came of it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluator.source.cuda_signature import evaluate_size

HERE = Path(__file__).resolve().parent
KERNELS = HERE / "kernels"
REPORTS = HERE / "reports"
"""What benchmarks/evaluator/profiles.py wrote: the raw pages `ID.basic.csv` and `ID.full.csv`, and `profiles.jsonl`."""

Class = Literal["memory-bound", "compute-bound", "latency-bound", "occupancy-bound", "launch-bound", "mixed"]
Rate = Literal["bytes", "fp32", "bf16", "special"]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Expected(_Row):
    """One kernel, and what its diagnosis must be."""

    id: str
    file: str
    """In kernels/."""
    reference: str
    """In kernels/."""
    kernel: str
    """Name of the launch that is profiled."""
    dims: dict[str, int]
    """Of the profile."""
    small: dict[str, int] = Field(default_factory=dict)
    """Of a trial in Triton's interpreter; empty for CUDA."""
    vary: str = ""
    """The dim that may have any size, where the kernel reads others in whole blocks alone."""
    compiled: dict[str, int] = Field(default_factory=dict)
    """With which Triton compiles the same code as with `dims`; empty for CUDA."""
    bytes: str
    """Compulsory bytes, as an expression of the dims."""
    operations: str = ""
    """Operations of `pipe`, likewise; empty where bytes decide."""
    pipe: Rate = "bytes"
    floor_us: float
    """Time of the slower of both at the cited peak, in microseconds."""
    bottleneck: Class = Field(alias="class")
    resource: str
    """Id of the metric in profile_metrics.toml that names what binds."""
    first_symptom: str
    also: tuple[str, ...] = ()
    """Symptoms that must be there too."""
    never: tuple[str, ...] = ()
    """Symptoms that would be false."""
    has: tuple[str, ...]
    """Families of opcodes that its machine code for sm_90 has."""
    lacks: tuple[str, ...] = ()
    """And has not."""
    why: str
    counts: bool
    """Whether the bar counts it; false where the outcome was open from the start."""
    risk: str
    """What else may be seen."""

    @property
    def candidate_path(self) -> Path:
        """The kernel's file."""
        return KERNELS / self.file

    @property
    def reference_path(self) -> Path:
        """The reference's file."""
        return KERNELS / self.reference

    @property
    def triton(self) -> bool:
        """Whether it is a Triton kernel, and no CUDA one."""
        return self.file.endswith(".py")

    @property
    def hash(self) -> str:
        """Of kernel, reference and dims: a report is of this version or of none."""
        texts = [self.candidate_path.read_text("utf-8"), self.reference_path.read_text("utf-8"), json.dumps(self.dims)]
        return hashlib.sha256("\0".join(texts).encode()).hexdigest()

    def floor(self, rates: dict[Rate, float]) -> float:
        """`floor_us`, computed."""
        seconds = evaluate_size(self.bytes, self.dims) / rates["bytes"]
        if self.operations:
            seconds = max(seconds, evaluate_size(self.operations, self.dims) / rates[self.pipe])
        return seconds * 1e6


class Corpus(_Row):
    """The whole table."""

    rates: dict[Rate, float]
    """Peaks, per second."""
    profile: tuple[Expected, ...]


def load() -> Corpus:
    """Read expected.toml."""
    with (HERE / "expected.toml").open("rb") as file:
        return Corpus.model_validate(tomllib.load(file))
