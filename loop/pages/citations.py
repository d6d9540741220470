"""citations.json: the full text of every wiki line that a run cites, as it was when the run started."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from kbs.common.canonical_json import dumps
from kbs.evidence.citation import Reference, find_citations, lines_hash, parse_reference
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.pages.artifacts import VersionFiles, targets
from wiki.library import Wiki
from wiki.page import split_lines

NAME = "citations.json"


def citations(folder: RunFolder, record: RunRecord, state: RunState) -> bytes:
    """The document. Lines of a page that has changed since are copied from the existing document."""
    kept = _kept(folder.root / NAME)
    cited: dict[str, set[str]] = {}
    for place, text in _texts(folder, record, state):
        found = parse_reference(text)
        references = [found] if found else [one.reference for one in find_citations(text)]
        for reference in references:
            if reference.of_lines and reference.line_start:
                plain = reference.text.partition("@")[0]
                cited.setdefault(plain, set()).add(place)
    made, pages = [], dict[tuple[str, str], bytes | None]()
    for text in sorted(cited):
        known = parse_reference(text)
        assert known is not None  # it was read from one
        lines = _lines(record, known, kept.get(text), pages)
        made.append({"reference": text, "cited_in": sorted(cited[text]), **lines})
    return dumps(made)


def _texts(folder: RunFolder, record: RunRecord, state: RunState) -> Iterator[tuple[str, str]]:
    """(file, a reference or a text with citations) of everything that the run cites."""
    found = targets(folder)
    for spec in found.specs if found else ():
        yield "roofline.json", spec.line
    for one in (found.instructions or ()) if found else ():
        yield "roofline.json", one.line
    for version in state.versions:
        files, name = VersionFiles(folder, record, version.number), f"v{version.number}"
        for search in files.searches:
            for hit in search.hits:
                yield f"{name}/searches.jsonl", hit.reference
        if files.diagnosis is not None:
            for symptom in files.diagnosis.symptoms:
                yield f"{name}/diagnosis.json", symptom.text
                for technique in symptom.techniques:
                    yield f"{name}/diagnosis.json", technique
        if files.proposal is not None:
            for selected in files.proposal.evidence.selected:
                yield f"{name}/proposal.json", selected.reference


def _lines(
    record: RunRecord, reference: Reference, kept: dict[str, object] | None, pages: dict[tuple[str, str], bytes | None]
) -> dict[str, object]:
    pinned = record.wikis.get(reference.wiki)
    if pinned is None or reference.target not in pinned.pages:
        return {"lines": None, "hash": None, "why": "no page of the wikis that the run has pinned"}
    place = (pinned.root, reference.target)
    if place not in pages:
        pages[place] = Wiki(reference.wiki, Path(pinned.root)).read(reference.target)
    data = pages[place]
    if data is None or hashlib.sha256(data).hexdigest() != pinned.pages[reference.target]:
        return kept or {"lines": None, "hash": None, "why": "the page has changed since the run began"}
    lines = split_lines(data.decode("utf-8-sig", "replace"))[reference.line_start - 1 : reference.line_end]
    if len(lines) != reference.line_end - reference.line_start + 1:
        return {"lines": None, "hash": None, "why": "the page has no such lines"}
    return {"lines": list(lines), "hash": lines_hash(lines), "why": ""}


def _kept(path: Path) -> dict[str, dict[str, object]]:
    """The existing document, by reference; empty if it cannot be read."""
    try:
        found = json.loads(path.read_bytes())
        return {
            one["reference"]: {name: one[name] for name in ("lines", "hash", "why")}
            for one in found
            if one["lines"] is not None and one["hash"] == lines_hash(one["lines"])
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
