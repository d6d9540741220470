"""run.json: what is fixed for a whole run. To change any of it, start a new run."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from evaluator.receipt.document import first_of
from evaluator.receipt.plan import BaselineChoice
from kbs.common import canonical_json as canonical
from kbs.common.canonical_json import FileName, Sha256, UtcTime
from kbs.common.errors import KoptError
from kbs.common.json_model import FrozenModel
from loop.journal.folder import RunFolder
from loop.journal.language_model import ModelChoice

SCHEMA_VERSION: Literal[1] = 1
BRANCHES = 4
"""Candidates of a proposal, if nothing else is asked for."""
Grade = Literal["full", "degraded", "none"]
Proposer = Literal["search", "agent", "command", "llm"]
"""Who proposes versions: kopt itself, whoever submits them, a program of the user's, or a language model."""


Discipline = Literal["single", "budget"]
"""`single`: one method an iteration. `budget`: up to three, shared among the axes by where the time goes, and each also
measured by leaving it out."""


class KeptFile(FrozenModel):
    """A file of the user's, copied into the run's folder."""

    origin: str
    """Where it was, relative to the workspace where it lies in it."""
    name: FileName
    """What it is called in the run's folder."""
    hash: Sha256


class PinnedWiki(FrozenModel):
    """A wiki as it was when the run began. Pages that changed later cannot be cited."""

    root: str
    revision: Sha256
    pages: dict[str, Sha256]
    """Path → SHA-256 of the page's bytes."""


class ProblemWords(FrozenModel):
    """What the evaluator is asked each time, next to the kernel: the fields of a `Request`."""

    dims: dict[str, int]
    workloads: tuple[dict[str, int], ...] = ()
    vary: tuple[str, ...] = ()
    allow_library: bool = False
    backend: str | None = None
    entry: str | None = None
    outputs: tuple[str, ...] = ()
    ptr_sizes: dict[str, str] = Field(default_factory=dict)
    tolerance: tuple[float, float] | None = None
    baselines: tuple[BaselineChoice, ...]
    restarts: int
    timing_seconds: float
    bytes: str = ""
    operations: str = ""
    call_seconds: float
    load_seconds: float


class FirstWords(FrozenModel):
    """Version 0 where the user had a reference alone."""

    how: Literal["reference", "torch.compile", "page"]
    """The reference itself, through torch.compile, or the code of a wiki page."""
    citation: str = ""
    """The lines that the code is from: wiki/path:L3-L9."""
    problem_hash: Sha256 | None = None
    """Of the problem as receipts of version 0 have it, where it is the library itself, and so may call it."""

    @property
    def words(self) -> str:
        """What version 0 is."""
        if self.how == "page":
            return f"the code of {self.citation}"
        through = " through torch.compile" if self.how == "torch.compile" else ""
        return f"the reference itself{through}: a baseline, and no improvement on anything"


class BuildWords(FrozenModel):
    """How kernels are built, and what their processes use; empty: what kopt itself finds."""

    include: tuple[str, ...] = ()
    """Folders of headers for nvcc."""
    nvcc_flags: tuple[str, ...] = ()
    cuda_home: str = ""
    """CUDA toolkit."""
    python: str = ""
    """The interpreter that runs reference and kernels."""
    variables: tuple[str, ...] = ()
    """Environment variables that the kernels get. Their values are in no file: each process takes those it has."""

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """(option, value) of what was given."""
        said = (
            ("--include", ", ".join(self.include)),
            ("--nvcc-flags", " ".join(self.nvcc_flags)),
            ("--cuda-home", self.cuda_home),
            ("--python", self.python),
            ("--env", ", ".join(self.variables)),
        )
        return tuple((option, value) for option, value in said if value)


class BenchmarkWords(FrozenModel):
    """The user's own benchmark: run as it is, for what it prints, which is external evidence."""

    command: tuple[str, ...] = Field(min_length=1)
    """Its words. No shell reads them, and kopt adds none."""
    patterns: dict[str, str] = Field(default_factory=dict)
    """Name → regular expression of a figure in its output; empty: the usual words and JSON."""


class RunRecord(FrozenModel):
    """The whole of run.json."""

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Literal["kopt-run"] = "kopt-run"
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{2,80}$")
    """Kernel, time and four letters: unique, and sorted by time for one kernel."""
    created: UtcTime
    kopt: str
    """Version of kopt, its evaluator and gate."""
    workspace: str
    """The folder that the kernel came from."""
    kernel: KeptFile
    reference: KeptFile
    inputs: KeptFile | None
    problem_hash: Sha256
    """Of the problem as receipts have it."""
    problem: ProblemWords
    first: FirstWords | None = None
    """How version 0 was made; None where it is the user's kernel."""
    build: BuildWords = BuildWords()
    benchmark: BenchmarkWords | None = None
    """None: the user has none of their own."""
    seed_commitment: Sha256
    """Of the 32 bytes that all evaluations' seeds come from; they stay in KOPT_HOME."""
    device: str
    """`cpu` or `cuda:N`."""
    device_name: str
    """Empty on the CPU."""
    gpu: str
    """Id of the product that specs and targets are about; empty where none was named or found."""
    profile: Grade
    """How far profiles go; what it does not have, the gate does not ask for."""
    profile_why: str
    """Why not full; empty where it is."""
    wikis: dict[str, PinnedWiki]
    knowledge: tuple[str, ...] = ()
    """Those of the wikis that are notes which this run alone was given: note/NAME."""
    least_confidence: str
    """Specs that targets rest on have at least this."""
    discipline: Discipline
    proposer: Proposer
    command: tuple[str, ...]
    """Words of the proposer's program; empty for another proposer."""
    model: ModelChoice | None = None
    """Which language model is asked, and within which limits; None for another proposer."""
    iterations: int = Field(ge=1, le=1000)
    """Cap, without what `extend` adds."""
    attempts: int = Field(ge=1, le=10)
    """Attempts that a version has."""
    branches: int | None = Field(default=None, ge=1, le=16)
    """Candidates that a proposal may have; None in a run of before, whose proposals have one."""
    seconds: float | None
    """Limit of the whole run; None: none."""
    target: str
    """`2.0x`, `90%`, or empty."""
    minimum_effect: float = Field(ge=0, lt=1)
    """A version is kept where the lower bound of the ratio to its parent lies above 1 + this."""
    noise_floor: float | None
    """Of version 0's measurement against itself, as a part of 1; None where none was taken."""
    accept_unmeasured: bool
    """Whether correct versions are kept where no time can be taken."""
    partial_restart: bool
    """Whether a stall masks half of the versions that are not the best."""
    reports: Literal[1, 2] = 1
    """Which tables the final report has: 1 in a run of before, whose report is rendered again as it was."""
    in_place: bool
    """Whether it stands in the user's repository, on a branch of its own."""
    branch: str
    """The branch that commits go to."""

    def problem_of(self, kernel: Sha256) -> Sha256:
        """The hash of the problem that a receipt of a kernel must have: version 0 alone may be the library itself."""
        if self.first is None or self.first.problem_hash is None or kernel != self.kernel.hash:
            return self.problem_hash
        return self.first.problem_hash

    @property
    def asked(self) -> str:
        """The model or the program that proposes; where there is neither, the proposer's name."""
        return self.model.id if self.model else " ".join(self.command) or self.proposer

    @model_validator(mode="after")
    def _a_model_is_asked_by_one_proposer(self) -> Self:
        if (self.proposer == "llm") != (self.model is not None):
            raise ValueError("the proposer llm, and no other, asks a model")
        return self


def read_record(folder: RunFolder) -> RunRecord:
    """run.json. Raises `KoptError` (`record_missing`, `record_damaged`)."""
    try:
        data = folder.record.read_bytes()
    except OSError as error:
        raise KoptError(
            f"{folder.root} is not a run: {folder.record.name} cannot be read ({error.strerror or error})",
            code="record_missing",
            hint="Give the folder of a run; `kopt run list` shows them.",
        ) from error
    try:
        return RunRecord.model_validate(canonical.loads(data))
    except (ValueError, ValidationError) as error:
        why = ": ".join(first_of(error)) if isinstance(error, ValidationError) else str(error)
        raise KoptError(
            f"{folder.record} is not as kopt wrote it: {why}",
            code="record_damaged",
            hint="Restore it from the run's git repository. The subject of a run cannot change: start a new one.",
        ) from error
