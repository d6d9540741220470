"""Numbers, units, and when two quantities say the same."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.evidence.units import (
    Quantity,
    format_number,
    format_seconds,
    parse_number,
    parse_quantity,
    parse_unit,
    says_the_same,
)


def quantity(text: str, capacity: bool = False) -> Quantity:
    number, _, unit = text.partition(" ")
    found = parse_quantity(number, unit, capacity=capacity)
    assert found is not None, text
    return found


@pytest.mark.parametrize(
    ("text", "value", "digits", "place"),
    [
        ("3.35", "3.35", 3, "0.01"),
        ("3350", "3350", 4, "1"),
        ("0.080", "0.08", 2, "0.001"),
        ("3,350", "3350", 4, "1"),
        ("3,957,800.5", "3957800.5", 8, "0.1"),
        ("1\u2009979", "1979", 4, "1"),
        ("1\u202f979", "1979", 4, "1"),
        ("1e12", "1e12", 1, "1e12"),
        ("3.35e12", "3.35e12", 3, "1e10"),
        ("3.35E+12", "3.35e12", 3, "1e10"),
        ("5e-3", "0.005", 1, "0.001"),
        ("3.35 x 10^12", "3.35e12", 3, "1e10"),
        ("3.35×10^12", "3.35e12", 3, "1e10"),
        ("3.35*10**12", "3.35e12", 3, "1e10"),
        ("3.35·10¹²", "3.35e12", 3, "1e10"),
        ("0", "0", 0, "1"),
        ("0.00", "0", 0, "0.01"),
        (" 7 ", "7", 1, "1"),
    ],
)
def test_number(text: str, value: str, digits: int, place: str) -> None:
    number = parse_number(text)
    assert number is not None
    assert (number.value, number.digits, number.last_place) == (Decimal(value), digits, Decimal(place))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-3",
        "~3",
        "3.",
        ".5",
        "3,35",
        "1,9790",
        "1,97",
        "1e999",
        "1e41",
        "3.35e",
        "1 979",
        "0x10",
        "NaN",
        "1_000",
    ],
)
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


@pytest.mark.parametrize(
    ("text", "dimension", "scale"),
    [
        ("TB/s", "bytes per second", 10**12),
        ("GBps", "bytes per second", 10**9),
        ("GiB/s", "bytes per second", 2**30),
        ("Gb/s", "bytes per second", Fraction(10**9, 8)),
        ("kB", "bytes", 1000),
        ("KB", "bytes", 1000),
        ("KiB", "bytes", 1024),
        ("bytes", "bytes", 1),
        ("bit", "bytes", Fraction(1, 8)),
        ("TFLOPS", "floating-point operations per second", 10**12),
        ("PFLOP/s", "floating-point operations per second", 10**15),
        ("TOPS", "integer operations per second", 10**12),
        ("MHz", "hertz", 10**6),
        ("kW", "watts", 1000),
        ("µs", "seconds", Fraction(1, 10**6)),
        ("%", "percent", Fraction(1, 100)),
        ("FLOP/byte", "floating-point operations per byte", 1),
    ],
)
def test_unit(text: str, dimension: str, scale: Fraction) -> None:
    unit = parse_unit(text)
    assert unit is not None
    assert unit.dimension == dimension
    assert Fraction(unit.scale) == scale


@pytest.mark.parametrize("text", ["", "T", "tb/s", "kthreads", "TB/h", "KiHello", "TTB/s", "Mx", "3"])
def test_what_is_no_unit(text: str) -> None:
    assert parse_unit(text) is None


def test_case_is_forgiven_in_questions_only() -> None:
    assert parse_unit("tb/s") is None
    assert parse_unit("tb/s", lenient=True) == parse_unit("TB/s")
    assert parse_unit("gb", lenient=True) == parse_unit("GB")


@pytest.mark.parametrize(("prefix", "power"), [("K", 1), ("k", 1), ("M", 2), ("G", 3)])
def test_prefixes_are_binary_for_capacities(prefix: str, power: int) -> None:
    decimal, binary = parse_unit(f"{prefix}B"), parse_unit(f"{prefix}B", capacity=True)
    assert decimal is not None
    assert binary is not None
    assert decimal.scale == 1000**power
    assert binary.scale == 1024**power
    if prefix != "k":
        always = parse_unit(f"{prefix}iB")
        assert always == parse_unit(f"{prefix}iB", capacity=True) == binary


def test_a_rate_is_decimal_even_for_a_capacity() -> None:
    assert parse_unit("GB/s", capacity=True) == parse_unit("GB/s")


@pytest.mark.parametrize(
    ("source", "claim", "same"),
    [
        ("3.35 TB/s", "3350 GB/s", True),
        ("3.35 TB/s", "3.35e12 B/s", True),
        ("3.35 TB/s", "3.4 TB/s", False),  # two digits of three
        ("3.35 TB/s", "3.36 TB/s", False),
        ("3.35 TB/s", "3.350 TB/s", True),
        ("3.35 TB/s", "3.354 TB/s", False),  # more digits than the source has, and not its value
        ("3.35 TB/s", "3.35 TB", False),
        ("989.4 TFLOPS", "989 TFLOPS", True),
        ("989.4 TFLOPS", "990 TFLOPS", False),
        ("989.4 TFLOPS", "0.989 PFLOPS", True),
        ("989.4 TFLOPS", "0.99 PFLOPS", False),
        ("989.4 TFLOPS", "989.4 TOPS", False),
        ("1978.9 TFLOPS", "1979 TFLOPS", True),
        ("1978.9 TFLOPS", "1.98 PFLOPS", True),
        ("1978.9 TFLOPS", "1.98e3 TFLOPS", True),
        ("1978.9 TFLOPS", "1980 TFLOPS", False),  # states a last place of one
        ("1978.9 TFLOPS", "2.0 PFLOPS", False),
        ("80 GB", "80.0 GB", True),
        ("80 GB", "8e1 GB", True),  # equal, however few digits
        ("80 GB", "0.08 TB", True),
        ("0.5 x", "0 x", False),
        ("3 TB/s", "0 PB/s", False),
        ("3 TB/s", "0.00 PB/s", False),
    ],
)
def test_rounding_rule(source: str, claim: str, same: bool) -> None:
    assert says_the_same(quantity(source), quantity(claim)) is same


def test_half_a_place_is_still_the_same_and_more_is_not() -> None:
    assert says_the_same(quantity("98.95 TB/s"), quantity("99.0 TB/s"))
    assert says_the_same(quantity("98.95 TB/s"), quantity("98.9 TB/s"))
    assert not says_the_same(quantity("98.951 TB/s"), quantity("98.9 TB/s"))


def test_capacities_compare_in_binary() -> None:
    assert says_the_same(quantity("50 MB", True), quantity("52,428,800 B", True))
    assert says_the_same(quantity("50 MB", True), quantity("51200 KB", True))
    assert not says_the_same(quantity("50 MB", True), quantity("50,000,000 B", True))
    assert says_the_same(quantity("80 GB"), quantity("80,000,000,000 B"))
    assert not says_the_same(quantity("80 GB"), quantity("80 GiB"))


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.integers(1, 10**7), st.integers(-4, 4), st.integers(3, 8))
def test_a_rounded_value_says_the_same_and_its_neighbours_do_not(mantissa: int, exponent: int, digits: int) -> None:
    value = Decimal(mantissa).scaleb(exponent)
    place = value.adjusted() - digits + 1
    rounded = value.quantize(Decimal(1).scaleb(place))
    source = quantity(f"{value:f} W")
    written = f"{rounded:f}" if place <= 0 else f"{rounded.scaleb(-place):f}e{place}"
    assert says_the_same(source, quantity(f"{written} W"))
    # Two places away is wrong however it is rounded.
    off = rounded + 2 * Decimal(1).scaleb(place)
    wrong = f"{off:f}" if place <= 0 else f"{off.scaleb(-place):f}e{place}"
    assert not says_the_same(source, quantity(f"{wrong} W"))


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    number = parse_number(text)
    assert number is None or number.value >= 0
    parse_unit(text, lenient=True)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("19.97014", "20.0"),
        ("295.34", "295"),
        ("1365.33", "1,365"),
        ("0.625", "0.625"),
        ("0", "0"),
        ("999.96", "1,000"),
        ("999999999999.6", "1.00e12"),
        ("1.5E+57", "1.50e57"),
    ],
)
def test_format_number(value: str, written: str) -> None:
    assert format_number(Decimal(value)) == written


def test_format_seconds() -> None:
    assert format_seconds(Decimal("0.0000400")) == "40.0 µs"
    assert format_seconds(Decimal("2.5")) == "2.50 s"
    assert format_seconds(Decimal("0.0025")) == "2.50 ms"
    assert format_seconds(Decimal("2.5e-8")) == "25.0 ns"
