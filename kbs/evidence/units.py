"""Numbers with units: parsing, conversion, and when two of them say the same.

All arithmetic is exact (`decimal.Decimal`). K, M and G are binary (1024) for the capacities of caches, registers and
shared memory, and decimal elsewhere; Ki, Mi and Gi are always binary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from kbs.evidence.vocabulary import vocabulary

_DECIMAL_POWER = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_MAX_EXPONENT = 40

# 3.35 · 3,350 · 1 979 (thin space) · 1e12 · 3.35e12 · 3.35 x 10^12 · 3.35×10¹²
NUMBER = (
    r"(?:\d{1,3}(?:[,\u2009\u202f]\d{3})+|\d+)(?:\.\d+)?"
    r"(?:[eE][+-]?\d{1,2}|\s?[x×*·]\s?10(?:\^|\*\*)[+-]?\d{1,2}|\s?[x×·]\s?10[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,2})?"
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


@dataclass(frozen=True)
class Number:
    """A decimal number as it was written."""

    value: Decimal
    """Its exact value."""
    digits: int
    """Significant digits written: 3.35 has 3, 3350 has 4, 0.080 has 2, and 0 has none."""
    last_place: Decimal
    """The value of one unit in its last written place: 0.01 for 3.35, 1e10 for 3.35e12."""


@dataclass(frozen=True)
class Unit:
    """A unit with its prefix, e.g. TB/s or KiB."""

    dimension: str
    """What it measures; only units of one dimension can be compared."""
    scale: Decimal
    """How many base units of the dimension one of it is."""


@dataclass(frozen=True)
class Quantity:
    """A number with a unit."""

    number: Number
    unit: Unit

    @property
    def base(self) -> Decimal:
        """The value in the base unit of its dimension."""
        return self.number.value * self.unit.scale


def parse_number(text: str) -> Number | None:
    """Read `text`, all of it, as a number; None where it is none."""
    cleaned = text.strip()
    if not re.fullmatch(NUMBER, cleaned):
        return None
    cleaned = re.sub(r"[,\u2009\u202f]", "", cleaned).translate(_SUPERSCRIPTS)
    cleaned = re.sub(r"\s?[x×*·]\s?10(?:\^|\*\*)?", "e", cleaned)
    mantissa, _, exponent = cleaned.lower().partition("e")
    try:
        power = int(exponent or "0")
        value = Decimal(mantissa)
    except (InvalidOperation, ValueError):
        return None
    if abs(power) > _MAX_EXPONENT:
        return None
    _, digits, place = value.as_tuple()
    assert isinstance(place, int)
    stripped = "".join(map(str, digits)).lstrip("0")
    return Number(
        value=value.scaleb(power),
        digits=len(stripped),
        last_place=Decimal(1).scaleb(place + power),
    )


@lru_cache(maxsize=1024)
def parse_unit(text: str, *, capacity: bool = False, lenient: bool = False) -> Unit | None:
    """Read a unit. `capacity` makes K, M and G binary; `lenient` also takes wrong case ("tb/s"), for questions only."""
    spelled = text.strip()
    spellings = vocabulary().unit_spellings
    if spelled in spellings:
        unit = spellings[spelled]
        return Unit(unit.dimension, unit.scale)
    for prefix, power in _DECIMAL_POWER.items():
        if not spelled.startswith(prefix):
            continue
        rest = spelled[len(prefix) :]
        binary = rest.startswith("i")
        named = spellings.get(rest[1:] if binary else rest)
        if named is None or not named.prefixed:
            continue
        factor = Decimal(1024 if binary or (capacity and named.id in ("B", "bit")) else 1000) ** power
        return Unit(named.dimension, named.scale * factor)
    if lenient:
        # People type "tb/s" and "gb" for bytes: nobody asks a GPU for terabits.
        upper = spelled[:1].upper() + spelled[1:]
        for guess in (upper.replace("b", "B"), spelled.upper(), spelled.upper().replace("/S", "/s")):
            unit_found = parse_unit(guess, capacity=capacity)
            if unit_found is not None:
                return unit_found
    return None


def parse_quantity(number: str, unit: str, *, capacity: bool = False) -> Quantity | None:
    """Read a number and a unit; None where either is not readable."""
    parsed, measured = parse_number(number), parse_unit(unit, capacity=capacity)
    return Quantity(parsed, measured) if parsed is not None and measured is not None else None


def says_the_same(source: Quantity, claim: Quantity) -> bool:
    """Whether `claim` is a faithful statement of `source`.

    True where both have one dimension and either are equal, or |source − claim| is at most half of the claim's last
    written place while the claim has at least min(3, the source's) significant digits.
    """
    if source.unit.dimension != claim.unit.dimension:
        return False
    if source.base == claim.base:
        return True
    if claim.number.digits < min(3, source.number.digits):
        return False
    half_place = claim.number.last_place * claim.unit.scale / 2
    return abs(source.base - claim.base) <= half_place


def format_number(value: Decimal, digits: int = 3) -> str:
    """`value` to `digits` significant digits, but never rounded above its units: 19.97 → 20.0, 1365.33 → 1,365."""
    if value == 0:
        return "0"
    if value.adjusted() < 12:  # a larger one may have more digits than can be written out
        place = min(value.adjusted() - digits + 1, 0)
        rounded = value.quantize(Decimal(1).scaleb(place))
        if rounded.adjusted() > value.adjusted() and place < 0:
            rounded = rounded.quantize(Decimal(1).scaleb(place + 1))
        if -4 <= rounded.adjusted() < 12:
            return f"{rounded:,f}"
    return f"{value:.{digits - 1}E}".replace("E+", "e").replace("E", "e")


def binary_unit(unit: str) -> str:
    """The unit of a capacity as it must be written where K, M and G may be read as decimal: MB → MiB."""
    binary = f"{unit[:1]}i{unit[1:]}"
    return binary if unit[:1] in _DECIMAL_POWER and parse_unit(binary) is not None else unit


def format_seconds(value: Decimal, digits: int = 3) -> str:
    """A time with the unit that keeps the number readable: 0.0000400 → 40.0 µs."""
    for factor, unit in ((Decimal(1), "s"), (Decimal("1e-3"), "ms"), (Decimal("1e-6"), "µs")):
        if value >= factor:
            return f"{format_number(value / factor, digits)} {unit}"
    return f"{format_number(value / Decimal('1e-9'), digits)} ns"
