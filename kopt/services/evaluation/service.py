"""One evaluation: every question searched for and answered, every citation checked, wrong ones planted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbs.answers.model import Answer
from kbs.common.json_model import JsonDataclass
from kbs.evidence.checking import CheckedCitation, Status, check_citation
from kopt.services.engine import Engine
from kopt.services.evaluation.answers import Judged, judge
from kopt.services.evaluation.figures import (
    Band,
    Bar,
    Changes,
    GroupFigures,
    Outcome,
    SearchFigures,
    bands,
    changes,
    groups,
    headline,
    hold,
    outcomes,
    read_bars,
    search_figures,
)
from kopt.services.evaluation.planted import Planted, plant
from kopt.services.evaluation.questions import Question
from kopt.services.evaluation.quiet import QuietEngine
from kopt.services.evaluation.retrieval import Found, search_all
from kopt.services.knowledge.citations import check
from kopt.version import VERSION

PLANTED = 1000


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    questions: Sequence[Question]
    planted: int = PLANTED
    """Wrong citations."""
    require: Path | None = None
    """Bars."""
    against: Path | None = None
    """An earlier evaluation."""


@dataclass(frozen=True)
class CitationFigures(JsonDataclass):
    """Every citation of every answer, and wrong ones that were planted."""

    checked: int
    failed: tuple[str, ...]
    """`question: citation: why`"""
    planted: tuple[Planted, ...]


@dataclass(frozen=True)
class Evaluation(JsonDataclass):
    """`kopt eval`"""

    kopt: str
    """Its version."""
    wikis: dict[str, str]
    """Name → revision."""
    model: str
    """What the vectors are from; empty where there are none."""
    seconds: float
    figures: dict[str, float]
    """Those that bars name; what the questions do not measure is left out."""
    bars: tuple[Bar, ...]
    searches: tuple[SearchFigures, ...]
    groups: tuple[GroupFigures, ...]
    outcomes: tuple[Outcome, ...]
    bands: tuple[Band, ...]
    citations: CitationFigures
    changes: Changes | None
    found: tuple[Found, ...]
    """What search found, question by question."""
    answers: tuple[Judged, ...]
    """What was answered, question by question."""

    @property
    def passed(self) -> bool:
        """Whether every bar is met."""
        return all(bar.met for bar in self.bars)


def evaluate(engine: Engine, plan: Plan) -> Evaluation:
    """Measure. Raises `UsageError`: `bars_unreadable`, `earlier_unreadable`."""
    stated = read_bars(plan.require) if plan.require else []
    if plan.against:
        changes(plan.against, ())  # a file that cannot be read is told before the work
    start = time.perf_counter()
    model = engine.with_store(lambda store: store.meta("vector_model"), vectors=True)
    quiet = QuietEngine(engine.settings, engine.progress)
    count = len(plan.questions)
    found = search_all(quiet, plan.questions, lambda done: engine.progress("searching", done, count))
    judged: list[Judged] = []
    checked, failed = 0, []
    for done, question in enumerate(plan.questions, start=1):
        one, answer = judge(quiet, question)
        judged.append(one)
        looked = _citations(quiet, answer, one.text) if answer else []
        checked += len(looked)
        failed += [
            f"{one.id}: {c.text or c.reference}: {c.detail or c.status}" for c in looked if c.status is not Status.OK
        ]
        engine.progress("asking", done, count)
    planted = plant(quiet.library, quiet.specs(), plan.planted)
    engine.warn(dict.fromkeys(quiet.warnings))
    searches = search_figures(found)
    figures = headline(judged, searches) | {
        "citations.checked": float(checked),
        "citations.failed": float(len(failed)),
        "citations.planted": float(sum(one.planted for one in planted)),
        "citations.accepted": float(sum(one.accepted for one in planted)),
    }
    return Evaluation(
        kopt=VERSION,
        wikis={wiki.name: wiki.revision for wiki in engine.wikis},
        model=model,
        seconds=round(time.perf_counter() - start, 1),
        figures=figures,
        bars=tuple(hold(stated, figures)),
        searches=tuple(searches),
        groups=tuple(groups(judged)),
        outcomes=tuple(outcomes(judged)),
        bands=tuple(bands(found)),
        citations=CitationFigures(checked, tuple(failed), tuple(planted)),
        changes=changes(plan.against, judged) if plan.against else None,
        found=tuple(found),
        answers=tuple(judged),
    )


def _citations(engine: Engine, answer: Answer, text: str) -> list[CheckedCitation]:
    """All that its claims and thresholds cite, then all that its text cites."""
    cited = [one for claim in answer.claims for one in claim.citations]
    cited += [row.citation for claim in answer.claims for judgement in claim.judgements for row in judgement.rows]
    return [*(check_citation(one, engine.library) for one in cited), *check(engine, text)]
