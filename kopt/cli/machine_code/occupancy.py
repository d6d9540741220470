"""`kopt occupancy`: how many blocks of a kernel an SM holds, and what limits them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.machine_code.options import CompileOptions
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import gpus

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile


@command("occupancy", reads_wikis=True)
def occupancy(
    compilation: CompileOptions,
    gpu: Annotated[
        str,
        typer.Option(
            "--gpu", autocompletion=gpus, help="A product such as h100-sxm, or a compute capability: sm_90, 9.0."
        ),
    ] = "",
    regs: Annotated[int | None, typer.Option("--regs", help="Registers per thread.")] = None,
    smem: Annotated[
        str,
        typer.Option(
            "--smem",
            metavar="BYTES",
            help="Shared memory per block, such as 49152 or 48KB; with --kernel, what the launch adds.",
        ),
    ] = "",
    threads: Annotated[int | None, typer.Option("--threads", help="Threads per block.")] = None,
    barriers: Annotated[int | None, typer.Option("--barriers", help="Barriers per block (default: 1).")] = None,
    carveout: Annotated[
        int | None, typer.Option("--carveout", help="Preferred shared memory, in percent of the largest configuration.")
    ] = None,
    kernel: Annotated[
        Path | None,
        typer.Option("--kernel", help="A compiled kernel (.cubin), or a .cu or .py file, in place of numbers."),
    ] = None,
    function: Annotated[str, typer.Option("--function", help="With --kernel: part of the function's name.")] = "",
) -> Reply:
    """Compute the blocks and warps that fit on an SM, the limiting resource, and what one more block needs.

    A .cu or .py file is compiled as by `kopt sass`, and each of its kernels is listed. Give what the call of a Triton
    kernel needs (--ref, --dims, --inputs), or its types with --signature. Exit code 4 if the file does not compile.

    kopt occupancy --gpu h100-sxm --regs 72 --smem 48KB --threads 256 · kopt occupancy --kernel softmax.cubin
    """
    from kbs.common.errors import ExitCode, UsageError
    from kopt.services.arguments import read_bytes
    from kopt.services.machine_code import occupancy as service
    from kopt.services.machine_code.compiling import compile_error
    from kopt.services.results.machine_code import OccupancyData
    from kopt.services.results.telling.occupancy import occupancy_lines

    def compile(path: Path, target: Target, multiprocessors: int | None) -> tuple[SourceFile, Machine]:
        (made,) = compilation.compile([path], target, multiprocessors)
        return made

    asked = service.OccupancyQuery(gpu, regs, read_bytes(smem), threads, barriers, carveout, kernel, function)
    asked.check()
    stray = compilation.given()
    if stray and not asked.compiles:
        raise UsageError(
            f"{' and '.join(stray)} {'apply' if len(stray) > 1 else 'applies'} only to a kernel that is compiled",
            code="compiled_alone",
            hint="Give a .cu or .py file with --kernel, or leave them out.",
        )
    with engine() as eng:
        found = service.occupancy(eng, asked, compile)
        data = OccupancyData.of(asked.gpu, found, eng.terms)
    if found.rejected is not None:
        error = compile_error(*found.rejected)
        return Reply(data, print_lines([error["message"]]), ExitCode.REJECTED, eng.warnings, [error])
    if found.gaps:
        return Reply(data, print_lines(found.gaps), ExitCode.ABSTAINED, eng.warnings)
    return Reply(data, print_lines(occupancy_lines(data)), warnings=eng.warnings)
