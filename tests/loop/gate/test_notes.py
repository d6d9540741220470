"""Notes in a run: evidence of what they say, and no source of a number."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pytest

from loop.gate.context import GateContext
from loop.gate.report import GateReport, run_gate
from loop.journal.record import PinnedWiki
from loop.pages.citations import citations
from loop.proposals import evidence
from loop.proposals.proposal import Selected
from loop.run.driver import read_run
from loop.tools import FoundPassage, Search
from tests.loop.gate.valid import ValidRun, context
from wiki.library import Wiki, Wikis

pytestmark = pytest.mark.processes
SAYS = "Wide loads of one row keep more bytes in flight."
NUMBER = "The L2 bandwidth of the H200 is 12.5 TB/s, and tiles of 37 rows are best."
HERE = "note/papers/old%20wiki/loads.txt"


@pytest.fixture
def notes(tmp_path: Path) -> Wiki:
    file = tmp_path / "papers/old wiki/loads.txt"
    file.parent.mkdir(parents=True)
    file.write_text(f"{SAYS}\n{NUMBER}\n\n| L2 bandwidth | 12.5 | TB/s |\n")
    return Wiki("note/papers", tmp_path / "papers")


def seen(run: ValidRun, notes: Wiki, **changes: Any) -> GateContext:
    """A proposal of a run that has pinned the notes, and whose searches found them."""
    path = run.root / "v4/searches.jsonl"
    hit = FoundPassage(reference=f"{HERE}:L1-L4", title="loads.txt", text=SAYS, score=0.9)
    found = Search(about="other", text="wide loads", hits=(hit,), degraded="")
    path.write_bytes(path.read_bytes() + evidence.render([found]))
    pages = {file.path: hashlib.sha256(notes.read(file.path) or b"").hexdigest() for file in notes.files()}
    pinned = PinnedWiki(root=str(notes.root), revision=notes.revision, pages=pages)
    record = run.record.model_copy(update={"wikis": {**run.record.wikis, notes.name: pinned}})
    proposal = run.proposal(**changes)
    made = context(run.root, run.wiki, run.home, proposal.version, "proposal", proposal)
    return dataclasses.replace(made, record=record, wikis=Wikis([run.wiki, notes]))


def gate(run: ValidRun, notes: Wiki, **changes: Any) -> GateReport:
    return run_gate(seen(run, notes, **changes))


def broken(report: GateReport) -> set[str]:
    return set(report.rules)


def selected(line: str, quote: str) -> dict[str, Any]:
    return {"evidence": {"selected": (Selected(reference=f"{HERE}:{line}", quote=quote, why="It is this."),)}}


def says(text: str) -> dict[str, Any]:
    return {"hypothesis": {"rationale": text.format(here=HERE)}}


def test_a_note_is_evidence_of_what_it_says(valid: ValidRun, notes: Wiki) -> None:
    report = gate(valid, notes, **selected("L1", SAYS), **says('"Wide loads of one row" <- {here}:L1'))
    assert report.rules == ("record",), list(report.lines())  # run.json does not have the notes that were pinned here


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (selected("L1", "Narrow loads of one row"), "evidence-reference"),
        (selected("L2", "L2 bandwidth: 12.5 TB/s"), "evidence-reference"),
        (says("H200 SXM L2 bandwidth: 12.5 TB/s <- {here}:L4"), "citation"),
        (says("H200 SXM L2 bandwidth: 12.5 TB/s <- {here}:L4"), "unsourced-spec"),
        (says("The L2 bandwidth of the H200 is 12.5 TB/s, see {here}:L2."), "unsourced-spec"),
        (says('"The L2 bandwidth of the H200 is 12.5 TB/s" <- {here}:L2'), "unsourced-spec"),
        ({**selected("L2", NUMBER), **says("The L2 bandwidth of the H200 is 12.5 TB/s.")}, "unsourced-spec"),
        (says("It moves 37 GB/s more, see {here}:L2."), "unsourced-spec"),
    ],
)
def test_a_note_is_no_source_of_a_number(changes: dict[str, Any], rule: str, valid: ValidRun, notes: Wiki) -> None:
    assert rule in broken(gate(valid, notes, **changes))


def test_notes_that_changed_or_came_later_cannot_be_cited(valid: ValidRun, notes: Wiki) -> None:
    seen_now = seen(valid, notes, **says('"Wide loads of one row" <- {here}:L1'))
    (notes.root / "old wiki/loads.txt").write_text(f"{SAYS}\n")
    assert "unpinned-citation" in broken(run_gate(seen_now))
    assert seen_now.unpinned("note/others", "a.md") == "note/others is not a wiki of this run"


def test_the_run_keeps_the_lines_of_notes(valid: ValidRun, notes: Wiki) -> None:
    made = seen(valid, notes)
    assert SAYS in citations(made.folder, made.record, read_run(valid.root).state).decode()
