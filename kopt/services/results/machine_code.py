"""Data of `kopt occupancy` and `kopt sass`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import AliasPath, Field

from evaluator.sass.diff import Difference
from evaluator.sass.sass import Function, MethodVerdict, Resources
from kbs.common.json_model import JsonModel
from kbs.hardware.occupancy import Need, ResourceLimit
from kopt.services.machine_code.occupancy import OccupancyResult, RefusedKernel, capability

if TYPE_CHECKING:
    from kbs.evidence.spec import Spec
    from kbs.evidence.vocabulary import Vocabulary
    from kbs.hardware.occupancy import Occupancy


class KernelOccupancyData(JsonModel):
    """One kernel on one SM: what it takes and what fits, in one place."""

    kernel: str = ""
    """Its name in the compiled file; empty where the numbers were given."""
    threads: int = Field(validation_alias=AliasPath("usage", "threads"))
    """Of a block."""
    registers: int = Field(validation_alias=AliasPath("usage", "registers"))
    """Of a thread."""
    static_shared_memory: int | None = None
    """Bytes that the code declares; None where the numbers were given."""
    shared_memory: int = Field(validation_alias=AliasPath("usage", "shared_memory"))
    """Bytes of a block, static and dynamic, without the reserved part."""
    barriers: int = Field(validation_alias=AliasPath("usage", "barriers"))
    launchable: bool
    blocks: int
    """Of an SM; 0 where the kernel cannot be launched."""
    warps: int
    """Of an SM."""
    warps_per_block: int
    max_warps: int
    occupancy: float = Field(validation_alias="fraction")
    """Resident warps as a part of the most that an SM can hold."""
    limiters: list[str]
    resources: list[ResourceLimit] = Field(validation_alias="limits")
    one_more_block: list[Need] = Field(validation_alias="needs")
    """All of them must be met."""
    allocated_registers: int = Field(validation_alias="registers_per_block")
    """Of a block."""
    allocated_shared_memory: int = Field(validation_alias="shared_memory_per_block")
    """Bytes of a block, with the reserved part."""
    carveout_bytes: int = Field(validation_alias="configuration")
    """Smallest configuration of shared memory that holds the blocks; with --carveout, the preferred one."""
    l1_bytes: int = Field(validation_alias="l1")
    """What this configuration leaves to the L1 cache."""
    notes: tuple[str, ...] = ()
    """What was assumed."""

    @classmethod
    def of(cls, name: str, static: int | None, found: Occupancy, notes: list[str]) -> KernelOccupancyData:
        """From what fits, with the kernel's name and notes on it."""
        more = {"kernel": name, "static_shared_memory": static, "notes": tuple(notes)}
        return cls.from_domain(found).model_copy(update=more)


class LimitData(JsonModel):
    """One limit of the hardware."""

    metric: str
    value: str
    """As the page states it."""
    unit: str
    citation_line: str
    confidence: str
    source: str
    """The document and the place in it."""

    @classmethod
    def of(cls, spec: Spec, vocabulary: Vocabulary) -> LimitData:
        """From a row of a page."""
        return cls(
            metric=spec.metric,
            value=spec.value,
            unit=spec.unit,
            citation_line=spec.citation_line(vocabulary),
            confidence=spec.confidence,
            source=f"{spec.source.title}, {spec.source.place}",
        )


class OccupancyData(JsonModel):
    """`kopt occupancy`"""

    gpu: str
    """As it was named; the target of the compiled file where none was."""
    compute_capability: str | None
    """None where the wiki does not say it."""
    how: str
    """How the kernels of a file were compiled; empty where nothing was."""
    kernels: list[KernelOccupancyData]
    refused: list[RefusedKernel]
    """Further kernels of the file, which cannot be launched."""
    limits: list[LimitData]
    """Every limit that the results rest on, with the line that states it."""
    gaps: list[str]
    """What the wiki does not say; nothing is computed then."""
    notes: list[str]
    """What a reader should know of how the kernels were compiled."""

    @classmethod
    def of(cls, gpu: str, found: OccupancyResult, terms: Vocabulary) -> OccupancyData:
        """`gpu`: as it was named."""
        return cls(
            gpu=gpu or (found.target.name if found.target else ""),
            compute_capability=capability(found.target) if found.target else None,
            how=found.compiled.how if found.compiled else "",
            kernels=[
                KernelOccupancyData.of(one.kernel.name, one.kernel.static, one.occupancy, one.notes)
                for one in found.kernels
            ],
            refused=found.refused,
            limits=[LimitData.of(spec, terms) for spec in found.specs],
            gaps=found.gaps,
            notes=list(found.compiled.notes) if found.compiled else [],
        )


class FunctionData(JsonModel):
    """One function of the candidate's machine code."""

    name: str
    """As it stands in the binary."""
    short_name: str
    """Without the types of its parameters."""
    version: str
    """Constants and options that tell it from other compilations of the same kernel; empty for CUDA."""
    kernel: bool
    """Whether it can be launched; other functions are called by kernels."""
    instructions: int
    """Instructions in its text, padding too."""
    opcodes: dict[str, int]
    """Opcode → how often it stands in the text, most frequent first."""
    resources: Resources
    """Registers, local and shared memory, spills."""
    code: str
    """SHA-256 of its instructions in their order."""
    methods: list[MethodVerdict]
    """What the code shows of each method that was asked about."""

    @classmethod
    def of(cls, function: Function, methods: list[MethodVerdict]) -> FunctionData:
        """Of a function and the verdicts on it."""
        fields = {name: getattr(function, name) for name in Function.model_fields}
        return cls(**fields, short_name=function.short_name, methods=methods)


class SassData(JsonModel):
    """Machine code of a candidate for one target."""

    candidate: str
    """Name of the file."""
    candidate_hash: str
    """SHA-256 of its text."""
    target: str
    """What it was compiled for: sm_90a."""
    how: str
    """How kernels, types and constants were found."""
    compiled: bool
    """Whether the compiler took it."""
    functions: list[FunctionData]
    """Its functions."""
    notes: list[str]
    """What a reader should know of how the code came about."""
    other: str
    """Name of the file that it is compared with; empty without --diff."""
    difference: Difference | None
    """What changed between the two; None without --diff."""
    untrusted: Literal[True] = True
    """The binary was made in a process that executed the candidate; the disassembly was not."""
