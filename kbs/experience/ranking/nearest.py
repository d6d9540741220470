"""The experiments in the most similar circumstances, whatever came of them."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from kbs.experience.experiment import Outcome
from kbs.experience.ranking.recommend import SIMILAR
from kbs.experience.ranking.similarity import FACTORS, Situation, like_ops, similarities
from kbs.experience.ranking.trials import PLACE, Trials, days, short


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
