"""`kopt occupancy`: how many blocks of a kernel an SM holds, and what limits them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbs.common.visible_text import visible
from kopt.cli.command import command
from kopt.cli.machine_code.options import CompileOptions
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines
from kopt.cli.terminal.completion import gpus

if TYPE_CHECKING:
    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile
    from kopt.services.results.machine_code import KernelOccupancyData, OccupancyData

_SIZE = re.compile(r"\s*(\d{1,12})\s*(B|KB|KiB|K)?\s*", re.IGNORECASE)


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
    from kopt.services.machine_code import occupancy as service
    from kopt.services.machine_code.compiling import compile_error
    from kopt.services.results.machine_code import OccupancyData

    def compile(path: Path, target: Target, multiprocessors: int | None) -> tuple[SourceFile, Machine]:
        (made,) = compilation.compile([path], target, multiprocessors)
        return made

    asked = service.OccupancyQuery(gpu, regs, _bytes(smem), threads, barriers, carveout, kernel, function)
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
    return Reply(data, print_lines(_lines(data)), warnings=eng.warnings)


def _bytes(text: str) -> int | None:
    """Bytes that --smem names; None for an empty text. Raises `UsageError`."""
    from kbs.common.errors import UsageError

    if not text:
        return None
    found = _SIZE.fullmatch(text)
    if found is None:
        raise UsageError(
            f"cannot read --smem {text!r}", code="value_invalid", hint="Give bytes, such as 49152, or KB, such as 48KB."
        )
    return int(found[1]) * (1 if (found[2] or "B").upper() == "B" else 1024)


def _lines(data: OccupancyData) -> Iterator[str]:
    """Every kernel, then the limits with their citation lines."""
    for number, kernel in enumerate(data.kernels):
        if number:
            yield ""
        yield from _kernel(kernel, data)
    for refused in data.refused:
        yield from ("", f"{visible(refused.kernel)}: cannot be launched: {refused.why}")
        yield from (f"  {line}" for line in refused.citation_lines)
    if data.how:
        yield from ("", f"Compiled by {visible(data.how)}")
    yield from (f"Note: {visible(note)}" for note in data.notes)
    yield from ("", "Limits")
    for limit in data.limits:
        yield f"  {limit.citation_line}  ({limit.confidence}; {limit.source})"


def _kernel(kernel: KernelOccupancyData, data: OccupancyData) -> Iterator[str]:
    subject = f"{visible(kernel.kernel)} on " if kernel.kernel else ""
    named = f" ({data.gpu})" if data.gpu else ""
    yield (
        f"{subject}compute capability {data.compute_capability}{named}: {kernel.threads} threads per block, "
        f"{kernel.registers} registers per thread, {kernel.shared_memory:,} B of shared memory per block"
    )
    limiters = " and ".join(kernel.limiters)
    if kernel.launchable:
        yield (
            f"{kernel.blocks} blocks of {kernel.warps_per_block} warps per SM: {kernel.warps} of {kernel.max_warps} "
            f"warps, {kernel.occupancy:.1%}; limited by {limiters}"
        )
    else:
        yield f"not a single block fits, so it cannot be launched: not enough {limiters}"
    yield ""
    for each in kernel.resources:
        admitted = "any" if each.blocks is None else str(each.blocks)
        mark = "  <- limits" if each.limiting else ""
        yield f"  {each.resource:<14}{admitted:>4} blocks   {each.arithmetic}{mark}"
    more = f"One more block ({kernel.blocks + 1})" if kernel.blocks else "A block"
    yield from ("", f"{more} would need: {_one_more(kernel)}")
    yield (
        f"Shared memory: {kernel.allocated_shared_memory:,} B allocated per block; a carve-out of "
        f"{kernel.carveout_bytes // 1024} KB leaves {kernel.l1_bytes // 1024} KB to L1"
    )
    yield from (f"Note: {note}" for note in kernel.notes)


def _one_more(kernel: KernelOccupancyData) -> str:
    needs = []
    for need in kernel.one_more_block:
        if need.what == "block slots":
            needs.append(f"more than the {need.now} block slots that an SM has, so only larger blocks add warps")
        elif need.at_most is None:
            needs.append(f"{need.what}: no number is low enough (now {need.now:,})")
        else:
            needs.append(f"at most {need.at_most:,} {need.what} (now {need.now:,})")
    full = "; all warps that an SM can hold are resident already" if kernel.warps == kernel.max_warps else ""
    return " and ".join(needs) + full
