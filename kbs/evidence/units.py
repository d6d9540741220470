"""Numbers with units: parsing, conversion, and when two of them say the same.

All arithmetic is exact (`decimal.Decimal`). K, M and G are binary (1024) for the capacities of caches, registers and
shared memory, and decimal elsewhere; Ki, Mi and Gi are always binary.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

from kbs.evidence.vocabulary import vocabulary

_DECIMAL_POWER = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_MAX_EXPONENT = 40
_POWER = re.compile(r"\s?[x×*·]\s?10(?:\^|\*\*)?")
_SUPERSCRIPTS = {ord(digit): str(value) for value, digit in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}


@dataclass(frozen=True)
class Notation:
    """How a kind of text writes its numbers: what is the same for all is in `value`, what differs is a field."""

    thousands: str = ",\u2009\u202f"
    """Characters that may separate groups of three digits; empty where nothing may."""
    decimal: str = "."
    """The decimal mark."""
    lone_group: bool = True
    """Whether `1,234` is a number: where the comma may also be a decimal mark, it is ambiguous."""
    loose: bool = False
    """Whether a sign, `.5` and `5.` are allowed, as programs print them."""
    powers: bool = False
    """Whether `3.35 x 10^12` and `3.35×10¹²` are allowed, as people write them."""
    exponent_digits: str = "{1,2}"
    """How many digits an exponent may have, as a quantifier."""

    @cached_property
    def pattern(self) -> str:
        """A regular expression without groups that matches a number."""
        digit = r"[0-9]" if self.loose else r"\d"
        point = re.escape(self.decimal)
        groups = rf"{digit}{{1,3}}(?:[{re.escape(self.thousands)}]{digit}{{3}})"
        exponent = rf"[eE][+-]?{digit}{self.exponent_digits}"
        if self.powers:
            exponent += rf"|\s?[x×*·]\s?10(?:\^|\*\*)[+-]?{digit}{{1,2}}|\s?[x×·]\s?10[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,2}}"
        fraction = rf"{point}{digit}+"
        grouped = rf"{groups}+" if self.lone_group else rf"{groups}{{2,}}|{groups}+(?={fraction})"
        whole = rf"(?:{grouped}|{digit}+)" if self.thousands else rf"{digit}+"
        body = rf"[+-]?(?:{whole}(?:{point}{digit}*)?|{fraction})" if self.loose else rf"{whole}(?:{fraction})?"
        return rf"{body}(?:{exponent})?"

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @cached_property
    def _plain(self) -> dict[int, str | None]:
        return {**dict.fromkeys(map(ord, self.thousands)), **_SUPERSCRIPTS, ord(self.decimal): "."}

    def value(self, text: str) -> Decimal | None:
        """The exact value of `text`, all of it; None where it is no number, or has an exponent above 40."""
        if not self._whole.fullmatch(text):
            return None
        plain = _POWER.sub("e", text.translate(self._plain)).lower()
        mantissa, _, exponent = plain.partition("e")
        if abs(int(exponent or "0")) > _MAX_EXPONENT:
            return None
        return Decimal(f"{mantissa}e{exponent or 0}")


PROSE = Notation(powers=True)
"""3.35 · 3,350 · 1 979 (thin space) · 1e12 · 3.35e12 · 3.35 x 10^12 · 3.35×10¹²"""
NUMBER = PROSE.pattern
"""A number in a text that people write."""


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


@lru_cache(maxsize=4096)
def parse_number(text: str) -> Number | None:
    """Read `text`, all of it, as a number; None where it is none."""
    value = PROSE.value(text.strip())
    if value is None:
        return None
    _, digits, place = value.as_tuple()
    assert isinstance(place, int)
    return Number(value, digits=len("".join(map(str, digits)).lstrip("0")), last_place=Decimal(1).scaleb(place))


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
