"""What a run needs of the rest of kopt, given to it from outside: measuring, profiling, looking up.

`kopt.services.runs.tools` wires the real ones. What they return is plain: texts, models of the evaluator, citations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from evaluator.external.record import ExternalReceipt
from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.request import Request
from kbs.common.json_model import FrozenModel
from loop.search.variant import Variant


@dataclass(frozen=True)
class TakenProfile:
    """A profile of one version, or why there is none."""

    grade: Literal["full", "degraded", "none"]
    csv: str
    """The raw page, as ncu wrote it; empty where it did not run."""
    report: bytes | None
    """The .ncu-rep."""
    why: str
    """Why the grade is not full."""


class Named(FrozenModel):
    """A symptom as the diagnosis has it."""

    id: str
    name: str
    text: str
    """Metric, value, threshold and the cited line of the threshold, in one line for each metric."""
    techniques: tuple[str, ...]
    """What the wiki says to try, each with its citation."""


class DiagnosisNote(FrozenModel):
    """What a diagnosis says, as it is kept in a version's folder."""

    bottleneck: str
    resource: str
    """What binds, with its figure; empty where that is not known."""
    dominant_stall: str
    headroom: tuple[str, ...]
    """Lines of shown arithmetic."""
    symptoms: tuple[Named, ...]
    text: str
    """All of it in words, as `kopt diagnose` prints it."""


class PastMethod(FrozenModel):
    """What the experience log says of a method in similar circumstances."""

    method: str
    """Id of the registry."""
    advice: Literal["recommended", "known failure"]


class FoundPassage(FrozenModel):
    """A passage that a query found, or a record of the experience log."""

    reference: str
    """wiki/path:Lx-Ly@hash, or log/ID."""
    title: str
    text: str
    score: float
    """How well it fits; of a record the similarity of its circumstances, from 0 to 1, or 0 where words were looked for.
    """
    past: PastMethod | None = None
    """Of a record that the log was asked for by circumstances."""


class Search(FrozenModel):
    """A query and what it found; nothing found is a result."""

    about: Literal["kernel", "bottleneck", "experience", "other"]
    text: str
    hits: tuple[FoundPassage, ...]
    degraded: str
    """Why the search was less than whole: words alone. Empty where it was whole."""
    why: str = ""
    """Why the experience log has nothing to recommend; empty where it has, and for other searches."""


class SpecNote(FrozenModel):
    """A hardware figure that a run works with."""

    metric: str
    line: str
    """`<metric>: <value> <unit> <- <wiki>/<path>:L<line>`, or `<metric>: UNKNOWN (gpu-wiki not found)`."""
    value: str | None
    """As a decimal in the metric's base unit; None where it is unknown."""
    unit: str
    overridden: tuple[str, ...] = ()
    """Citation lines of what earlier wikis state, and this value takes the place of."""


class InstructionNote(FrozenModel):
    """An instruction that the machine code should show."""

    instruction: str
    """Its name in PTX: `wgmma`."""
    opcodes: tuple[str, ...]
    """The machine code that it becomes: any of these families, such as `LDG.128`."""
    method: str
    what: str
    """For which operation, element type and target."""
    line: str
    """`"<the row that states it>" <- <wiki>/<path>:L<line>`."""


class Targets(FrozenModel):
    """Step 0: what the hardware and the problem allow."""

    specs: tuple[SpecNote, ...]
    lines: tuple[str, ...]
    """Operations, bytes, intensity, ridge point, bound, floor, target: shown arithmetic, or `UNKNOWN: why`."""
    bytes: int | None
    operations: int | None
    bound: str
    """`memory`, `compute`, or empty where it is not known."""
    floor_us: float | None
    """The least time that the problem takes on this GPU."""
    target_us: float | None
    """floor / 0.9, from the measured ceiling where there is one."""
    bytes_us: float | None = None
    """Time that the bytes take at the cited bandwidth; None where it is not known, and in a note of before."""
    operations_us: float | None = None
    """Time that the operations take at the cited peaks."""
    gaps: tuple[str, ...]
    """What the wikis do not have."""
    operators: dict[str, int] = Field(default_factory=dict)
    """Operator of PyTorch → the operations that the reference does by it; empty where nothing was counted."""
    instructions: tuple[InstructionNote, ...] | None = None
    """What the machine code should show; None in a note of before."""
    instructions_why: str = ""
    """Why there are none; empty where there are."""


class MachineNote(FrozenModel):
    """What the machine code of a kernel shows."""

    target: str
    """sm_90."""
    functions: dict[str, str]
    """Function → hash of its instructions."""
    methods: dict[str, str] = Field(default_factory=dict)
    """Method → `present n (…)`, `absent`, or `unverifiable: why`: the declared ones, and all that have a signature."""
    opcodes: dict[str, int] | None = None
    """Opcode → how often it stands in the kernels' functions; empty where there are none. None in a note of before."""
    why: str
    """Why there is none; empty where there is."""


class Tools(Protocol):
    """The rest of kopt, as a run sees it. Each may raise `KoptError`."""

    def request(self, kernel_text: str, kernel_name: str, parent: str | None) -> Request:
        """The request to evaluate a kernel of this run; `parent` is the text of the kernel that it must beat."""

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        """A sealed receipt."""

    def ahead(self, asked: Sequence[tuple[Request, SeedSchedule]]) -> None:
        """Several evaluations that are asked for next, one by one: what can be done at once is begun."""

    def benchmark(self, kernel_text: str, kernel_name: str) -> ExternalReceipt | None:
        """A sealed record of what the user's own benchmark printed with this kernel in place of theirs; None where
        the run has none, or this kernel is in another language."""

    def profile(self, request: Request) -> TakenProfile:
        """One call under ncu, or why not."""

    def diagnose(self, csv: str, receipt: Receipt, name: str) -> DiagnosisNote:
        """From the counters where there are any, else from the receipt's time."""

    def targets(self) -> Targets:
        """Step 0."""

    def families(self) -> tuple[tuple[Variant, ...], str]:
        """(families of whole kernels for the run's reference, why there are none)."""

    def search(self, about: str, text: str) -> Search:
        """Ask the knowledge base."""

    def machine_code(self, kernel_text: str, kernel_name: str, methods: tuple[str, ...]) -> MachineNote:
        """Compile for the run's GPU and look at the opcodes."""
