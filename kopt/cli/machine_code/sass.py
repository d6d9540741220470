"""`kopt sass`: the machine code of a kernel, without a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    from evaluator.sass.diff import Change, Difference
    from evaluator.sass.sass import Resources
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile
    from kbs.evidence.table_rows import SignatureRow
    from kopt.services.results.machine_code import SassData

_SHOWN = 16
"""Opcodes and changes that are printed; JSON has all."""


@command("sass", reads_wikis=True, paged=True)
def sass(
    candidate: Annotated[Path, typer.Argument(help="The kernel: a .py file with Triton kernels, or a .cu file.")],
    compilation: CompileOptions,
    gpu: Annotated[
        str,
        typer.Option(
            "--gpu", autocompletion=gpus, help="Target: sm_90, 9.0, or a GPU of the wiki (default: the GPU present)."
        ),
    ] = "auto",
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only these methods: ID, or ID,ID. Repeatable.")
    ] = None,
    diff: Annotated[Path | None, typer.Option("--diff", help="Another version to compare with.")] = None,
) -> Reply:
    """Compile a kernel and read its machine code, function by function. The GPU need not be present.

    Prints opcodes, registers, spills and shared memory, and for each method whether the code shows it: present with a
    count, absent, or unverifiable with the reason. Signatures are tables on the wiki's method pages.

    Triton kernels get types and constants from one call of the candidate in the sandbox, which launches nothing: give
    what `kopt bench` needs for that call (--ref, --dims, --inputs), or name the types with --signature. Exit code 0
    whatever the verdicts, 4 if the kernel does not compile.
    """
    from kbs.common.errors import ExitCode
    from kopt.services.arguments import read_names
    from kopt.services.gpus import compile_target
    from kopt.services.machine_code.compiling import compile_error
    from loop.planning.methods import read_methods

    with engine() as eng:
        methods = read_methods(eng.library)
        chosen = methods.chosen([name for text in method or () for name in read_names(text)])
        target, multiprocessors = compile_target(eng, gpu)
        made = compilation.compile([candidate, *([diff] if diff else [])], target, multiprocessors)
    data = _data(made, chosen, methods.signatures, target)
    errors = [compile_error(source, machine) for source, machine in made if machine.compile_error]
    text = [*(error["message"] for error in errors), *_lines(data)]
    return Reply(data, print_lines(text), ExitCode.REJECTED if errors else ExitCode.OK, eng.warnings, errors)


def _data(
    compiled: Sequence[tuple[SourceFile, Machine]],
    methods: Sequence[str],
    signatures: Sequence[SignatureRow],
    target: Target,
) -> SassData:
    """The first file that was compiled, compared with the second, if there is one."""
    from evaluator.sass.diff import compare
    from evaluator.sass.sass import judge
    from kopt.services.results.machine_code import FunctionData, SassData

    source, machine = compiled[0]
    other, before = compiled[1] if len(compiled) == 2 else (None, None)
    difference = None
    if before is not None and not (machine.compile_error or before.compile_error):
        difference = compare(before.functions, machine.functions, methods, signatures, target.number)
    return SassData(
        candidate=source.name,
        candidate_hash=source.hash,
        target=machine.target,
        how=machine.how,
        compiled=not machine.compile_error,
        functions=[
            FunctionData.of(one, [judge(method, signatures, target.number, one) for method in methods])
            for one in machine.functions
        ],
        notes=list(dict.fromkeys(note for _, each in compiled for note in each.notes)),
        other=other.name if other else "",
        difference=difference,
    )


def _lines(data: SassData) -> Iterator[str]:
    """Functions, then what differs from the other version, then notes."""
    if data.compiled:
        yield f"{data.candidate} for {data.target}, by {data.how}"
    for function in data.functions:
        version = f" [{function.version}]" if function.version else ""
        yield from ("", f"{function.short_name}{version}: {function.instructions} instructions")
        yield f"  {_resources(function.resources)}"
        listed = list(function.opcodes.items())
        more = f", and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        yield "  " + ", ".join(f"{opcode} {n}" for opcode, n in listed[:_SHOWN]) + more
        for verdict in function.methods:
            which = ", ".join(f"{opcode} {n}" for opcode, n in verdict.found.items())
            tail = f" ({which})" if verdict.verdict == "present" else ""
            cited = f"  <- {verdict.citation}" if verdict.citation else ""
            yield f"  {verdict.method:<22} {verdict.text}{tail}{cited}"
    if data.difference is not None:
        yield from _difference(data.difference, data.other)
    yield from (f"note: {note}" for note in data.notes)


def _resources(resources: Resources) -> str:
    def text(value: int | None, unit: str) -> str:
        return f"unknown {unit}" if value is None else f"{value:,} {unit}"

    spills = (
        f"spills {resources.spill_store_bytes:,} B stored and {resources.spill_load_bytes:,} B loaded"
        if resources.spill_store_bytes is not None and resources.spill_load_bytes is not None
        else "spills unknown"
    )
    return ", ".join(
        [
            text(resources.registers, "registers per thread"),
            f"stack {text(resources.stack_bytes, 'B')}",
            spills,
            f"shared memory {text(resources.static_shared_bytes, 'B')} static"
            f" and {text(resources.dynamic_shared_bytes, 'B')} dynamic",
        ]
    )


def _difference(difference: Difference, other: str) -> Iterator[str]:
    yield from ("", f"against {other}:")
    for pair in difference.functions:
        name = pair.after if pair.before == pair.after else f"{pair.before} -> {pair.after}"
        yield f"  {name}:" + (" the same opcodes, each as often" if pair.same_code else "")
        yield from (f"    {_change(change)}" for change in (*pair.resources, *pair.opcodes[:_SHOWN]))
        if len(pair.opcodes) > _SHOWN:
            yield f"    and {len(pair.opcodes) - _SHOWN} more opcodes"
        yield from (f"    {one.method}: {one.before.text} -> {one.after.text}" for one in pair.methods)
    yield from (f"  only in {other}: {label}" for label in difference.only_before)
    yield from (f"  only here: {label}" for label in difference.only_after)


def _change(change: Change) -> str:
    before, after = ("unknown" if n is None else f"{n:,}" for n in (change.before, change.after))
    moved = f" ({change.after - change.before:+,})" if change.before is not None and change.after is not None else ""
    return f"{change.name}: {before} -> {after}{moved}"
