"""Cited pages are those of the run's start."""

from __future__ import annotations

from collections.abc import Iterator

from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule
from loop.gate.texts import grounds


@rule("unpinned-citation", "Cited pages are as they were when the run began.", "proposal")
def unpinned_citation(context: GateContext) -> Iterator[Broken]:
    """run.json has the hash of every page of the run's wikis. A page that was written or changed later cannot be cited:
    else a claim could bring its own source. Cite another page, or begin a new run."""
    for text, checked in grounds(context).citations:
        if checked.unpinned:
            message = f"{checked.cited.reference.text}: {checked.unpinned}"
            mend = "Cite a page that the run began with; `kopt run show` lists the wikis. A new run takes new pages in."
            yield Broken(file=text.file, line=checked.cited.line, message=message, mend=mend)
