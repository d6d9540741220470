"""current_iteration.txt."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("current-iteration", "current_iteration.txt names the version that is open.", "proposal", always=True)
def current_iteration(context: GateContext) -> Iterator[Broken]:
    """The file is for people and tools that look at the folder; kopt alone writes it. It has the number of the version
    that was opened last, in one line."""
    path, expected = "current_iteration.txt", f"{max(0, len(context.state.versions) - 1)}"
    text = context.text(path)
    if text is None or text.strip() != expected:
        message = f"it says {(text or 'nothing').strip()[:40]!r}, and version {expected} is open"
        yield Broken(file=path, line=1, message=message, mend=f"Write {expected} into it, and leave it to kopt.")
