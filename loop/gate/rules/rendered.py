"""Rendered files are kopt's."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rendering import render_version
from loop.gate.rule import Broken, rule


@rule("rendered", "Files that kopt renders are as kopt renders them, byte for byte.", "version")
def rendered(context: GateContext) -> Iterator[Broken]:
    """hypothesis.txt, plan.md, ncu_summary.md and the others follow from proposal, receipt, profile and journal:
    they are rendered again and compared, so that no hand can improve them. Change the source, never the rendering."""
    for name, data in render_version(context).items():
        path = context.in_version(name)
        there = context.bytes_of(path)
        if there is not None and there != data:
            before, after = there.split(b"\n"), data.split(b"\n")
            line = next(
                (n for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b),
                min(len(before), len(after)),
            )
            message = "it differs from what kopt renders from this version's files"
            yield Broken(file=path, line=line, message=message, mend="Remove it, and let `kopt run resume` render it.")
