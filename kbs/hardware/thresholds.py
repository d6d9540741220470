"""Judges threshold rows against the values of a profile, with the arithmetic shown.

A row's metric is a name of Nsight Compute, or two of them with `/`, `-`, `+` or `×` between. Rows know nothing of where
values come from: a function gives them.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext

from kbs.evidence.citation import Citation
from kbs.evidence.table_rows import ThresholdRow
from kbs.evidence.units import format_number, parse_number, parse_unit
from kbs.hardware.profile_metrics import DERIVED, profile_metrics

_EXPRESSION = re.compile(r"(?P<left>\S+)(?:\s+(?P<sign>[-+/×*])\s+(?P<right>\S+))?")
_TESTS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATORS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": operator.add,
    "-": operator.sub,
    "×": operator.mul,
    "*": operator.mul,
    "/": operator.truediv,
}
DIGITS = 4
"""Significant digits of a computed value."""
_BASES = {"seconds": ("us", Decimal(10**6)), "bytes": ("B", Decimal(1)), "percent": ("%", Decimal(100))}
"""Unit that profiles have for a dimension of the vocabulary, and how many of it its base unit is."""


@dataclass(frozen=True)
class Reading:
    """A value that a profile states."""

    name: str
    """The name that it has there."""
    value: Decimal
    unit: str
    """us, B, B/s, Hz, %, or empty."""
    shown: str
    """As it stands there, with its unit."""
    steps: tuple[str, ...] = ()
    """How it was computed, `a + b = c`; empty if it is in the profile as it is."""


Readings = Callable[[str], Reading | None]
"""The value under a name of Nsight Compute, or under another for the same thing; None if there is none."""


@dataclass(frozen=True)
class Judgement:
    """One row, or several that say the same, compared with a profile."""

    rows: tuple[ThresholdRow, ...]
    """Rows of one symptom, metric, test, value and source, on one or more pages."""
    readings: tuple[Reading, ...]
    value: Decimal
    """In the unit of the threshold."""
    unit: str
    threshold: Decimal
    holds: bool
    """Whether the row says that the symptom is there."""
    arithmetic: str
    """How the value was computed, `a / b = c`, several sums with ` ; ` between; empty if it is in the profile as
    it is."""

    @property
    def row(self) -> ThresholdRow:
        """The first of the rows."""
        return self.rows[0]

    @property
    def source(self) -> str:
        """The id of the rows' source on their page."""
        return source_id(self.row)

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Where the rows stand."""
        return tuple(row.citation for row in self.rows)

    @property
    def limit(self) -> str:
        """The threshold as the row has it, with its unit."""
        return f"{self.row.value} {self.row.unit}".strip()

    @property
    def said(self) -> str:
        """`memory throughput 91.2 % > 80 %`, or `a / b: 30 / 40 = 0.75, not < 0.5`."""
        names = names_of(self.row)
        ours = profile_metrics().by_ncu.get(names[0]) or DERIVED.get(names[0]) if len(names) == 1 else None
        name = ours.name if ours else self.row.metric
        value = f"{name}: {self.arithmetic}," if self.arithmetic else f"{name} {self.readings[0].shown}"
        return f"{value} {'' if self.holds else 'not '}{self.row.test} {self.limit}"


@dataclass(frozen=True)
class Unjudged:
    """A row that cannot be compared with the profile."""

    row: ThresholdRow
    missing: tuple[str, ...]
    """Metrics that the profile does not have; empty if the row itself cannot be read."""
    why: str


def source_id(row: ThresholdRow) -> str:
    """The id that a row's source has on its page."""
    return row.source.split()[0] if row.source.split() else ""


def names_of(row: ThresholdRow) -> tuple[str, ...]:
    """The metrics that a row is about."""
    match = _EXPRESSION.fullmatch(row.metric.strip())
    return tuple(filter(None, (match["left"], match["right"]))) if match else ()


def judge(row: ThresholdRow, readings: Readings) -> Judgement | Unjudged:
    """Judge one row against a profile."""
    match = _EXPRESSION.fullmatch(row.metric.strip())
    number = parse_number(row.value)
    limit = _limit(row)
    if match is None or number is None or limit is None or row.test not in _TESTS:
        return Unjudged(row, (), f"the row cannot be read: {row.metric} {row.test} {row.value} {row.unit}".rstrip())
    unit, threshold = limit
    names = names_of(row)
    found = [readings(name) for name in names]
    missing = tuple(name for name, reading in zip(names, found, strict=True) if reading is None)
    if missing:
        without = [DERIVED[name].without for name in missing if name in DERIVED and DERIVED[name].without]
        words = [DERIVED[name].name if name in DERIVED else name for name in missing]
        return Unjudged(row, missing, without[0] if without else f"the profile has no {' and no '.join(words)}")
    have = tuple(reading for reading in found if reading is not None)
    if len(have) == 1:
        value, its_unit, arithmetic = have[0].value, have[0].unit, " ; ".join(have[0].steps)
    else:
        computed = compute(have[0], match["sign"], have[1])
        if computed is None:
            return Unjudged(row, (), f"{row.metric} cannot be computed from {have[0].shown} and {have[1].shown}")
        value, its_unit, last = computed
        arithmetic = " ; ".join((*have[0].steps, *have[1].steps, last))
    if its_unit != unit:
        said = its_unit or "a bare number"
        return Unjudged(row, (), f"{row.metric} is {said} in the profile, and {unit or 'a bare number'} in the row")
    return Judgement((row,), have, value, unit, threshold, _TESTS[row.test](value, threshold), arithmetic)


def compute(left: Reading, sign: str, right: Reading) -> tuple[Decimal, str, str] | None:
    """Value, unit and written arithmetic of two readings; None if they cannot be put together."""
    if sign == "/" and right.value == 0:
        return None
    if sign in ("+", "-") and left.unit != right.unit:
        return None
    if sign == "/":
        unit = "" if left.unit == right.unit else left.unit
        if right.unit not in ("", left.unit):
            return None
    elif sign in ("×", "*"):
        unit = left.unit or right.unit
        if left.unit and right.unit:
            return None
    else:
        unit = left.unit
    with localcontext() as context:
        context.prec = 40
        value = _OPERATORS[sign](left.value, right.value)
    bare = sign == "/" and left.unit == right.unit
    terms = [f"{plain(one.value)}{'' if bare or not one.unit else ' ' + one.unit}" for one in (left, right)]
    return value, unit, f"{terms[0]} {sign} {terms[1]} = {_short(value)} {unit}".rstrip()


def _limit(row: ThresholdRow) -> tuple[str, Decimal] | None:
    """Unit of a profile and value of a row's threshold."""
    number = parse_number(row.value)
    if number is None:
        return None
    if not row.unit:
        return "", number.value
    unit = parse_unit(row.unit)
    if unit is None:
        return None
    base = _BASES.get(unit.dimension)
    return (base[0], number.value * unit.scale * base[1]) if base else ("", number.value * unit.scale)


def plain(value: Decimal) -> str:
    """All digits of a value, without zeros at its end."""
    return f"{value.normalize():f}"


def _short(value: Decimal) -> str:
    return format_number(value, DIGITS) if value >= 0 else f"-{format_number(-value, DIGITS)}"


def judge_all(
    rows: Sequence[ThresholdRow], readings: Readings
) -> tuple[dict[str, list[Judgement]], tuple[Unjudged, ...]]:
    """Judgements by the expression that they are about, in the order of the rows; what could not be judged.

    Rows that say the same of one source, on whatever pages, are one judgement.
    """
    judged: dict[tuple[str, ...], Judgement] = {}
    unjudged: dict[tuple[str, ...], Unjudged] = {}
    for row in rows:
        made = judge(row, readings)
        key = (row.metric, row.test, row.value, row.unit, source_id(row))
        if isinstance(made, Unjudged):
            unjudged.setdefault(key, made)
        elif key in judged:
            old = judged[key]
            judged[key] = Judgement((*old.rows, row), *(getattr(old, name) for name in _REST))
        else:
            judged[key] = made
    found: dict[str, list[Judgement]] = {}
    for judgement in judged.values():
        found.setdefault(judgement.row.metric, []).append(judgement)
    return found, tuple(unjudged.values())


_REST = ("readings", "value", "unit", "threshold", "holds", "arithmetic")
