"""Machine code as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluator.sass.diff import Change, Difference
    from evaluator.sass.sass import Resources
    from kopt.services.results.machine_code import SassData

_SHOWN = 16
"""Opcodes and changes that are printed; JSON has all."""


def lines(data: SassData) -> Iterator[str]:
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
