"""`kopt diagnose`: what bounds a kernel, by which thresholds, and what the wiki says to try."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kopt.cli.analysis.profile import LaunchOption
from kopt.cli.options import DimsOption, NeededBytesOption, NeededOperationsOption, PeakOption
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from evaluator.profiling.profile import Chosen
    from kopt.services.diagnosis import Task
    from kopt.services.engine import Engine
    from kopt.services.user_kernel.files import Measured


def diagnose(
    report: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE|RECEIPT",
            help="A .ncu-rep, its CSV, a folder of `kopt profile`, or a receipt of `kopt bench`.",
        ),
    ],
    gpu: Annotated[
        str, typer.Option("--gpu", help="The GPU of the headroom; by default the one that the report names.")
    ] = "",
    launch: LaunchOption = "",
    kernel: Annotated[
        Path | None,
        typer.Option("--kernel", help="The kernel: the report must be of it, and its reference may need it."),
    ] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="The reference, whose bytes and operations are counted.")
    ] = None,
    dims: DimsOption = None,
    bytes: NeededBytesOption = "",
    operations: NeededOperationsOption = "",
    peak: PeakOption = "",
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say what bounds a kernel: class, binding resource, headroom, symptoms with the wiki lines of their thresholds.

    With the reference (--ref, --dims), or with --bytes, it also judges bytes that need not move. Symptoms are ranked by
    what they cost of the launch's time, estimated from its counters. Where the experience log has records of similar
    circumstances, the most similar ones are shown.

    kopt diagnose report.csv · kopt diagnose report.ncu-rep --ref ref.py --dims M=4096,N=8192 --launch softmax_kernel
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode, UsageError
        from kopt.cli.analysis.diagnose_text import show
        from kopt.cli.support import engine
        from kopt.services.arguments import read_dims
        from kopt.services.diagnosis import diagnose_launch
        from kopt.services.experience_evidence import past_of_diagnosis
        from kopt.services.results.profiles import DiagnoseData
        from kopt.services.work_counts import seal_notes

        measured = _chosen(report, launch, kernel, ref, dims)
        if dims and measured.evidence.kind == "profile" and not (kernel or ref or bytes or operations):
            raise UsageError("--dims alone says nothing of the problem", code="no_reference", hint="Give --ref FILE.")
        chosen, sizes = measured.chosen, dims or ",".join(f"{name}={size}" for name, size in measured.dims.items())
        with engine() as eng:
            sources = (kernel, ref) if kernel is not None else (ref, None)
            task = _task(eng, chosen, gpu, sources, sizes, bytes=bytes, operations=operations, peak=peak)
            found = diagnose_launch(eng, chosen.launch, gpu, grade=measured.grade, task=task)
            doubts = [*measured.doubts, *(seal_notes(eng, report) if measured.evidence.kind == "receipt" else ())]
            found = replace(found, notes=(*found.notes, *doubts))
            names = [*(file.stem for file in (ref, kernel) if file), chosen.launch.kernel]
            past, unread = past_of_diagnosis(eng.settings, found, names, read_dims(sizes))
            data = DiagnoseData.of(measured.evidence.name, chosen, found, past)
            code = ExitCode.ABSTAINED if data.bottleneck == "unknown" else ExitCode.OK
            warnings = [*eng.warnings, *([unread] if unread else [])]
            return Reply(data, lambda console: show(console, data), code, warnings=warnings)

    deliver("diagnose", json, debug, work)


def _task(
    eng: Engine,
    chosen: Chosen,
    gpu: str,
    sources: tuple[Path | None, Path | None],
    dims: str,
    *,
    bytes: str,
    operations: str,
    peak: str,
) -> Task:
    """What the kernel has to do, as the words of the command say it. `sources`: the kernel and its reference, or the
    reference alone. Raises `KoptError`."""
    from kopt.cli.analysis.roofline import rate_metric
    from kopt.services.arguments import read_dims
    from kopt.services.diagnosis import NO_TASK, task_of
    from kopt.services.roofline import declared

    metric = rate_metric(eng, peak) if peak else None
    first, ref = sources
    if first is None:
        sizes = read_dims(dims)
        said = {
            name: declared(text, sizes, "command line", f"--{name}")
            for name, text in (("bytes", bytes), ("operations", operations))
            if text
        }
        return task_of(eng, chosen.launch, gpu, None, said, peak=metric) if said else NO_TASK
    from evaluator.workloads import check_dims
    from kopt.cli.analysis.roofline import request_to_count
    from kopt.services.work_counts import count, declared_work

    words: dict[str, Any] = {"ref": ref, "inputs": None, "entry": None, "outputs": (), "ptr_sizes": {}, "memory": None}
    words["role"] = "reference" if ref is None else "kernel"
    request = request_to_count(
        candidate=first, dims=dims, bytes=bytes, operations=operations, python=None, env=(), call_seconds=60.0, **words
    )
    recognised = request.recognised()
    check_dims(request, recognised)
    known = declared_work(request, recognised)
    work = None if len(known) == 2 else count(eng, request, recognised, known)
    return task_of(eng, chosen.launch, gpu, work, known, peak=metric)


def _chosen(report: Path, launch: str, kernel: Path | None, ref: Path | None, dims: str | None) -> Measured:
    """The launch that a profile or receipt is about. Raises `KoptError`, also where it is of another kernel, reference
    or size than those given."""
    from evaluator.source.source_file import read_source
    from kopt.services.arguments import read_dims
    from kopt.services.user_kernel.files import KernelFile, choose

    own = KernelFile.of(read_source(kernel, "kernel")) if kernel else None
    return choose(report, launch, own, read_source(ref, "reference") if ref else None, read_dims(dims))
