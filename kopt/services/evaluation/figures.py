"""Figures of an evaluation: shares with their intervals, counts, bands of scores, bars, and what changed."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kbs.common.errors import UsageError
from kbs.common.json_model import JsonDataclass
from kopt.services.evaluation.answers import Judged, Mark
from kopt.services.evaluation.retrieval import DEPTH, ENGINE, Found

RESAMPLES = 2000
LEVEL = 0.95
RECALLS = (1, 2, 5)
BAND = 0.1
"""Width of a band of scores."""


@dataclass(frozen=True)
class Interval(JsonDataclass):
    """A mean over questions, and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SearchFigures(JsonDataclass):
    """How well one way to search finds gold sections."""

    name: str
    questions: int
    recall: dict[str, Interval]
    """`1`, `2`, `5`: share of questions with a gold section among so many."""
    mrr: Interval
    """Mean of 1 / rank of the best gold section, 0 beyond the depth."""


@dataclass(frozen=True)
class GroupFigures(JsonDataclass):
    """The marks and facts of some questions."""

    by: str
    """What they have in common: file, form, kind, wiki (whether it has the answer) or solved (by section, solver)."""
    name: str
    questions: int
    right: int
    partial: int
    wrong: int
    offered: int
    refused: int
    first: float | None
    """Share of the facts of `first` in the first three lines; null where there are none."""
    must: float | None
    """Share of the facts of `must` in the text."""
    violated: int
    """Answers that say what they must not."""


@dataclass(frozen=True)
class Outcome(JsonDataclass):
    """How many questions of a kind came to the same: `answered`, or the reason of an abstention."""

    kind: str
    in_wiki: bool
    outcome: str
    count: int


@dataclass(frozen=True)
class Band(JsonDataclass):
    """Questions whose first section scored in a band."""

    low: float
    right: int
    """It is gold."""
    wrong: int
    """Another one is."""
    none: int
    """No section is: rows of tables answer, or nothing does."""
    reliability: Interval | None
    """Share of right ones among those that some section answers."""


@dataclass(frozen=True)
class Bar(JsonDataclass):
    """What a figure must reach."""

    figure: str
    least: float | None
    most: float | None
    value: float | None
    """Null where the questions do not measure it."""
    met: bool


@dataclass(frozen=True)
class Changes(JsonDataclass):
    """Against an earlier run: questions by id that both have."""

    file: str
    gained: tuple[str, ...]
    """Right now, and not then."""
    lost: tuple[str, ...]
    """Right then, and not now."""


def interval(values: Sequence[float], seed: int = 1) -> Interval:
    """Of the mean: percentiles of the means of questions drawn with replacement. Source: B. Efron and R. J. Tibshirani,
    An Introduction to the Bootstrap, 1993, section 13.3."""
    given = np.asarray(values, dtype=np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(given), size=(RESAMPLES, len(given)))
    low, high = np.quantile(given[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(*(round(float(one), 4) for one in (given.mean(), low, high)))


def share(part: int, whole: int) -> Interval:
    """Of a few questions, where drawing with replacement says nothing: Wilson's score interval. Source: E. B. Wilson,
    Probable Inference, the Law of Succession, and Statistical Inference, 1927."""
    value, square = part / whole, 1.96**2
    middle = (value + square / (2 * whole)) / (1 + square / whole)
    half = 1.96 * math.sqrt(value * (1 - value) / whole + square / (4 * whole**2)) / (1 + square / whole)
    return Interval(round(value, 4), round(max(middle - half, 0.0), 4), round(min(middle + half, 1.0), 4))


def search_figures(found: Sequence[Found]) -> list[SearchFigures]:
    """Of each way to search, the engine's first. Empty where no question has a gold section."""
    ranked = [one.ranks for one in found if one.ranks]
    figures = []
    for name in ranked[0] if ranked else ():
        ranks = [one[name] for one in ranked]
        recall = {str(k): interval([float(0 < rank <= k) for rank in ranks]) for k in RECALLS}
        mrr = interval([1 / rank if 0 < rank <= DEPTH else 0.0 for rank in ranks])
        figures.append(SearchFigures(name, len(ranks), recall, mrr))
    return figures


def groups(judged: Sequence[Judged]) -> list[GroupFigures]:
    """All questions, then by each of what they have in common."""
    shared: dict[str, Callable[[Judged], str]] = {
        "all": lambda _: "all questions",
        "file": lambda one: one.file,
        "wiki": lambda one: "the wiki has it" if one.in_wiki else "the wiki does not have it",
        "solved": lambda one: {"section": "by a section", "solver": "by rows or a sum"}.get(one.by, "by nothing here"),
        "kind": lambda one: one.kind,
        "form": lambda one: one.form or "not stated",
    }
    return [
        _group(by, name, [one for one in judged if key(one) == name])
        for by, key in shared.items()
        for name in dict.fromkeys(map(key, judged))
    ]


def _group(by: str, name: str, some: Sequence[Judged]) -> GroupFigures:
    marks = Counter(one.mark for one in some)
    return GroupFigures(
        by=by,
        name=name,
        questions=len(some),
        right=marks[Mark.RIGHT],
        partial=marks[Mark.PARTIAL],
        wrong=marks[Mark.WRONG],
        offered=marks[Mark.OFFERED],
        refused=marks[Mark.REFUSED],
        first=_ratio(sum(one.first for one in some), sum(one.first_of for one in some)),
        must=_ratio(sum(one.must for one in some), sum(one.must_of for one in some)),
        violated=sum(bool(one.violated) for one in some),
    )


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None


def outcomes(judged: Sequence[Judged]) -> list[Outcome]:
    """What questions of each kind came to, the most frequent first."""
    counted = Counter(
        (one.kind, one.in_wiki, (one.reason or "abstained") if one.abstained else "answered") for one in judged
    )
    return [
        Outcome(*key, count)
        for key, count in sorted(counted.items(), key=lambda item: (item[0][0], not item[0][1], -item[1]))
    ]


def bands(found: Sequence[Found]) -> list[Band]:
    """By the score of the first section, the lowest band first; empty bands between others are there."""
    scored = [(math.floor(one.scores[0] / BAND), one) for one in found if one.scores]
    if not scored:
        return []
    made = []
    for number in range(min(n for n, _ in scored), max(n for n, _ in scored) + 1):
        here = [one for n, one in scored if n == number]
        ranked = [one.ranks[ENGINE] == 1 for one in here if one.ranks]
        right = sum(ranked)
        reliability = share(right, len(ranked)) if ranked else None
        made.append(Band(round(number * BAND, 4), right, len(ranked) - right, len(here) - len(ranked), reliability))
    return made


def headline(judged: Sequence[Judged], searches: Sequence[SearchFigures]) -> dict[str, float]:
    """The figures that a bar may name; those that the questions do not measure are left out."""
    known = [one for one in judged if one.in_wiki]
    tricky = [one for one in judged if one.kind != "answerable"]
    answerable = [one for one in known if one.kind == "answerable"]
    spoken = [one.lines for one in judged if one.lines]

    def part(some: Sequence[Judged], mark: Callable[[Judged], bool]) -> float | None:
        return _ratio(sum(map(mark, some)), len(some))

    figures: dict[str, float | None] = {
        "answers.right": part(known, lambda one: one.mark is Mark.RIGHT),
        "answers.right_or_offered": part(
            known, lambda one: one.mark is Mark.RIGHT or (one.mark is Mark.OFFERED and one.gold_shown)
        ),
        "answers.wrong": part(known, lambda one: one.mark is Mark.WRONG),
        "answers.refused": part(answerable, lambda one: one.mark is Mark.REFUSED),
        "answers.right_of_all": part(judged, lambda one: one.mark is Mark.RIGHT),
        "answers.as_if_right": part(tricky, lambda one: one.as_if_right),
        "answers.first": _group("", "", known).first,
        "answers.must": _group("", "", known).must,
        "answers.must_not": float(sum(bool(one.violated) for one in judged)),
        "answers.median_lines": float(np.median(spoken)) if spoken else None,
    }
    if searches:
        engine, *others = searches
        figures |= {f"retrieval.recall@{k}": engine.recall[str(k)].value for k in RECALLS}
        figures["retrieval.mrr"] = engine.mrr.value
        lead = [engine.recall[str(k)].value - max(one.recall[str(k)].value for one in others) for k in RECALLS]
        figures["retrieval.lead"] = round(min(lead), 4)
    return {name: value for name, value in figures.items() if value is not None}


class _StatedBar(BaseModel):
    model_config = ConfigDict(extra="forbid")

    figure: str
    least: float | None = None
    most: float | None = None


class _Bars(BaseModel):
    model_config = ConfigDict(extra="forbid")

    bar: Annotated[list[_StatedBar], Field(min_length=1)]


def read_bars(path: Path) -> list[_StatedBar]:
    """The bars of a TOML file. Raises `UsageError` (`bars_unreadable`)."""
    try:
        return _Bars.model_validate(tomllib.loads(path.read_text("utf-8"))).bar
    except (OSError, ValueError) as error:
        said = str(error.errors()[0]["msg"]) if isinstance(error, ValidationError) else str(error)
        said = getattr(error, "strerror", None) or said
        raise UsageError(
            f"the bars in {path} cannot be read: {said}",
            code="bars_unreadable",
            hint='A bar is [[bar]] with figure = "retrieval.recall@1" and least = 0.7, or most.',
        ) from error


def hold(stated: Sequence[_StatedBar], figures: Mapping[str, float]) -> list[Bar]:
    """The bars beside the figures; one that was not measured is not met."""
    held = []
    for one in stated:
        value = figures.get(one.figure)
        met = (
            value is not None and (one.least is None or value >= one.least) and (one.most is None or value <= one.most)
        )
        held.append(Bar(one.figure, one.least, one.most, value, met))
    return held


def changes(path: Path, judged: Sequence[Judged]) -> Changes:
    """Against what `kopt eval --json` printed earlier. Raises `UsageError` (`earlier_unreadable`)."""
    try:
        stated: Any = json.loads(path.read_text("utf-8"))
        then = {str(one["id"]): one["mark"] == Mark.RIGHT for one in stated.get("data", stated)["answers"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is no earlier evaluation: {error}",
            code="earlier_unreadable",
            hint="Keep one with `kopt eval --json > FILE`, or take evaluation.json of a report's folder.",
        ) from error
    now = {one.id: one.mark is Mark.RIGHT for one in judged if one.id in then}
    return Changes(
        path.name,
        gained=tuple(id for id, right in now.items() if right and not then[id]),
        lost=tuple(id for id, right in now.items() if then[id] and not right),
    )
