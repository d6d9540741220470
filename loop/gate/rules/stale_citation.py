"""Citations are not stale."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.checking import Status
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.texts import grounds


@rule("stale-citation", "No cited lines have changed since they were cited.", "proposal")
def stale_citation(context: GateContext) -> Iterator[Broken]:
    """A reference with a hash, wiki/path:L12@HASH, says which words were meant. Where the lines read otherwise now,
    look at them again and cite them as they are."""
    for text, checked in grounds(context).citations:
        if checked.result.status is Status.STALE:
            mend = f"Cite the lines as they are: {checked.result.says[:200]}"
            message = f"{checked.cited.reference.text}: {checked.result.detail}"
            yield Broken(file=text.file, line=checked.cited.line, message=message, mend=mend)
