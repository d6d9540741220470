"""Pictures of an evaluation: recall of each search, marks by form, and the scores of first sections."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from kbs.common.visible_text import visible
from kopt.services.plots.picture import draw_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kopt.services.evaluation.figures import Band, GroupFigures, SearchFigures

MARK = "kopt eval"
"""Stands in the metadata of every picture."""
_MARKS = {"right": "#009e73", "partial": "#f0e442", "offered": "#56b4e9", "refused": "#999999", "wrong": "#d55e00"}
_RECALLS = {"1": "#0072b2", "2": "#56b4e9", "5": "#e69f00"}
"""Told apart by the colour-blind: M. Okabe and K. Ito, Color Universal Design, 2008."""


def paint(searches: Sequence[SearchFigures], groups: Sequence[GroupFigures], bands: Sequence[Band]) -> dict[str, bytes]:
    """name → bytes of each picture, as SVG. Empty where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return {}
    forms = [one for one in groups if one.by in ("all", "wiki", "kind", "form")]
    drawn = {"marks.svg": draw_picture(partial(_marks, forms), (8.4, 1.2 + 0.28 * len(forms)), MARK, "svg")}
    if searches:
        drawn["recall.svg"] = draw_picture(partial(_recall, searches), (8.4, 4.2), MARK, "svg")
    if bands:
        drawn["scores.svg"] = draw_picture(partial(_scores, bands), (8.4, 5.2), MARK, "svg")
    return drawn


def _recall(searches: Sequence[SearchFigures], figure: Figure) -> None:
    """Bars of recall with their intervals, a group a search."""
    axes = figure.subplots()
    places = np.arange(len(searches))
    for number, (k, colour) in enumerate(_RECALLS.items()):
        found = [one.recall[k] for one in searches]
        ends = [[one.value - one.low for one in found], [one.high - one.value for one in found]]
        axes.bar(
            places + 0.27 * (number - 1), [one.value for one in found], 0.25,
            yerr=ends, color=colour, ecolor="black", error_kw={"linewidth": 0.8}, label=f"recall@{k}",
        )  # fmt: skip
    axes.set_xticks(places, [visible(one.name) for one in searches], fontsize=7, rotation=15)
    axes.set_ylim(0, 1)
    axes.set_title(f"A gold section among the first, {searches[0].questions} questions, 95 % intervals", fontsize=10)
    axes.grid(axis="y", linewidth=0.3)
    axes.tick_params(axis="y", labelsize=8)
    axes.legend(fontsize=7, loc="upper right", ncols=3)


def _marks(groups: Sequence[GroupFigures], figure: Figure) -> None:
    """Shares of the marks, a line a group."""
    axes = figure.subplots()
    names = [f"{visible(one.name)} ({one.questions})" for one in groups]
    left = np.zeros(len(groups))
    for mark, colour in _MARKS.items():
        shares = np.array([getattr(one, mark) / one.questions for one in groups])
        axes.barh(names, shares, left=left, color=colour, height=0.7, label=mark)
        left += shares
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_title("Marks, by what questions have in common", fontsize=10)
    axes.tick_params(labelsize=7)
    figure.legend(*axes.get_legend_handles_labels(), fontsize=7, loc="outside lower center", ncols=len(_MARKS))


def _scores(bands: Sequence[Band], figure: Figure) -> None:
    """What the first section of each band was, and below how often it was gold."""
    counts, shares = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    width = (bands[1].low - bands[0].low) if len(bands) > 1 else 0.1
    middles = np.array([band.low for band in bands]) + width / 2
    bottom = np.zeros(len(bands))
    for name, label, colour in (
        ("right", "it is gold", _MARKS["right"]),
        ("wrong", "another section is", _MARKS["wrong"]),
        ("none", "no section answers", _MARKS["refused"]),
    ):
        values = np.array([getattr(band, name) for band in bands], dtype=float)
        counts.bar(middles, values, 0.9 * width, bottom=bottom, color=colour, label=label)
        bottom += values
    counts.set_ylabel("questions", fontsize=8)
    counts.set_title("Score of the first section", fontsize=10)
    counts.legend(fontsize=7)
    known = [(middle, band.reliability) for middle, band in zip(middles, bands, strict=True) if band.reliability]
    ends = [[one.value - one.low for _, one in known], [one.high - one.value for _, one in known]]
    shares.errorbar(
        [middle for middle, _ in known], [one.value for _, one in known], yerr=ends,
        fmt="o-", color=_RECALLS["1"], capsize=3, linewidth=1.0,
    )  # fmt: skip
    shares.set_ylim(0, 1)
    shares.set_ylabel("share gold", fontsize=8)
    shares.set_xlabel("score", fontsize=8)
    for axes in (counts, shares):
        axes.grid(axis="y", linewidth=0.3)
        axes.tick_params(labelsize=7)
