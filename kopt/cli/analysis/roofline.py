"""`kopt roofline`: what a problem needs, what a GPU can do, and how fast a kernel for it could be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbs.common.visible_text import visible
from kopt.cli.analysis.options import ProblemOptions
from kopt.cli.command import command
from kopt.cli.options import CallSecondsOption
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import gpus

if TYPE_CHECKING:
    pass


@command("roofline", reads_wikis=True)
def roofline(
    gpu: Annotated[
        str,
        typer.Option("--gpu", autocompletion=gpus, help="A GPU of the wiki, such as h200-sxm; auto: the GPU present."),
    ],
    problem: ProblemOptions,
    profile: Annotated[
        Path | None, typer.Option("--profile", help="A measured time of the kernel: a receipt or an ncu report.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a .png or .svg plot; needs matplotlib.")] = None,
    python: Annotated[Path | None, typer.Option("--python", help="Interpreter with the reference's packages.")] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", help="Environment variable to pass to the reference. Repeatable.")
    ] = None,
    timeout: CallSecondsOption = 60.0,
    memory: Annotated[
        float | None,
        typer.Option("--memory", help="GB of host memory for the reference (default: half of it).", min=0.5),
    ] = None,
) -> Reply:
    """Count what a problem must move and compute, and compare it with a GPU's peaks: bound, floor time, target.

    Bytes are the distinct parts of inputs and weights that the results depend on, and the results. Operations are
    PyTorch's FLOP count for matrix products, and one per element for additions, multiplications, comparisons and the
    like. The reference runs in the sandbox, on tensors without memory where possible; no GPU is needed. A reference may
    declare `operations` and `min_bytes` at its top level.

    A peak that no page states is UNKNOWN, and nothing is computed from it. Exit code 3 if the floor time is unknown.
    """
    from kbs.common.errors import ExitCode, UsageError
    from kopt.services.plots.picture import check_plot
    from kopt.services.plots.roofline import MARK, save
    from kopt.services.results.rooflines import RooflineData
    from kopt.services.results.telling.roofline import roofline_lines
    from kopt.services.roofline import problem_roofline

    if plot is not None:
        check_plot(plot, MARK)
    first = problem.kernel or problem.ref
    if first is None:
        raise UsageError("no problem is given", code="no_kernel", hint="Give --kernel FILE, --ref FILE or both.")
    files = replace(problem.files(), python=python, environment=tuple(env or ()), call_seconds=timeout, memory=memory)
    with engine() as eng:
        found, request, recognised = problem_roofline(eng, gpu, files, peak=problem.peak, profile=profile)
        drawn = plot if found.placed.floor is not None and found.placed.intensity else None
        if drawn is not None:
            save(drawn, found, f"{first.name} on {found.gpu}")
        elif plot is not None:
            found.notes.append("nothing is drawn: a roofline needs operations, and rates that are known")
        data = RooflineData.of(found, first.name, recognised.form.value, request.dims, str(drawn or ""))
    code = ExitCode.OK if found.placed.floor is not None else ExitCode.ABSTAINED
    return Reply(
        data, print_lines(map(visible, roofline_lines(found, first.name, data.dims, drawn))), code, eng.warnings
    )
