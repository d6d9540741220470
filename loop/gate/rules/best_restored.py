"""The best version stands in best/."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule(
    "best-restored", "best/ holds the version that was measured at the end, byte for byte, and nothing else.", "final"
)
def best_restored(context: GateContext) -> Iterator[Broken]:
    """What `kopt run apply` copies is what was measured: the file in best/ is the kernel of the final version. Let
    `kopt run final` restore it."""
    mend = "Let `kopt run final` restore it from git."
    final = context.state.final
    if final is None or final.version != context.version:
        message = f"the journal has no final measurement of v{context.version} that agrees with its own"
        yield Broken(file="journal.jsonl", line=0, message=message, mend="Run `kopt run final`.")
        return
    name = context.kernel_name(context.version)
    kept = context.listed(context.folder.best)
    wanted = f"best/{name}" if name else ""
    for path in sorted({*kept, *([wanted] if wanted else [])}):
        if path != wanted:
            yield Broken(file=path, line=0, message=f"it is no file of v{context.version}", mend=mend)
        elif context.hash(path) != context.hash(context.in_version(name or "")):
            yield Broken(file=path, line=0, message=f"it is not the kernel of v{context.version}", mend=mend)
