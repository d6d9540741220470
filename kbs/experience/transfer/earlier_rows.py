"""What the rows before one took: a row that has a time or a rate of its own is compared with them."""

from __future__ import annotations

import re
from typing import Any

from kbs.experience.experiment import Outcome
from kbs.experience.transfer.fields import Field, plain_name, words_of
from kbs.experience.transfer.results import Result, cost, measures

_NAMED = ("kept", "last", "best", "first", "elsewhere")
_MOST = 20_000
"""No more rows of a table are kept in mind."""


class EarlierRows:
    """The rows of a file by their series: the kernel, the GPU, the table, the sizes, and what was measured."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, ...], dict[str, float]] = {}
        self._numbers: dict[tuple[str, ...], int] = {}
        self._judged: set[tuple[str, ...]] = set()

    def before(
        self, series: tuple[str, ...], own: list[Field], label: str, title: str = ""
    ) -> tuple[dict[str, float], Field | None]:
        """(what a record may have changed, as costs by what they are to it: its parent, the step before, what was kept
        last, and in a table that begins with a baseline the first row, the last one and the best one; by what it was
        measured): the first of its measures that earlier rows have too."""
        parts, number = _bare(label).split(" + ")[:9], _number(own)
        counted = any(one.role == "iteration" and plain_name(one.key) in words_of("rows")["steps"] for one in own)
        steps = label.startswith("+") or counted or any(word in title.lower() for word in words_of("rows")["progress"])
        for timed in measures(own):
            rows = self._series.get((*series, timed.path), {})
            found = {name: took for name, took in rows.items() if name in _NAMED}
            if found and number is not None and self._numbers.get(series[:3], number) < number - 1:
                found = {"gap": rows.pop("kept", 0.0)}  # what was tried, and kept, in between is not told
            built_on = [rows.get(f"on {' + '.join(parts[:count])}") for count in range(len(parts) - 1, 0, -1)]
            for name, took in (
                *(("parent", rows.get(f"id {one.value}")) for one in own if one.role == "parent"),
                ("step", rows.get("last") if steps else next(filter(None, built_on), None)),
                ("judges", rows.get("kept") if series[:3] in self._judged else None),
            ):
                found |= {name: took} if took else {}
            if found:
                return found, timed
        return {}, next(iter(measures(own)), None)

    def add(self, series: tuple[str, ...], own: list[Field], label: str, baseline: bool, result: Result) -> None:
        """Keep in mind what a record took by each of its measures, unless it failed."""
        if (number := _number(own)) is not None:
            self._numbers[series[:3]] = number
        if result.unkept and any(one.role in ("correct", "outcome") for one in own):
            self._judged.add(series[:3])
        if result.outcome in (Outcome.FAILED, Outcome.INCORRECT, Outcome.REJECTED):
            return
        for one in measures(own):
            self._add((*series, one.path), cost(one.value, one.unit), own, label, baseline, result)

    def _add(
        self, series: tuple[str, ...], took: float, own: list[Field], label: str, baseline: bool, result: Result
    ) -> None:
        rows = self._series.setdefault(series, {})
        if result.elsewhere:
            rows["elsewhere"] = took
        if result.kept:
            rows["kept"] = took
        if baseline:
            rows.pop("best", None)
            rows["first"] = took
        if "first" in rows:
            rows["last"], rows["best"] = took, min(rows.get("best", took), took)
        for name in (*(f"id {one.value}" for one in own if one.role == "id"), f"on {_bare(label)}"):
            if len(rows) < _MOST:
                rows[name] = took


def _bare(label: str) -> str:
    return re.sub(r"\s*\([^)]*\)", "", label.lower())


def sizes(own: list[Field]) -> list[Any]:
    """What stands in columns such as `N` and `batch size`: rows of other sizes are not compared."""
    return [(one.key, one.value) for one in own if plain_name(one.key) in words_of("rows")["sizes"]]


def _number(own: list[Field]) -> int | None:
    """Its place in the log, as it is written."""
    found = (str(one.value).strip() for one in own if one.role in ("iteration", "label"))
    return next((int(text) for text in found if re.fullmatch(r"\d{1,7}", text)), None)
