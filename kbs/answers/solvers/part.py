"""What one solver says, and how much of the question it accounts for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kbs.answers.model import Claim, Section
from kbs.questions.forms import Form
from kbs.questions.question import Question

OTHER_FORM = 0.6
"""What a part counts for that answers another form of question: a value where a reason was asked for."""


@dataclass(frozen=True)
class Part:
    """What a solver says: an answer, or a "no" with its reason."""

    direct: tuple[Claim, ...]
    """The answer, its first claim first."""
    uses: tuple[str, ...]
    """The kinds of slots that it accounts for."""
    forms: Collection[Form]
    """The forms of question that it answers."""
    sections: tuple[Section, ...] = ()
    gaps: tuple[str, ...] = ()
    refusal: str = ""
    """Why it is no answer, as a stable word; empty where it is one."""
    whole: bool = False
    """It accounts for every word: the question asks for just this."""


def parts(titled: Mapping[str, Sequence[Claim]]) -> tuple[Section, ...]:
    """Sections of claims by title; empty ones are left out."""
    return tuple(Section(title, tuple(claims)) for title, claims in titled.items() if claims)


def fit(part: Part, question: Question, weights: Mapping[str, float]) -> float:
    """From 0 to 1: the share of the question's words that a part accounts for, less where another form was asked.

    The mean of two shares: of the words of the sentence that asks, and of those of the whole text. "Is that expected?"
    at the end of a long post says nothing by itself.
    """
    form = 1.0 if question.form in part.forms else OTHER_FORM
    if part.whole:
        return form
    return form * (_share(part, question, weights, False) + _share(part, question, weights, True)) / 2


def _share(part: Part, question: Question, weights: Mapping[str, float], everywhere: bool) -> float:
    every = sum(weights.get(word, 0.0) for word in question.left(everywhere=everywhere))
    left = sum(weights.get(word, 0.0) for word in question.left(*part.uses, everywhere=everywhere))
    return 1 - left / every if every else 1.0
