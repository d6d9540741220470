"""The experience log as evidence for answers: records in a scope, their totals, and the check of claims about them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kbs.common.errors import KoptError
from kbs.common.visible_text import visible
from kbs.evidence.checking import Status
from kbs.evidence.citation import EvidenceKind, find_citations
from kbs.evidence.file_evidence import FileEvidence
from kbs.experience.entry import SHIPPED_WITH_KOPT, Entry
from kbs.experience.experiment import Experiment, Outcome, Speedup
from kbs.experience.filters import Filter
from kbs.experience.index import ExperienceIndex
from kbs.experience.ranking.recommend import nearest
from kbs.experience.ranking.similarity import Situation
from kbs.experience.record_citations import check_record, ratio_words, record_name, record_states
from kbs.experience.stats import Effect, effect_of

LOG = "experience log"
WordSearch = Callable[[str, int], list[str]]
"""(words, how many at most) → ids of records that have all of them, those first that they fit best."""


@dataclass(frozen=True)
class Row:
    """One method of one experiment; an experiment without methods has one row, whose method is empty."""

    id: str
    method: str
    op: str
    gpu: str
    outcome: Outcome
    median: float | None


@dataclass(frozen=True)
class Scope:
    """Which records are meant."""

    wanted: Filter
    methods: tuple[str, ...] | None = None
    """Any of them; None for all."""
    ids: frozenset[str] | None = None
    """Only these; None for all."""
    words: tuple[str, ...] = ()
    """Those by which `ids` were found."""

    @property
    def command(self) -> str:
        """The command that counts the same records, or that finds them where words do; in words what it has no option
        for."""
        wanted, methods = self.wanted, self.methods or ()
        options = [("--op", wanted.op), ("--chip", wanted.gpu), ("--bottleneck", wanted.bottleneck)]
        options += [
            ("--dtype", wanted.dtype),
            ("--backend", wanted.backend),
            ("--method", methods[0] if len(methods) == 1 else ""),
        ]
        several = [*wanted.gpus, *(methods if len(methods) > 1 else ())]
        verb = f"search {' '.join(self.words)}" if self.words else "stats"
        said = " ".join([f"kopt log {verb}", *(f"{name} {value}" for name, value in options if value)])
        return f"{said} (of {', '.join(several)})" if several else said


@dataclass
class LogEvidence:
    """An open log. As `EvidenceCheck` it looks up again what an answer says of it. A damaged index is a `KoptError`."""

    index: ExperienceIndex
    words: WordSearch | None = None
    _base: frozenset[str] | None = None
    _scopes: dict[tuple[str, str], Scope] = field(default_factory=dict)

    def rows(self, scope: Scope) -> list[Row]:
        """The rows of a scope, the oldest record first."""
        wanted = scope.wanted
        if scope.methods is not None and len(scope.methods) == 1 and scope.methods[0]:
            wanted = replace(wanted, method=scope.methods[0])  # fewer rows to look through
        with self._reading():
            found = self.index.effects(wanted)
        return [
            Row(id, method, op, gpu, Outcome(outcome), median)
            for id, method, op, gpu, outcome, median in found
            if (scope.ids is None or id in scope.ids) and (scope.methods is None or method in scope.methods)
        ]

    def count(self) -> int:
        """How many records count."""
        with self._reading():
            return self.index.count()

    def origin(self, ids: Iterable[str]) -> str:
        """`shipped with kopt`, or how many of some records are; empty where none is."""
        wanted = set(ids)
        if self._base is None:
            with self._reading():
                self._base = self.index.shipped()
        shipped = len(wanted & self._base)
        return (
            f"{shipped} of {len(wanted)} {SHIPPED_WITH_KOPT}"
            if 0 < shipped < len(wanted)
            else (SHIPPED_WITH_KOPT if shipped else "")
        )

    def get(self, id: str) -> Entry | None:
        """The record of an id."""
        with self._reading():
            return self.index.get(id)

    def search(self, text: str, wanted: Filter, limit: int) -> list[Entry]:
        """Records that have all words of a text."""
        ids = self.words(text, limit) if self.words is not None else []
        with self._reading():
            return self.index.chosen(ids, wanted)

    def tally(self, scope: Scope, name: str) -> FileEvidence:
        """What the records of a scope come to. There is at least one."""
        self._scopes[name, scope.command] = scope
        return FileEvidence("tally", LOG, "", scope.command, name, self._tallied(scope))

    def _tallied(self, scope: Scope) -> str:
        by_id = {row.id: row for row in self.rows(scope)}
        speedups = [row.median for row in by_id.values() if row.median is not None]
        return tally_words(effect_of("", [row.outcome for row in by_id.values()], speedups)) if by_id else "none"

    def similar(self, asked: Situation, count: int, least: float) -> list[tuple[Entry, float]]:
        """(record, similarity) of those in the most similar circumstances, the most similar first."""
        with self._reading():
            found = nearest(self.index.trials(), asked, datetime.now(UTC), count, least)
        entries = [(self.get(id), similarity) for id, similarity in found]
        return [(entry, similarity) for entry, similarity in entries if entry is not None]

    def why_not(self, item: FileEvidence) -> str:
        """Why the log does not say what the item states; "" where it does."""
        if item.kind == "tally":
            scope = self._scopes.get((item.name, item.place))
            now = self._tallied(scope) if scope is not None else "nothing"
            return "" if now == item.states else f"{item.reference} comes to {now}"
        found = list(find_citations(item.line))
        if len(found) != 1 or found[0].reference.kind is not EvidenceKind.LOG or not (found[0].claim or found[0].quote):
            return f"{item.reference}: its line cannot be read as a citation"
        with self._reading():
            status, why, _ = check_record(found[0], self.index)
        return "" if status is Status.OK else f"{item.reference} is {status}: {why}"

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise KoptError(
                f"the index of the experience log cannot be read: {error}",
                code="index_damaged",
                hint=f"Delete {self.index.path}: it is made anew from the log.",
            ) from error


def record_evidence(one: Experiment) -> FileEvidence:
    """What was tried, and what came of it."""
    return FileEvidence("log", LOG, one.id, "", visible(record_name(one)), record_states(one))


def quote_evidence(one: Experiment, words: str) -> FileEvidence | None:
    """Words of a record, on one line; None if they cannot be quoted on one."""
    item = FileEvidence("log", LOG, one.id, "", "", visible(" ".join(words.split())))
    found = list(find_citations(item.line))
    return item if len(found) == 1 and found[0].quote == item.states else None


def tally_words(effect: Effect) -> str:
    """`3 experiments: 2 success, 1 regression; median of 3 speedups 1.28x`, with its interval where there is one."""
    counts = ", ".join(f"{count} {outcome}" for outcome, count in effect.outcomes.items() if count)
    said = f"{effect.experiments} experiment{'s' if effect.experiments != 1 else ''}: {counts}"
    if effect.experiments > 1 and effect.success is not None:
        said += f"; success {effect.success:.0%} [{effect.success_low:.0%}, {effect.success_high:.0%}]"
    if effect.median is None:
        return said
    ratio = ratio_words(Speedup(median=effect.median, low=effect.low, high=effect.high))
    return f"{said}; speedup {ratio}" if effect.timed == 1 else f"{said}; median of {effect.timed} speedups {ratio}"


def first_by(rows: Iterable[Row], outcomes: Iterable[Outcome]) -> list[str]:
    """Ids of rows with one of the outcomes: the greatest speedups first, then the newest. Each once."""
    chosen = set(outcomes)
    found = sorted((row for row in rows if row.outcome in chosen), key=lambda row: row.id, reverse=True)
    return list(dict.fromkeys(row.id for row in sorted(found, key=lambda row: -(row.median or 0.0))))
