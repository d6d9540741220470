"""Reports are kopt's."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rendering import render_end
from loop.gate.rule import Broken, rule


@rule("final-rendered", "The reports are as kopt renders them from measured artifacts, byte for byte.", "final")
def final_rendered(context: GateContext) -> Iterator[Broken]:
    """final_report.md, benchmark.md, summary.json and the run's own pages follow from receipts and the journal. Change
    nothing in them; `kopt run report` renders them again. Pictures are not compared: fonts differ between machines."""
    for path, data in render_end(context).items():
        there = context.bytes_of(path)
        if there != data:
            before, after = (there or b"").split(b"\n"), data.split(b"\n")
            line = next(
                (n for n, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b),
                min(len(before), len(after)),
            )
            message = "it is missing" if there is None else "it differs from what kopt renders"
            yield Broken(
                file=path, line=line if there is not None else 0, message=message, mend="Run `kopt run report`."
            )
