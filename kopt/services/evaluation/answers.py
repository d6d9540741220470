"""Answers held against the facts of their questions.

The marks are for comparing two versions of kopt. Whether an answer is right for a reader, a reader judges.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from enum import StrEnum

from kbs.answers.model import Answer
from kbs.common.errors import KoptError
from kbs.common.json_model import JsonDataclass
from kopt.services.engine import Engine
from kopt.services.evaluation.questions import Fact, Question
from kopt.services.knowledge.answer_text import answer_text
from kopt.services.knowledge.answers import Asked, ask

FIRST_LINES = 3
CORRECTED = "wrong_premise"
OFFERED = "partial"
"""Reasons of an abstention that says more than no: it corrects the premise; it offers sections by their headings."""
_MARKS = re.compile(r"(?:\s?\[\d+\])+")


class Mark(StrEnum):
    """What an answer came to."""

    RIGHT = "right"
    """All facts are there, those of `first` in the first three lines; or it refuses what nobody can know."""
    PARTIAL = "partial"
    """Some facts are there, or all of them too late."""
    WRONG = "wrong"
    """It has none of the facts, or something that it must not say; or it answers what nobody can know."""
    OFFERED = "offered"
    """It names sections that may answer, and claims none."""
    REFUSED = "refused"


@dataclass(frozen=True)
class Judged(JsonDataclass):
    """A question, what came out, and the mark."""

    id: str
    question: str
    file: str
    form: str
    kind: str
    by: str
    in_wiki: bool
    mark: Mark
    abstained: bool
    reason: str
    first: int
    """Facts of `first` that the first three lines have."""
    first_of: int
    must: int
    """Facts of `must` that the text has."""
    must_of: int
    missing: tuple[str, ...]
    """Facts that are not there, each by its first pattern; `first: ` stands before those of the first lines."""
    violated: tuple[str, ...]
    """Patterns of `must_not` that the text has."""
    as_if_right: bool
    """Answered as if it were a plain question: its premise is wrong and nothing corrects it, or nobody can know it."""
    gold_shown: bool
    """Whether the heading of a gold section stands in the text."""
    lines: int
    """Without sources."""
    seconds: float
    text: str


def judge(engine: Engine, question: Question) -> tuple[Judged, Answer | None]:
    """Ask it, and hold the answer against its facts. A question that is an error is refused."""
    start = time.perf_counter()
    answer: Answer | None = None
    try:
        answer = made = ask(engine, Asked(question.question)).answer
        text, abstained, reason = answer_text(made), made.abstained, made.reason
    except KoptError as error:
        text, abstained, reason = error.message, True, f"error: {error.code}"
    seconds = time.perf_counter() - start
    body = text.split("\n\nSources\n")[0]
    seen = text if question.sources else _MARKS.sub("", body)
    lines = [line for line in seen.splitlines() if line.strip()]
    first = [fact for fact in question.first if not _stands(fact, "\n".join(lines[:FIRST_LINES]))]
    must = [fact for fact in question.must if not _stands(fact, seen)]
    violated = tuple(pattern for pattern in question.must_not if re.search(pattern, seen, re.IGNORECASE))
    mark = _mark(question, abstained, reason, len(first), len(must), bool(violated))
    spoken = not abstained or reason == CORRECTED
    judged = Judged(
        *(question.id, question.question, question.file, question.form, question.kind, question.by, question.in_wiki),
        *(mark, abstained, reason),
        *(len(question.first) - len(first), len(question.first), len(question.must) - len(must), len(question.must)),
        missing=(*(fact[0] for fact in must), *(f"first: {fact[0]}" for fact in first)),
        violated=violated,
        as_if_right=question.kind != "answerable" and not abstained and mark is Mark.WRONG,
        gold_shown=any(name.partition("#")[2] in body for name in question.gold),
        lines=len([line for line in body.splitlines() if line.strip()]) if spoken else 0,
        seconds=round(seconds, 4),
        text=text,
    )
    return judged, answer


def _mark(question: Question, abstained: bool, reason: str, late: int, missing: int, violated: bool) -> Mark:
    complete = bool(question.must) and not missing
    if question.kind == "unanswerable" and not complete:
        return Mark.RIGHT if abstained and not violated else Mark.WRONG
    if abstained and reason != CORRECTED and not (complete and not late and not violated):
        return Mark.OFFERED if reason == OFFERED else Mark.REFUSED
    if violated or (missing and missing == len(question.must)):
        return Mark.WRONG
    return Mark.RIGHT if not missing and not late else Mark.PARTIAL


def _stands(fact: Fact, text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in fact)
