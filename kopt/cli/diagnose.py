"""`kopt diagnose`: what bounds a kernel, by which thresholds, and what the wiki says to try."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.cli.profile import LaunchOption

if TYPE_CHECKING:
    from evaluator.profile import Chosen


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
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Say what bounds a kernel: class, binding resource, headroom, symptoms with the wiki lines of their thresholds.

    kopt diagnose report.csv · kopt diagnose report.ncu-rep --gpu h200 --launch softmax_kernel
    """

    def work() -> Reply:
        from kbs.errors import ExitCode
        from kopt.cli.diagnose_words import show
        from kopt.cli.profile_schemas import DiagnoseData
        from kopt.cli.support import engine
        from kopt.diagnosis import diagnose_launch

        chosen, name, grade = read(report, launch)
        with engine() as eng:
            found = diagnose_launch(eng, chosen.launch, gpu, grade=grade)
            data = DiagnoseData.of(name, chosen, found)
            code = ExitCode.ABSTAINED if data.bottleneck == "unknown" else ExitCode.OK
            return Reply(data, lambda console: show(console, data), code, warnings=list(eng.warnings))

    deliver("diagnose", json, debug, work)


def read(path: Path, launch: str) -> tuple[Chosen, str, str]:
    """The launch that a profile or receipt is about, the file's name, and the grade. Raises `KoptError`."""
    from evaluator.ncu_report_file import report_csv
    from evaluator.profile import Chosen, read_profile
    from kbs.errors import UsageError

    data, name = report_csv(path)
    if data.lstrip()[:1] != b"{":
        return read_profile(data, name).choose(launch), name, "full"
    from evaluator.external import ExternalReceipt
    from evaluator.kinds import parse
    from evaluator.receipt_profile import launch_of

    receipt = parse(data)
    if isinstance(receipt, ExternalReceipt):
        raise UsageError(
            f"{name} records what a command printed, and has neither counters nor times that kopt took",
            code="external_receipt",
            hint="Profile the kernel with ncu, or check it with `kopt bench`.",
        )
    return Chosen(launch_of(receipt), "the receipt's first workload"), name, "degraded"
