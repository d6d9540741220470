"""Recorded files stand unchanged."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.recorded import recorded_files
from loop.gate.rule import Broken, rule


@rule("changed-file", "Every file that the journal recorded stands as it was recorded.", "proposal", always=True)
def changed_file(context: GateContext) -> Iterator[Broken]:
    """Earlier versions, attempts, receipts, profiles and copies of candidates are history: each event has their hashes.
    A version is never edited; hand a better kernel in as a new one. Restore the file from the run's git repository."""
    for path, hash in sorted(recorded_files(context).items()):
        there = context.hash(path)
        if there == hash:
            continue
        message = "it is gone" if there is None else "it is not as the journal recorded it"
        mend = f"Restore it: `git checkout -- {path}` in the run's folder."
        yield Broken(file=path, line=0, message=message, mend=mend)
