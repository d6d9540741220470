"""Files that the journal has hashes of."""

from __future__ import annotations

from loop.gate.context import GateContext
from loop.journal.events import Files
from loop.journal.folder import HINTS


def recorded_files(context: GateContext) -> Files:
    """Path → hash as it was recorded last.

    Left out: HINTS.md, which is the user's to change, and while a proposal is looked at the version's searches: what
    the proposal asked was added to them, and the event that records it is still to come.
    """
    left_out = {HINTS}
    if context.stage == "proposal":
        left_out.add(context.in_version("searches.jsonl"))
    return {path: hash for path, hash in context.state.files.items() if path not in left_out}
