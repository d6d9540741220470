"""What a run is asked for: the options of the command, and the environment that was found for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from evaluator.receipt.plan import BaselineChoice
from evaluator.source.source_file import is_cuda, read_source
from kbs.common.canonical_json import Sha256
from loop.journal.folder import KERNELS
from loop.journal.language_model import ModelChoice
from loop.journal.record import (
    BRANCHES,
    BenchmarkWords,
    BuildWords,
    Discipline,
    Grade,
    PinnedWiki,
    ProblemWords,
    Proposer,
)
from loop.workspace.inventory import Inventory

ITERATIONS = 3
ATTEMPTS = 3
MINIMUM_EFFECT = 0.01
"""A smaller gain is not kept: the evaluator calls it `same`."""
LEAST_CONFIDENCE = "source-reported"
BASELINES = (BaselineChoice(name="eager", how="eager"), BaselineChoice(name="compile", how="compile"))


DISCIPLINES: dict[Discipline, str] = {
    "single": "one method an iteration",
    "budget": "up to three methods an iteration, shared by where the time goes; each is measured by leaving it out",
}


class Wanted(ProblemWords):
    """The options of the command. None or empty means not given: a directive of HINTS.md or the default applies."""

    out: str | None = None
    """Folder of the run."""
    in_place: bool = False
    iterations: int | None = Field(default=None, ge=1, le=1000)
    attempts: int | None = Field(default=None, ge=1, le=10)
    branches: int = Field(default=BRANCHES, ge=1, le=16)
    seconds: float | None = Field(default=None, gt=0)
    """Limit of the whole run."""
    target: str = ""
    proposer: Proposer
    discipline: Discipline = "single"
    command: tuple[str, ...] = ()
    model: ModelChoice | None = None
    """For the proposer `llm`."""
    minimum_effect: float = Field(default=MINIMUM_EFFECT, ge=0, lt=1)
    accept_unmeasured: bool = False
    partial_restart: bool = False
    least_confidence: str = LEAST_CONFIDENCE
    forbid: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    precision: str = ""
    registers: int | None = None
    shared_memory: str = ""
    """With a unit: `48 KiB`."""
    no_ncu: bool = False
    knowledge: tuple[Path, ...] = ()
    """Folders of notes that this run searches."""
    build: BuildWords = BuildWords()
    benchmark: BenchmarkWords | None = None
    dims: dict[str, int] = Field(default_factory=dict)
    baselines: tuple[BaselineChoice, ...] = BASELINES
    restarts: int = Field(default=5, ge=2, le=50)
    timing_seconds: float = Field(default=10.0, gt=0)
    call_seconds: float = Field(default=60.0, gt=0)
    load_seconds: float = Field(default=300.0, gt=0)


@dataclass(frozen=True)
class RunEnvironment:
    """The device, GPU, wikis and problem that `kopt.services.runs.planning.environment` found."""

    device: str
    """`cpu` or `cuda:N`."""
    device_name: str
    gpu: str
    """Product id; empty where none was named and none is present, or no page is about the one that is."""
    gpu_from: str
    """`--gpu h200`, `the GPU that is present`, or why there is none."""
    grade: Grade
    grade_why: str
    wikis: dict[str, PinnedWiki]
    knowledge: tuple[str, ...]
    """Those of the wikis that are notes of this run alone."""
    methods: tuple[str, ...]
    """Ids of the registry."""
    problem_hash: Sha256
    outputs: tuple[str, ...]
    """Names of what the kernel writes, as the evaluator found them; empty where it returns its results."""
    kopt: str
    library_hash: Sha256 | None = None
    """Of the problem as receipts of version 0 have it, where that is the library itself."""


def kept_names(inventory: Inventory) -> dict[str, str]:
    """kernel, reference, inputs → name in the run's folder (for the kernel, in v0/)."""
    names = {
        "kernel": KERNELS["cuda" if is_cuda(inventory.kernel_source) else "python"],
        "reference": "ref.cu" if is_cuda(read_source(inventory.reference, "file")) else "ref.py",
    }
    if inventory.inputs is not None:
        names["inputs"] = f"inputs{inventory.inputs.suffix.lower()}"
    return names


def problem_words(wanted: Wanted, outputs: tuple[str, ...]) -> ProblemWords:
    """The problem that each evaluation has. `outputs` are the names that the evaluator found."""
    asked = {name: getattr(wanted, name) for name in ProblemWords.model_fields}
    return ProblemWords(**{**asked, "outputs": outputs})
