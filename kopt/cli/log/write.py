"""`kopt log add`, `mask` and `unmask`: what a person writes into the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.options import DimsOption
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

IdArgument = Annotated[str, typer.Argument(help="An id, log/ID, or the beginning of one.")]
WhyOption = Annotated[str, typer.Option("--why", help="The reason, for those who read it later.")]


def add(
    optimization: Annotated[str, typer.Argument(help="What was changed, in words.")],
    kernel: Annotated[str, typer.Option("--kernel", help="Name of the kernel.")] = "",
    outcome: Annotated[
        str, typer.Option("--outcome", help="success, neutral, regression, incorrect, rejected or failed.")
    ] = "",
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt", help="Receipt of `kopt bench --against`: outcome, speedup, GPU and sizes come from it."
        ),
    ] = None,
    speedup: Annotated[
        float | None, typer.Option("--speedup", help="Time before over time after.", min=1e-6, max=1e6)
    ] = None,
    op: Annotated[str, typer.Option("--op", help="Operation; without it, what the kernel's name says.")] = "",
    backend: Annotated[str, typer.Option("--backend", help="Language: triton, cuda.")] = "",
    chip: Annotated[str, typer.Option("--chip", "--gpu", help="GPU.")] = "",
    dims: DimsOption = None,
    dtype: Annotated[str, typer.Option("--dtype", help="Element type, such as fp32 or bf16.")] = "",
    bottleneck: Annotated[str, typer.Option("--bottleneck", help="Class before the change, such as memory.")] = "",
    bottleneck_after: Annotated[str, typer.Option("--bottleneck-after", help="Class after it.")] = "",
    stall: Annotated[str, typer.Option("--stall", help="Greatest warp stall before the change.")] = "",
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Method of the registry. May be repeated.")
    ] = None,
    hypothesis: Annotated[str, typer.Option("--hypothesis", help="Why it should help.")] = "",
    observed: Annotated[str, typer.Option("--observed", help="What moved.")] = "",
    lesson: Annotated[str, typer.Option("--lesson", help="What to remember.")] = "",
    evidence: Annotated[
        list[str] | None, typer.Option("--evidence", help="Reference that it rested on. May be repeated.")
    ] = None,
    run: Annotated[str, typer.Option("--run", help="Id of its run.")] = "",
    iteration: Annotated[int | None, typer.Option("--iteration", min=0, help="Number of it within the run.")] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Add an experiment: measured with a receipt, reported without."""

    def work() -> Reply:
        from pydantic import ValidationError

        from kbs.common.errors import UsageError
        from kbs.experience.entry import Entry
        from kbs.experience.files import first_problem
        from kopt.services.arguments import read_dims
        from kopt.services.experience_log import experiment_of, open_log, read_receipt
        from kopt.services.results.experiments import AddData, EntryData
        from kopt.services.settings import load_settings

        loaded = load_settings()
        found = open_log(loaded)
        proof = read_receipt(receipt, loaded.home) if receipt else None
        fields = {
            "kernel": kernel, "optimization": optimization, "outcome": outcome.strip().lower(), "op": op,
            "speedup": None if speedup is None else {"median": speedup}, "backend": backend, "gpu": chip,
            "dims": read_dims(dims), "dtype": dtype, "bottleneck_before": bottleneck,
            "bottleneck_after": bottleneck_after, "dominant_stall": stall, "methods": tuple(method or ()),
            "hypothesis": hypothesis, "observed": observed, "lesson": lesson, "evidence": tuple(evidence or ()),
            "run": run, "iteration": iteration,
        }  # fmt: skip
        try:
            one, notes = experiment_of(proof, fields)
        except ValidationError as error:
            raise UsageError(
                f"this is no experiment: {first_problem(error)}",
                code="experiment_invalid",
                hint="Give at least WORDS, --kernel, and --outcome or --receipt; see `kopt log add --help`.",
            ) from error
        result = found.append([one])
        entry = Entry(one) if result.added else result.there[0][1]

        def show(console: Console) -> None:
            from kopt.cli.log.text import entry_line

            if not result.added:
                console.print("the log has it already:", markup=False)
            console.print(entry_line(entry), markup=False)

        data = AddData(entry=EntryData.from_domain(entry), added=bool(result.added), file=result.file)
        return Reply(data, show, warnings=[*notes, *found.files.notes])

    deliver("log add", json, debug, work)


def mask(id: IdArgument, why: WhyOption, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Leave an experiment out of lists, counts and recommendations. The record stays; `unmask` counts it again."""
    _mask("log mask", id, True, why, json, debug)


def unmask(id: IdArgument, why: WhyOption, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Count a masked experiment again."""
    _mask("log unmask", id, False, why, json, debug)


def _mask(command: str, id: str, masked: bool, why: str, json: bool, debug: bool) -> None:
    def work() -> Reply:
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import EntryData, MaskData

        found = open_log()
        entry, changed = found.mask(id, masked, why)

        def show(console: Console) -> None:
            from kopt.cli.log.text import entry_line

            if not changed:
                console.print(f"it {'is' if masked else 'was not'} masked already:", markup=False)
            console.print(entry_line(entry), markup=False)

        return Reply(
            MaskData(entry=EntryData.from_domain(entry), changed=changed), show, warnings=list(found.files.notes)
        )

    deliver(command, json, debug, work)
