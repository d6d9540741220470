"""`kopt diagnose`: what bounds a kernel, by which thresholds, and what the wiki says to try."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kopt.cli.analysis.options import LaunchOption, ProblemOptions
from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import gpus


@command("diagnose", reads_wikis=True, paged=True)
def diagnose(
    report: Annotated[
        Path,
        typer.Argument(
            metavar="PROFILE|RECEIPT",
            help="A .ncu-rep, its CSV, a folder of `kopt profile`, or a receipt of `kopt bench`.",
        ),
    ],
    problem: ProblemOptions,
    gpu: Annotated[
        str, typer.Option("--gpu", autocompletion=gpus, help="GPU for the headroom (default: the report's).")
    ] = "",
    launch: LaunchOption = "",
) -> Reply:
    """Find what bounds a kernel: class, binding resource, headroom and symptoms, each with its threshold.

    Symptoms are ranked by their estimated share of the launch's time. With a reference (--ref, --dims) or --bytes,
    memory traffic beyond what the problem needs is judged too. Similar outcomes from the experience log are listed.

    kopt diagnose report.csv · kopt diagnose report.ncu-rep --ref ref.py --dims M=4096,N=8192 --launch softmax_kernel
    """
    from kbs.common.errors import ExitCode
    from kbs.common.visible_text import visible
    from kopt.services.results.profiles import DiagnoseData
    from kopt.services.results.telling.diagnosis import lines
    from kopt.services.user_kernel.diagnosis import diagnose_report

    with engine() as eng:
        made = diagnose_report(eng, report, problem.files(), launch=launch, gpu=gpu, peak=problem.peak)
    told = (made.measured.report.name, made.measured.chosen, made.found, made.past)
    data = DiagnoseData.of(*told)
    code = ExitCode.ABSTAINED if data.bottleneck == "unknown" else ExitCode.OK
    return Reply(data, print_lines(map(visible, lines(*told))), code, eng.warnings)
