"""Options of `kopt log`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kopt.cli.options import DimsOption
from kopt.cli.terminal.completion import dtypes, gpus

if TYPE_CHECKING:
    from kbs.experience.filters import Filter

IdArgument = Annotated[str, typer.Argument(help="An id, log/ID, or the beginning of one.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, for later readers.")]
AllOption = Annotated[bool, typer.Option("--all", help="Include masked experiments.")]
BackendOption = Annotated[str, typer.Option("--backend", help="Language: triton, cuda.")]
ChipOption = Annotated[
    str, typer.Option("--chip", "--gpu", autocompletion=gpus, help="GPU: a product, or a family for all its products.")
]
BottleneckOption = Annotated[str, typer.Option("--bottleneck", help="Class before the change, such as memory.")]
DtypeOption = Annotated[str, typer.Option("--dtype", autocompletion=dtypes, help="Element type, such as fp32 or bf16.")]


@dataclass(frozen=True)
class FilterOptions:
    """Which experiments are meant."""

    panel: ClassVar[str] = "Filters"

    op: Annotated[str, typer.Option("--op", help="Operation, by a name of the vocabulary.")] = ""
    kernel: Annotated[str, typer.Option("--kernel", help="Kernel name, as recorded.")] = ""
    backend: BackendOption = ""
    chip: ChipOption = ""
    bottleneck: BottleneckOption = ""
    dtype: DtypeOption = ""
    method: Annotated[str, typer.Option("--method", help="Method that was applied.")] = ""
    outcome: Annotated[
        list[str] | None,
        typer.Option(
            "--outcome",
            help="success, neutral, regression, incorrect, rejected, failed or unmeasured. Repeatable.",
        ),
    ] = None
    provenance: Annotated[str, typer.Option("--provenance", help="measured or reported.")] = ""
    run: Annotated[str, typer.Option("--run", help="Run id.")] = ""
    since: Annotated[str, typer.Option("--since", help="Earliest time, in UTC: 2026, 2026-11, 2026-11-21, ...")] = ""
    until: Annotated[str, typer.Option("--until", help="Latest time, in UTC, inclusive.")] = ""

    shipped: Annotated[
        bool | None, typer.Option("--shipped/--own", help="Only records that ship with kopt, or only your own.")
    ] = None

    def read(self, masked: bool | None = False) -> Filter:
        """The filter. Raises `UsageError`, see `read_filter`."""
        from kopt.services.experience.filters import read_filter

        return read_filter(vars(self), masked)


@dataclass(frozen=True)
class ExperimentOptions:
    """What is recorded of an experiment."""

    kernel: Annotated[str, typer.Option("--kernel", help="Kernel name.")] = ""
    outcome: Annotated[
        str, typer.Option("--outcome", help="success, neutral, regression, incorrect, rejected, failed or unmeasured.")
    ] = ""
    receipt: Annotated[
        Path | None,
        typer.Option("--receipt", help="Receipt of `kopt bench --against`, for the outcome, speedup, GPU and sizes."),
    ] = None
    speedup: Annotated[
        float | None, typer.Option("--speedup", help="Speedup: time before / time after.", min=1e-6, max=1e6)
    ] = None
    op: Annotated[str, typer.Option("--op", help="Operation (default: from the kernel's name).")] = ""
    backend: BackendOption = ""
    chip: Annotated[str, typer.Option("--chip", "--gpu", autocompletion=gpus, help="GPU.")] = ""
    dims: DimsOption = None
    dtype: DtypeOption = ""
    bottleneck: BottleneckOption = ""
    bottleneck_after: Annotated[str, typer.Option("--bottleneck-after", help="Class after the change.")] = ""
    stall: Annotated[str, typer.Option("--stall", help="Largest warp stall before the change.")] = ""
    method: Annotated[list[str] | None, typer.Option("--method", help="Method of the registry. Repeatable.")] = None
    hypothesis: Annotated[str, typer.Option("--hypothesis", help="Why it should help.")] = ""
    observed: Annotated[str, typer.Option("--observed", help="What changed in the measurements.")] = ""
    lesson: Annotated[str, typer.Option("--lesson", help="Lesson for the next run.")] = ""
    evidence: Annotated[
        list[str] | None, typer.Option("--evidence", help="Reference that it is based on. Repeatable.")
    ] = None
    run: Annotated[str, typer.Option("--run", help="Run id.")] = ""
    iteration: Annotated[int | None, typer.Option("--iteration", min=0, help="Iteration within the run.")] = None

    def fields(self) -> dict[str, Any]:
        """The options, by the names that an experiment has for them. Raises `UsageError` (`dims_invalid`)."""
        from kopt.services.arguments import read_dims

        same = ("kernel", "op", "backend", "dtype", "hypothesis", "observed", "lesson", "run", "iteration")
        return {
            **{name: getattr(self, name) for name in same},
            "outcome": self.outcome.strip().lower(),
            "speedup": None if self.speedup is None else {"median": self.speedup},
            "gpu": self.chip,
            "dims": read_dims(self.dims),
            "bottleneck_before": self.bottleneck,
            "bottleneck_after": self.bottleneck_after,
            "dominant_stall": self.stall,
            "methods": tuple(self.method or ()),
            "evidence": tuple(self.evidence or ()),
        }
