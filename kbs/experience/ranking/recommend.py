"""Recommends methods from similar past experiments. docs/experience.md describes the ranking.

For each method the gain of one attempt is estimated. At every size of gain, the weight of the successes that were at
least that large stands against the weight of the attempts that were none; the estimate is the sum over all sizes. So a
success never lowers its method and a failure never raises it, which a weighted mean does not hold. Where little was
tried nearby, the estimate leans on what the method did for this operation, and that on what it did for any.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kbs.common.json_model import JsonDataclass
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import NO_TRIAL, Outcome
from kbs.experience.ranking.similarity import CIRCUMSTANCES, FACTORS, Situation, like_ops, similarities
from kbs.experience.ranking.trials import PLACE, Trials, code, days, short

SIMILAR = 0.05
"""Least similarity of the record of this operation, or of one like it, without which nothing is recommended."""
RELATED = 0.01
"""Least similarity of a success, of whatever operation, that a recommended method has."""
WARNING = 0.2
"""Least similarity of a failure that is warned of."""
RULED_OUT = 1.0
"""By how many wholly similar attempts failures nearby must outweigh successes for a method not to be recommended."""
LEAST_GAIN = math.log(1.003)
"""Least estimate of a method that is recommended."""
REPORTED = 0.5
"""Weight of a record without a receipt, beside one with it."""
TYPICAL = 0.1
"""Standard deviation of the log effects of methods: a record with an interval as wide counts half."""
REPORTED_SPREAD = 0.05
"""Standard deviation that a speedup without an interval is taken to have."""
ENOUGH = 0.15
"""Gains, as logs, count as `1 - exp(-gain / ENOUGH)`: one that is likely goes before one that is large and rare."""
SKEPTICISM, LEAN_OP, LEAN_NEAR = 3.0, 4.0, 1.0
"""How many attempts that came to nothing every method starts with; how many attempts the widest estimate stands for in
that of the operation; and how many that one in the near one."""
FAILURES = (Outcome.INCORRECT, Outcome.FAILED, Outcome.REGRESSION)
_OUTCOMES = {place: outcome for outcome, place in PLACE.items()}


@dataclass(frozen=True)
class Similar(JsonDataclass):
    """A record that a recommendation or a warning rests on."""

    reference: str
    """`log/<id>`"""
    similarity: float
    """From 0 to 1: the product of `factors`."""
    factors: Mapping[str, float]
    outcome: Outcome
    speedup: float | None
    """Time before over time after; of several methods, this one's share. None if no time was compared."""


@dataclass(frozen=True)
class Recommendation(JsonDataclass):
    """A method to try."""

    method: str
    speedup: float
    """Time before over time after that one attempt is expected to bring. Attempts without gain count as 1."""
    successes: int
    """Related records in which it helped."""
    others: int
    """Related records in which it did not."""
    factors: Mapping[str, float]
    """Factor → what it adds to the logarithm of `speedup`, beside an estimate without it. Empty if nothing is
    explained."""
    records: tuple[Similar, ...]
    """The most similar successes."""
    failed: tuple[Similar, ...] = ()
    """Very similar records in which it failed."""


@dataclass(frozen=True)
class Warned(JsonDataclass):
    """A method that failed in similar circumstances more than it helped, and is not recommended."""

    method: str
    failures: int
    """Related records in which it was wrong, did not run, or made the kernel slower."""
    successes: int
    records: tuple[Similar, ...]
    """The most similar failures."""


@dataclass(frozen=True)
class Advice:
    """What the log has to say of a situation."""

    recommended: tuple[Recommendation, ...]
    failures: tuple[Warned, ...]
    """Known failures."""
    why: str
    """Why nothing is recommended; empty if something is."""
    considered: int
    """Similar records."""
    nearest: tuple[Similar, ...] = ()
    """The most similar records beside those above, such as attempts that nobody timed."""
    shipped: tuple[str, ...] = ()
    """Of all these records, `log/<id>` of those that ship with kopt."""

    @property
    def named(self) -> set[str]:
        """`log/<id>` of every record that it names."""
        records = [one for good in self.recommended for one in (*good.records, *good.failed)]
        records += [one for bad in self.failures for one in bad.records]
        return {one.reference for one in (*records, *self.nearest)}


@dataclass(frozen=True)
class _Methods:
    """The rows of some methods: each method's side by side, its successes first, the largest gain first."""

    places: NDArray[np.intp]
    """Where the rows stand among all."""
    starts: NDArray[np.intp]
    """Where each method begins among these."""
    worth: NDArray[np.float64]
    """What each gain is worth, from 0 to 1; 0 where the attempt was not a success."""
    own: NDArray[np.float64]
    """How much each row counts by itself."""
    alike: Mapping[str, NDArray[np.float64]]
    """Factor → similarity of each row."""

    @classmethod
    def of(
        cls,
        rows: NDArray[Any],
        chosen: NDArray[np.bool_],
        timed: NDArray[np.bool_],
        own: NDArray[np.float64],
        alike: Mapping[str, NDArray[np.float64]],
    ) -> Self:
        """The methods of the rows that were chosen, at least one; `timed`: successes that say how much they gained."""
        places = np.flatnonzero(chosen)
        worth = np.where(timed[places], -np.expm1(-np.maximum(rows["gain"][places], 0.0) / ENOUGH), 0.0)
        methods = np.ascontiguousarray(rows["method"][places])
        order = np.lexsort((-worth, methods))
        places, methods = places[order], methods[order]
        starts = np.flatnonzero(np.append(True, methods[1:] != methods[:-1]))
        return cls(places, starts, worth[order], own[places], {name: alike[name][places] for name in FACTORS})

    def gains(self, ignored: str = "") -> NDArray[np.float64]:
        """The log of the sure speedup that an attempt of each method is worth, without one factor where it is named.

        Rounded, so that the order in which records are summed does not show.
        """
        factor = {**self.alike, ignored: np.ones(1)}
        circumstances = self.own
        for name in CIRCUMSTANCES:
            circumstances = circumstances * factor[name]
        of_op = circumstances * factor["op"]
        chance = self._chance(circumstances * np.sqrt(factor["shape"]), 0.0, SKEPTICISM)
        chance = self._chance(of_op, chance, LEAN_OP)
        chance = self._chance(of_op * factor["shape"], chance, LEAN_NEAR)
        following = np.append(self.worth[1:], 0.0)
        following[self.starts[1:] - 1] = 0.0
        worth = np.add.reduceat((self.worth - following) * chance, self.starts)
        return np.asarray(np.round(-ENOUGH * np.log1p(-np.minimum(worth, 1 - 1e-12)), 12))

    def _chance(
        self, weight: NDArray[np.float64], wider: NDArray[np.float64] | float, lean: float
    ) -> NDArray[np.float64]:
        """At each success: how probable a gain of at least its size is."""
        lengths = np.diff(np.append(self.starts, len(weight)))
        success = self.worth > 0
        summed = np.cumsum(np.where(success, weight, 0.0))
        succeeded = summed - np.repeat(np.append(0.0, summed)[self.starts], lengths)
        failed = np.repeat(np.add.reduceat(np.where(success, 0.0, weight), self.starts), lengths)
        return np.asarray((succeeded + lean * wider) / (succeeded + failed + lean))


def recommend(
    asked: Situation, trials: Trials, now: datetime, count: int = 5, *, explain: bool = False, cited: int = 3
) -> Advice:
    """The methods that are expected to gain most, at most `count`, and known failures.

    `trials` are those of all experiments that are not masked, in any order. Records of a time after `now` count as new.
    """
    rows = trials.rows
    alike = similarities(rows, asked, days(now))
    similarity = np.ones(len(rows))
    for name in FACTORS:
        similarity *= alike[name]
    of_op = np.isin(rows["op"], [short(name) for name in like_ops(asked.op)]) | (not asked.op)
    near = of_op & (similarity >= SIMILAR)
    considered = len(np.unique(rows["id"][near]))
    if not considered:
        return Advice((), (), _nothing_near(asked, rows, alike, np.where(of_op, similarity, 0.0)), 0)
    success = (rows["outcome"] == PLACE[Outcome.SUCCESS]) & ~(rows["gain"] <= 0)
    timed = success & ~np.isnan(rows["gain"])
    failure = np.isin(rows["outcome"], [PLACE[outcome] for outcome in FAILURES])
    trial = ~np.isin(rows["outcome"], [PLACE[outcome] for outcome in NO_TRIAL])
    own = np.where(trial, _weights(rows), 0.0)
    view = _View(trials, alike, similarity, cited, near, success, failure, trial)
    against = view.against(own * similarity)
    own = np.where(success & ~timed, 0.0, own)  # it helped, and nobody says how much: it speaks for no size of gain
    ruled_out = [code(name) for name, weight in against.items() if weight > RULED_OUT]
    worthy = np.setdiff1d(rows["method"][timed & (similarity >= RELATED)], np.array(ruled_out, dtype=np.uint64))
    chosen = np.isin(rows["method"], worthy)
    best = _best(trials, _Methods.of(rows, chosen, timed, own, alike), count) if chosen.any() else []
    added: dict[str, dict[str, float]] = {name: {} for name, _ in best}
    if explain and best:
        among = np.isin(rows["method"], np.array([code(name) for name, _ in best], dtype=np.uint64))
        methods = _Methods.of(rows, among, timed, own, alike)
        gains = methods.gains()
        for factor in FACTORS:
            for name, gain in _named(trials, methods, gains - methods.gains(factor)):
                added[name][factor] = gain
    recommended = [view.recommendation(name, gain, added[name]) for name, gain in best]
    listed = {one.method for one in recommended}
    failed = sorted((name for name in against if name not in listed), key=lambda name: (-against[name], name))
    lacking = "none shows a method that helped more than it failed"
    if (near & success).any() and not (near & timed).any():
        lacking = "those that helped say no speedup"
    why = "" if recommended else f"of {considered} similar records, {lacking}"
    warned = tuple(view.warning(name) for name in failed)
    return Advice(tuple(recommended), warned, why, considered, view.nearest({*listed, *failed}))


def _named(trials: Trials, methods: _Methods, values: NDArray[np.float64]) -> list[tuple[str, float]]:
    codes = trials.rows["method"][methods.places[methods.starts]]
    return [(trials.names[int(method)], float(value)) for method, value in zip(codes, values, strict=True)]


def _best(trials: Trials, methods: _Methods, count: int) -> list[tuple[str, float]]:
    """The methods with the greatest estimates."""
    gains = _named(trials, methods, methods.gains())
    return sorted(((name, gain) for name, gain in gains if gain >= LEAST_GAIN), key=lambda one: (-one[1], one[0]))[
        :count
    ]


def _weights(rows: NDArray[Any]) -> NDArray[np.float64]:
    """How much each row counts by itself: its share of an attempt, its certainty, whether there is a receipt."""
    unknown = np.where(np.isnan(rows["gain"]), 0.0, REPORTED_SPREAD)
    spread = np.where(np.isnan(rows["spread"]), unknown, rows["spread"])
    certainty = TYPICAL**2 / (TYPICAL**2 + spread**2)
    return np.asarray(np.where(rows["measured"] == 1, 1.0, REPORTED) * certainty * rows["share"])


@dataclass(frozen=True)
class _View:
    """The rows and how similar they are, to cite from."""

    trials: Trials
    alike: Mapping[str, NDArray[np.float64]]
    similarity: NDArray[np.float64]
    cited: int
    near: NDArray[np.bool_]
    success: NDArray[np.bool_]
    failure: NDArray[np.bool_]
    trial: NDArray[np.bool_]
    """Rows that count for or against their method."""

    def against(self, weight: NDArray[np.float64]) -> dict[str, float]:
        """Methods with a very similar failure, whose failures nearby outweigh their successes, and by how much."""
        rows, found = self.trials.rows, {}
        for method in np.unique(rows["method"][self.near & self.failure & (self.similarity >= WARNING)]):
            mine = self.near & (rows["method"] == method)
            outweighed = math.fsum(weight[mine & self.failure]) - math.fsum(weight[mine & self.success])
            if outweighed > 0:
                found[self.trials.names[int(method)]] = outweighed
        return found

    def warning(self, name: str) -> Warned:
        """With the records that speak against the method."""
        mine = self.near & self._of(name)
        failed, helped = mine & self.failure, mine & self.success
        return Warned(name, int(failed.sum()), int(helped.sum()), self._records(failed))

    def recommendation(self, name: str, gain: float, factors: Mapping[str, float]) -> Recommendation:
        """With the records that it rests on."""
        mine = self._of(name) & (self.similarity >= RELATED)
        helped, failed = mine & self.success, mine & self.failure & self.near & (self.similarity >= WARNING)
        counts = int(helped.sum()), int((mine & self.trial & ~self.success).sum())
        return Recommendation(name, math.exp(gain), *counts, factors, self._records(helped), self._records(failed))

    def nearest(self, told: Collection[str]) -> tuple[Similar, ...]:
        """The most similar records with none of these methods, each once; the newest first of those equally similar."""
        rows = self.trials.rows
        ids = set(
            rows["id"][np.isin(rows["method"], np.array([code(name) for name in told], dtype=np.uint64))].tolist()
        )
        places = [place for place in np.flatnonzero(self.near).tolist() if rows["id"][place] not in ids]
        newest = sorted(places, key=lambda place: rows["id"][place], reverse=True)
        newest.sort(key=lambda place: -round(float(self.similarity[place]), 3))
        first = {rows["id"][place]: place for place in reversed(newest)}
        return tuple(self._record(place) for place in newest if first[rows["id"][place]] == place)[: self.cited]

    def _of(self, name: str) -> NDArray[np.bool_]:
        return np.asarray(self.trials.rows["method"] == code(name))

    def _records(self, chosen: NDArray[np.bool_]) -> tuple[Similar, ...]:
        rows = self.trials.rows
        places = np.flatnonzero(chosen)
        best = sorted(places.tolist(), key=lambda place: (-self.similarity[place], rows["id"][place]))[: self.cited]
        return tuple(self._record(place) for place in best)

    def _record(self, place: int) -> Similar:
        row = self.trials.rows[place]
        factors = {name: float(self.alike[name][place]) for name in FACTORS}
        speedup = math.exp(row["gain"]) if math.isfinite(row["gain"]) else None
        similarity, outcome = float(self.similarity[place]), _OUTCOMES[int(row["outcome"])]
        return Similar(f"log/{row['id'].decode()}", similarity, factors, outcome, speedup)


def _nothing_near(
    asked: Situation,
    rows: NDArray[Any],
    alike: Mapping[str, NDArray[np.float64]],
    similarity: NDArray[np.float64],
) -> str:
    """Why no record is similar: none is of the operation, or in what the nearest one differs."""
    if not len(rows):
        return "the log has no record that counts"
    if not similarity.any():
        recorded = [op for op in vocabulary().operations if op != asked.op and short(op) in rows["op"]]
        near = get_close_matches(asked.op, recorded, n=1)
        meant = f"; there are some of {near[0]}" if near else ""
        return f"no record is of {asked.op}, or of an operation like it{meant}"
    best = max(np.flatnonzero(similarity == similarity.max()).tolist(), key=lambda place: rows["id"][place])
    factors: Sequence[tuple[float, str]] = sorted((float(alike[name][best]), name) for name in FACTORS)
    far = ", ".join(f"{name} {value:.2f}" for value, name in factors[:3] if value < 1)
    return (
        f"the nearest record, log/{rows['id'][best].decode()}, has a similarity of {similarity[best]:.3f}, "
        f"less than {SIMILAR}: {far}"
    )


def nearest(
    trials: Trials, asked: Situation, now: datetime, count: int, least: float = SIMILAR
) -> list[tuple[str, float]]:
    """(id, similarity) of at most `count` experiments, the most similar first, and of equally similar ones successes.

    Where an operation is asked about, only it and its kin. Of several experiments with the same change and outcome,
    the most similar one.
    """
    rows = trials.rows
    alike = similarities(rows, asked, days(now))
    similarity = np.ones(len(rows))
    for factor in FACTORS:
        similarity *= alike[factor]
    if asked.op:
        similarity[~np.isin(rows["op"], [short(name) for name in like_ops(asked.op)])] = 0.0
    near = np.flatnonzero(similarity >= least)
    ids, outcomes = np.ascontiguousarray(rows["id"])[near], rows["outcome"][near]
    gains = np.nan_to_num(rows["gain"][near])
    order = np.lexsort((ids, -gains, outcomes != PLACE[Outcome.SUCCESS], -np.round(similarity[near], 3)))
    found: dict[str, float] = {}
    seen: set[tuple[int, int]] = set()
    for place in near[order].tolist():
        id, what = rows["id"][place].decode(), (int(rows["method"][place]), int(rows["outcome"][place]))
        if len(found) == count:
            break
        if id not in found and what not in seen:
            found[id] = float(similarity[place])
        seen.add(what)
    return list(found.items())
