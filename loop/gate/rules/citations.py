"""Rules on citations, wherever a proposal or a version's files have them."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.checking import Status
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.gate.texts import ledger


@rule("citation", "proposal")
def citation(context: GateContext) -> Iterator[Broken]:
    """Cite lines that exist and say what is said of them.

    What it checks: each `claim <- wiki/path:L12` is opened. The page and the lines exist, and they state the value with
    its unit, product and qualifier, or contain the quoted words.

    Why: readers trust a claim because they can look up its source.

    Fix: cite the line that says it, or say what the line says. `kopt cite check` checks any file in the same way.
    """
    for text, checked in ledger(context).citations:
        wrong = checked.result.status in (Status.NOT_FOUND, Status.MISMATCH) and not checked.unpinned
        if "#evidence.selected" in text.file or not wrong:
            continue
        says = f" The lines say: {checked.result.says[:200]}" if checked.result.says else ""
        message = f"{checked.cited.reference.text}: {checked.result.detail}"
        fix = f"Cite the line that says it, or say what it says.{says}"
        yield broken(text.file, message, fix, checked.cited.line)


@rule("stale-citation", "proposal")
def stale_citation(context: GateContext) -> Iterator[Broken]:
    """Cite lines as they are now.

    What it checks: the lines of a reference with a hash, wiki/path:L12@HASH, still have that hash.

    Why: the hash says which words were meant; these lines have changed since.

    Fix: read the lines again, and cite them as they are.
    """
    for text, checked in ledger(context).citations:
        if checked.result.status is Status.STALE:
            message = f"{checked.cited.reference.text}: {checked.result.detail}"
            fix = f"Cite the lines as they are: {checked.result.says[:200]}"
            yield broken(text.file, message, fix, checked.cited.line)


@rule("unpinned-citation", "proposal")
def unpinned_citation(context: GateContext) -> Iterator[Broken]:
    """Cite pages as they were when the run started.

    What it checks: every cited page has the hash that run.json recorded for it.

    Why: if a page could be written during the run, a claim could bring its own source.

    Fix: cite another page, or start a new run.
    """
    for text, checked in ledger(context).citations:
        if checked.unpinned:
            message = f"{checked.cited.reference.text}: {checked.unpinned}"
            fix = "Cite a page that the run started with (`kopt run show` lists the wikis), or start a new run."
            yield broken(text.file, message, fix, checked.cited.line)
