"""What refers to a page of a wiki: links and citations of other pages, citations of runs, records of the log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from kbs.evidence.checking import NOTHING_CLAIMED, CheckedCitation, Status, check_citation, check_line, check_text
from kbs.evidence.citation import Citation, Reference, find_citations, lines_hash, parse_reference
from kbs.evidence.vocabulary import Vocabulary
from kbs.experience.filters import Filter
from kopt.services.engine import Engine, log_index
from kopt.services.knowledge.citations import find_page
from kopt.services.runs.lookup import runs_below, runs_of_home
from kopt.services.settings import LoadedSettings
from loop.pages.citations import NAME
from wiki.library import Wikis
from wiki.lint.rules.links import target_path
from wiki.page import Page
from wiki.reader import links

_ASKED = re.compile(r"(?P<page>.+?)(?::L?(?P<start>\d{1,9})(?:-L?(?P<end>\d{1,9}))?)?", re.DOTALL)
_MOST_BYTES = 50_000_000
"""Of the citations of a run; a file that is larger is not read."""


class Known(Protocol):
    """What is looked through: an `Engine`, or one with other wikis."""

    @property
    def library(self) -> Wikis:
        """The wikis."""

    @property
    def terms(self) -> Vocabulary:
        """The vocabulary."""

    @property
    def settings(self) -> LoadedSettings:
        """Where runs and the log are."""


@dataclass(frozen=True)
class Ref:
    """Something that refers to a page."""

    by: Literal["page", "run", "log"]
    place: str
    """`gpu-wiki/kernel/softmax.md:L12`, the name of the run, or `log/<id>`."""
    cites: str
    """The reference to lines of the page; empty for a link to the page."""
    status: Status
    """`stale` where the cited lines read otherwise now, `not found` where there are none."""
    detail: str = ""
    files: tuple[str, ...] = ()
    """The files of the run that cite it."""


@dataclass
class Refs:
    """All that refers to a page, or to lines of it."""

    wiki: str
    path: str
    title: str
    start: int = 0
    """First line that was asked for; 0 for the whole page."""
    end: int = 0
    found: list[Ref] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Runs whose citations could not be read."""

    @property
    def stale(self) -> int:
        """How many do not say any more what the page says."""
        return sum(ref.status is not Status.OK for ref in self.found)

    def meant(self, reference: Reference | Citation) -> bool:
        """Whether a reference is to this page, and to the lines that were asked for."""
        path = reference.target if isinstance(reference, Reference) else reference.path
        overlaps = not self.start or (reference.line_start <= self.end and reference.line_end >= self.start)
        return (reference.wiki, path) == (self.wiki, self.path) and bool(reference.line_start) and overlaps


def find_refs(engine: Engine, asked: str, workspace: Path) -> Refs:
    """What refers to `PAGE` or `PAGE:LINE`; of lines, what cites them.

    Runs are those of this KOPT_HOME and those below the workspace. Raises `UsageError` (`not_found`).
    """
    named = _ASKED.fullmatch(asked.strip())
    library = engine.library
    wiki, path = find_page(library, named["page"] if named else asked)
    page = library.page(wiki, path)
    refs = Refs(wiki, path, page.meta.title if isinstance(page, Page) else path)
    if named and named["start"]:
        refs.start = int(named["start"])
        refs.end = int(named["end"] or refs.start)
        last = len(library.lines(wiki, path) or ())
        if not 1 <= refs.start <= refs.end <= last:
            raise UsageError(
                f"{path} has no such lines: {visible(asked)}", code="not_found", hint=f"The page ends at line {last}."
            )
    _find(engine, refs, workspace)
    return refs


def refs_of(known: Known, wiki: str, path: str, workspace: Path) -> Refs:
    """What refers to a page, which need not be there any more."""
    refs = Refs(wiki, path, path)
    _find(known, refs, workspace)
    return refs


def _find(known: Known, refs: Refs, workspace: Path) -> None:
    refs.found += _of_pages(known, refs)
    refs.found += _of_runs(known, refs, workspace)
    refs.found += _of_log(known, refs)


def _checked(engine: Known, refs: Refs, text: str) -> Iterator[CheckedCitation]:
    """The citations of the page in a text, as the checker has them; `line` is that of the text."""
    if f"{refs.wiki}/{refs.path}:L" not in text:
        return
    for cited in find_citations(text):
        if refs.meant(cited.reference):
            yield check_line(cited, engine.library, engine.terms, {})


def _ref(by: Literal["page", "run", "log"], place: str, one: CheckedCitation) -> Ref:
    """Of a citation that claims nothing there is nothing to say but that the lines are there."""
    return Ref(by, place, one.reference, one.status, "" if one.detail == NOTHING_CLAIMED else visible(one.detail))


# --- pages ----------------------------------------------------------------------------------------------------------


def _of_pages(engine: Known, refs: Refs) -> Iterator[Ref]:
    library = engine.library
    name = Path(refs.path).name
    for wiki in library.all.values():
        for file in wiki.files():
            if (wiki.name, file.path) == (refs.wiki, refs.path):
                continue
            text = "\n".join(library.lines(wiki.name, file.path) or ())
            found: list[tuple[int, Ref]] = []
            # Reading a page takes a hundred times as long as looking for a name; an escaped name hides behind a %.
            if not refs.start and wiki.name == refs.wiki and not wiki.notes and (name in text or "%" in text):
                page = library.page(wiki.name, file.path)
                for line, target in links(page) if isinstance(page, Page) else ():
                    if target_path(file.path, target.partition("#")[0]) == refs.path:
                        found.append((line, Ref("page", f"{wiki.name}/{file.path}:L{line}", "", Status.OK)))
            cited = _checked(engine, refs, text)
            found += [(one.line, _ref("page", f"{wiki.name}/{file.path}:L{one.line}", one)) for one in cited]
            yield from (ref for _, ref in sorted(dict.fromkeys(found), key=lambda each: each[0]))


# --- runs and records -----------------------------------------------------------------------------------------------


def _of_runs(engine: Known, refs: Refs, workspace: Path) -> Iterator[Ref]:
    seen: set[Path] = set()
    for folder in (*runs_of_home(engine.settings.home), *runs_below(workspace)):
        root = folder.root.resolve()
        if root in seen:
            continue
        seen.add(root)
        try:
            yield from _of_run(engine, refs, root)
        except FileNotFoundError:  # a run that has just begun cites nothing
            continue
        except (OSError, ValueError, RecursionError):
            refs.warnings.append(f"what the run {visible(root.name)} cites cannot be read")


def _of_run(engine: Known, refs: Refs, root: Path) -> list[Ref]:
    """Raises `ValueError` where the document is not in its form: a run's folder may come from anybody."""
    with (root / NAME).open("rb") as stream:
        data = stream.read(_MOST_BYTES + 1)
    document = json.loads(data) if len(data) <= _MOST_BYTES else None
    if not isinstance(document, list):
        raise ValueError("no list of citations")
    found = []
    for item in document:
        text, files, lines, digest = _fields(item)
        reference = parse_reference(text)
        if reference is None or not refs.meant(reference):
            continue
        if digest and lines_hash(lines) == digest:
            span = (reference.line_start, reference.line_end)
            cited = Citation(reference.wiki, reference.target, *span, "", digest, "\n".join(lines))
            one = check_citation(cited, engine.library)
        else:
            # The run did not keep the lines, so all that can be said is whether there are such lines.
            (one,) = check_text(reference.text, engine.library, engine.terms)
        ref = _ref("run", visible(root.name), one)
        found.append(replace(ref, cites=reference.text, files=tuple(visible(name) for name in files)))
    return found


def _fields(item: object) -> tuple[str, list[str], list[str], str]:
    """(reference, files, lines, hash) of an entry of citations.json."""
    if not isinstance(item, dict):
        raise ValueError("a citation that is none")
    text, files, lines, digest = (item.get(key) for key in ("reference", "cited_in", "lines", "hash"))
    lines, digest = lines or [], digest or ""
    if not isinstance(text, str) or not isinstance(digest, str):
        raise ValueError("a citation that is none")
    return text, _texts(files), _texts(lines), digest


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("no list of texts")
    return value


def _of_log(engine: Known, refs: Refs) -> Iterator[Ref]:
    with log_index(engine.settings) as index:
        for entry in index.entries(Filter(masked=None)) if index else ():
            one = entry.experiment
            texts: Sequence[str] = (*one.evidence, one.lesson, one.optimization, one.hypothesis, one.observed)
            cited = {
                checked.reference: _ref("log", one.reference, checked)
                for text in texts
                for checked in _checked(engine, refs, text)
            }
            for ref in cited.values():
                yield replace(ref, status=Status.STALE, detail="the record is masked") if entry.masked else ref
