"""Threshold rows held against values: units, sums with their arithmetic, and what cannot be judged."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.arithmetic import equation_holds
from kbs.evidence.citation import Citation
from kbs.evidence.table_rows import ThresholdRow
from kbs.hardware.thresholds import Judgement, Reading, Unjudged, compute, judge, judge_all

NUMBERS = st.decimals(min_value=0, max_value=10**12, places=3, allow_nan=False, allow_infinity=False)


def row(metric: str, test: str, value: str, unit: str = "", source: str = "src 1", symptom: str = "s") -> ThresholdRow:
    """A row on a line of its own."""
    return ThresholdRow(symptom, metric, test, value, unit, source, Citation("w", "p.md", 3, 3, "", "", "a quote"))


def readings(**values: tuple[str, str]) -> dict[str, Reading]:
    """Values with units."""
    return {name: Reading(name, Decimal(value), unit, f"{value} {unit}") for name, (value, unit) in values.items()}


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [(">", "80", True), (">", "91.5", False), (">=", "91.5", True), ("<", "91.6", True), ("<=", "91.4", False)],
)
def test_tests(test: str, value: str, holds: bool) -> None:
    found = judge(row("m", test, value, "%"), readings(m=("91.5", "%")).get)
    assert isinstance(found, Judgement)
    assert found.holds is holds
    assert found.arithmetic == ""


@pytest.mark.parametrize(
    ("value", "unit", "reading", "threshold"),
    [
        ("10", "us", ("9", "us"), Decimal(10)),
        ("0.01", "ms", ("9", "us"), Decimal(10)),
        ("16", "B", ("9", "B"), Decimal(16)),
        ("24", "threads", ("9", ""), Decimal(24)),
        ("0.5", "per cycle", ("0.1", ""), Decimal("0.5")),
        ("1.2", "x", ("0.1", ""), Decimal("1.2")),
        ("80", "%", ("9", "%"), Decimal(80)),
    ],
)
def test_units_of_the_wiki_are_those_of_profiles(
    value: str, unit: str, reading: tuple[str, str], threshold: Decimal
) -> None:
    found = judge(row("m", "<", value, unit), readings(m=reading).get)
    assert isinstance(found, Judgement)
    assert found.threshold == threshold
    assert found.holds


@pytest.mark.parametrize(
    ("threshold", "values"),
    [
        (row("m", ">", "1"), {}),
        (row("m / n", ">", "1"), {"m": ("1", "")}),
        (row("m / n", ">", "1"), {"m": ("1", ""), "n": ("0", "")}),
        (row("m - n", ">", "1"), {"m": ("1", "us"), "n": ("1", "B")}),
        (row("m", ">", "1", "%"), {"m": ("1", "us")}),
        (row("m", ">", "many"), {"m": ("1", "")}),
        (row("m", ">", "1", "furlongs"), {"m": ("1", "")}),
        (row("m / n / o", ">", "1"), {"m": ("1", ""), "n": ("1", ""), "o": ("1", "")}),
        (row("", ">", "1"), {}),
    ],
)
def test_nothing_is_guessed(threshold: ThresholdRow, values: dict[str, tuple[str, str]]) -> None:
    found = judge(threshold, readings(**values).get)
    assert isinstance(found, Unjudged)
    assert found.why


def test_what_is_missing_is_named() -> None:
    found = judge(row("m / n", ">", "1"), readings(m=("1", "")).get)
    assert isinstance(found, Unjudged)
    assert found.missing == ("n",)


@given(NUMBERS, NUMBERS.filter(bool))
def test_a_ratio_is_shown_as_arithmetic_that_holds(above: Decimal, below: Decimal) -> None:
    made = compute(Reading("a", above, "", ""), "/", Reading("b", below, "", ""))
    assert made is not None
    value, unit, arithmetic = made
    assert unit == ""
    assert abs(value * below - above) <= Decimal("1e-20") * (above + 1)
    if value == 0 or value >= Decimal("1e-9"):  # smaller ones are written with an exponent
        assert equation_holds(arithmetic), arithmetic


@given(NUMBERS, NUMBERS)
def test_a_difference_is_shown_as_arithmetic_that_holds(above: Decimal, below: Decimal) -> None:
    above, below = max(above, below), min(above, below)
    made = compute(Reading("a", above, "%", ""), "-", Reading("b", below, "%", ""))
    assert made is not None
    assert made[0] == above - below
    assert equation_holds(made[2]), made[2]


def test_rows_that_say_the_same_are_one_and_the_first_comes_first() -> None:
    rows = [row("m", ">", "80", "%", "a 1"), row("m", ">", "60", "%", "b 2"), row("m", ">", "80", "%", "a 3")]
    judged, unjudged = judge_all(rows, readings(m=("70", "%")).get)
    assert not unjudged
    [first, second] = judged["m"]
    assert (first.source, first.holds, len(first.rows)) == ("a", False, 2)
    assert (second.source, second.holds) == ("b", True)
