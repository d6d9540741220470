"""Numbers and units of reports, in the spellings of versions and locales."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.profiling.ncu_numbers import MISSING, NumberForm, find_number_form
from kbs.evidence.quantities import parse_profiler_unit
from kbs.evidence.units import Unit

VALUES = st.decimals(min_value=-(10**15), max_value=10**15, places=4, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("written", "dimension", "scale"),
    [
        ("nsecond", "us", "0.001"), ("ns", "us", "0.001"), ("usecond", "us", "1"), ("us", "us", "1"), ("µs", "us", "1"),
        ("msecond", "us", "1000"), ("ms", "us", "1000"), ("second", "us", "1000000"), ("s", "us", "1000000"),
        ("byte", "B", "1"), ("Kbyte", "B", "1000"), ("Gbyte", "B", "1000000000"), ("MB", "B", "1000000"),
        ("byte/block", "B", "1"), ("Kbyte/block", "B", "1000"), ("byte/sector", "B", "1"), ("byte/thread", "B", "1"),
        ("Gbyte/second", "B/s", "1000000000"), ("Gbyte/s", "B/s", "1000000000"), ("byte/nsecond", "B/s", "1000000000"),
        ("Tbyte/second", "B/s", "1000000000000"), ("Ghz", "Hz", "1000000000"), ("Mhz", "Hz", "1000000"),
        ("cycle/nsecond", "Hz", "1000000000"), ("cycle/usecond", "Hz", "1000000"), ("cycle/second", "Hz", "1"),
        ("%", "%", "1"), ("", "", "1"), ("inst", "", "1"), ("inst/cycle", "", "1"), ("register/thread", "", "1"),
        ("warp", "", "1"), ("sector/request", "", "1"), ("Kinst", "", "1000"), ("SM", "", "1"), ("block", "", "1"),
    ],
)  # fmt: skip
def test_units(written: str, dimension: str, scale: str) -> None:
    found = parse_profiler_unit(written)
    assert found is not None
    assert (found.dimension, found.scale) == (dimension, Decimal(scale))


@pytest.mark.parametrize("written", ["furlong", "byte/inst/2", "byte/Gbyte", "%/s", "Zbyte", "msector/second2", "=1+1"])
def test_what_is_no_unit_is_none(written: str) -> None:
    assert parse_profiler_unit(written) is None


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(written: str) -> None:
    found = parse_profiler_unit(written)
    assert found is None or isinstance(found, Unit)


@given(VALUES, st.sampled_from([(".", ","), (",", "."), (".", " "), (",", "\u202f"), (".", "'"), (".", "")]))
def test_a_number_reads_the_same_in_every_locale(value: Decimal, marks: tuple[str, str]) -> None:
    decimal, thousands = marks
    written = f"{value:,f}".replace(",", "T").replace(".", decimal).replace("T", thousands)
    form = NumberForm("," if decimal == "," else ".")
    assert form.parse(written) == value
    assert find_number_form([written, "0,5" if decimal == "," else "0.5"]) == form


def test_a_file_with_both_marks_is_refused() -> None:
    assert find_number_form(["12.55", "12,55"]) is None
    assert find_number_form(["1,234.5", "1,234"]) == NumberForm(".")
    assert find_number_form(["1.234,5", "1.234"]) == NumberForm(",")
    assert find_number_form(["0,123"]) == NumberForm(",")
    assert find_number_form(["1,234", "(256, 1, 1)", "kernel(int, 0.5, 0,5)"]) == NumberForm(".")


@pytest.mark.parametrize("cell", [*sorted(MISSING), "N/A", " n/a ", "(256, 1, 1)", "PreferNone", "1,23", "1.2.3", "١٢"])
def test_what_is_no_number_is_missing_and_not_zero(cell: str) -> None:
    assert NumberForm().parse(cell) is None


@pytest.mark.parametrize(
    ("cell", "value"),
    [("1,073,741,824", "1073741824"), ("1.5e+06", "1500000"), ("12.5 (1.2; 3.4)", "12.5"), ("-3", "-3"), (".5", "0.5")],
)
def test_numbers(cell: str, value: str) -> None:
    assert NumberForm().parse(cell) == Decimal(value)


@given(st.text(max_size=80))
def test_any_cell_is_read_or_missing(cell: str) -> None:
    for form in (NumberForm("."), NumberForm(",")):
        found = form.parse(cell)
        assert found is None or found.is_finite()
