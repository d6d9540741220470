"""The journal is whole."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.common.errors import KoptError
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.journal.journal import read


@rule("journal", "The journal is as kopt wrote it, line after line.", "proposal", always=True)
def journal(context: GateContext) -> Iterator[Broken]:
    """Each line has the hash of the one before it: an edit, a lost line or a changed order shows. `kopt run mask`
    leaves a version out; nothing is ever edited. Restore the journal from the run's git repository."""
    data = context.bytes_of("journal.jsonl")
    mend = "Restore journal.jsonl from the run's git repository."
    if data is None:
        yield Broken(file="journal.jsonl", line=0, message="it is missing", mend=mend)
        return
    try:
        found = read(data)
    except KoptError as error:
        line = next((int(word) for word in error.message.split() if word.isdigit()), 0)
        yield Broken(file="journal.jsonl", line=line, message=error.message, mend=mend)
        return
    if found.entries != tuple(context.state.entries):
        line = next(
            (
                n
                for n, pair in enumerate(zip(found.entries, context.state.entries, strict=False), 1)
                if pair[0] != pair[1]
            ),
            min(len(found.entries), len(context.state.entries)) + 1,
        )
        message = "it does not hold the events that this process goes by"
        yield Broken(file="journal.jsonl", line=line, message=message, mend=mend)
