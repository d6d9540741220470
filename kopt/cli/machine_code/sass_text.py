"""What `kopt sass` has to say: for people, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evaluator.sass.diff import Change, Difference, compare
from evaluator.sass.sass import Resources, judge
from kbs.common.errors import ExitCode
from kbs.common.visible_text import visible
from kopt.cli.machine_code.compile_options import compile_error
from kopt.cli.output import Reply
from kopt.services.results.machine_code import FunctionData, SassData

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.sass.compile import Machine
    from evaluator.sass.tools import Target
    from evaluator.source.source_file import SourceFile
    from kbs.evidence.table_rows import SignatureRow

Say = Callable[[str], None]

_SHOWN = 16
"""Opcodes and changes that are printed for people; JSON has all."""


def reply_of(
    compiled: Sequence[tuple[SourceFile, Machine]],
    methods: Sequence[str],
    signatures: Sequence[SignatureRow],
    target: Target,
    warnings: list[str],
) -> Reply:
    """The reply about a candidate, the first that was compiled, and the version that it is compared with, if any."""
    sources = [source for source, _ in compiled]
    made = [machine for _, machine in compiled]
    machine = made[0]
    errors = [compile_error(source, each) for source, each in compiled if each.compile_error]
    difference = None
    if len(made) == 2 and not errors:
        difference = compare(made[1].functions, machine.functions, methods, signatures, target.number)
    data = SassData(
        candidate=sources[0].name,
        candidate_hash=sources[0].hash,
        target=machine.target,
        how=machine.how,
        compiled=not machine.compile_error,
        functions=[
            FunctionData.of(f, [judge(method, signatures, target.number, f) for method in methods])
            for f in machine.functions
        ],
        notes=list(dict.fromkeys(note for m in made for note in m.notes)),
        other=sources[1].name if len(sources) == 2 else "",
        difference=difference,
    )

    def show(console: Console) -> None:
        def say(text: str) -> None:
            console.print("\n".join(visible(line) for line in text.split("\n")), markup=False)

        for error in errors:
            say(error["message"])
        _show(say, data)

    return Reply(data, show, ExitCode.REJECTED if errors else ExitCode.OK, warnings, errors)


def _show(say: Say, data: SassData) -> None:
    if data.compiled:
        say(f"{data.candidate} for {data.target}, by {data.how}")
    for function in data.functions:
        version = f" [{function.version}]" if function.version else ""
        say(f"\n{function.short_name}{version}: {function.instructions} instructions")
        say(f"  {_resources(function.resources)}")
        listed = list(function.opcodes.items())
        more = f", and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
        say("  " + ", ".join(f"{opcode} {n}" for opcode, n in listed[:_SHOWN]) + more)
        for verdict in function.methods:
            which = ", ".join(f"{opcode} {n}" for opcode, n in verdict.found.items())
            tail = f" ({which})" if verdict.verdict == "present" else ""
            cited = f"  <- {verdict.citation}" if verdict.citation else ""
            say(f"  {verdict.method:<22} {verdict.text}{tail}{cited}")
    if data.difference is not None:
        _show_difference(say, data.difference, data.other)
    for note in data.notes:
        say(f"note: {note}")


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
            text(resources.registers, "registers a thread"),
            f"stack {text(resources.stack_bytes, 'B')}",
            spills,
            f"shared memory {text(resources.static_shared_bytes, 'B')} static"
            f" and {text(resources.dynamic_shared_bytes, 'B')} dynamic",
        ]
    )


def _show_difference(say: Say, difference: Difference, other: str) -> None:
    say(f"\nagainst {other}:")
    for pair in difference.functions:
        name = pair.after if pair.before == pair.after else f"{pair.before} -> {pair.after}"
        say(f"  {name}:" + (" the same opcodes, each as often" if pair.same_code else ""))
        for change in (*pair.resources, *pair.opcodes[:_SHOWN]):
            say(f"    {_change(change)}")
        if len(pair.opcodes) > _SHOWN:
            say(f"    and {len(pair.opcodes) - _SHOWN} more opcodes")
        for method in pair.methods:
            say(f"    {method.method}: {method.before.text} -> {method.after.text}")
    for label in difference.only_before:
        say(f"  only in {other}: {label}")
    for label in difference.only_after:
        say(f"  only here: {label}")


def _change(change: Change) -> str:
    before, after = ("unknown" if n is None else f"{n:,}" for n in (change.before, change.after))
    moved = f" ({change.after - change.before:+,})" if change.before is not None and change.after is not None else ""
    return f"{change.name}: {before} -> {after}{moved}"
