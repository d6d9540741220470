"""Numbers with units in a text, and where they may stand: in cited lines, in what was measured, in shown arithmetic."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import lru_cache

from kbs.evidence.arithmetic import MAX_LENGTH, equation_holds
from kbs.evidence.units import NUMBER, Number, Quantity, Unit, parse_number, parse_quantity, says_the_same
from kbs.evidence.vocabulary import vocabulary

MAX_QUANTITIES = 5_000
"""Numbers with units that are read of one text; one with more is no explanation."""
_PIECE = 1_500
"""Characters of a sentence: a longer one is read in pieces."""
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\s+[–—]\s+")
_SCALE_WORDS = {"kilo": "k", "mega": "M", "giga": "G", "tera": "T", "peta": "P"}
_UNIT_WORDS = {"byte": "B", "flop": "FLOP", "hertz": "Hz", "op": "OP", "bit": "bit", "watt": "W"}
_SPELLED = re.compile(
    r"\b(?P<scale>kilo|mega|giga|tera|peta)(?:-|\s)?(?P<unit>byte|flop|hertz|op|bit|watt)s?(?P<per>\s+per\s+sec(?:ond)?\b|/s(?:ec(?:ond)?)?\b|ps\b)?",
    re.IGNORECASE,
)
_PER_SECOND = re.compile(
    r"(?<=[A-Za-z])(?:\s+per\s+sec(?:ond)?\b|\s?/\s?sec(?:ond)?\b|\s?·\s?s⁻¹|\s?s\^?-1\b|\s/\s?s\b)", re.IGNORECASE
)
_LOWER = re.compile(rf"(?<![\w.,^-])({NUMBER})\s?(?P<unit>[kmgtp]i?b(?:/s|ps)|[gt]flops?|[gm]hz|[kmgt]ib)(?![\w/])")
_LOOKS_LIKE_ZERO = re.compile(r"[\u00a0\u2007]")


@dataclass(frozen=True)
class Stated:
    """A number with a unit as a text states it."""

    line: int
    text: str
    """As written."""
    start: int
    end: int
    """Characters of the sentence."""
    readings: tuple[Quantity, ...]
    """What it may mean: K, M and G are binary or decimal."""

    @property
    def dimension(self) -> str:
        """What it measures."""
        return self.readings[0].unit.dimension


@dataclass(frozen=True)
class Sentence:
    """A part of a line, with its quantities."""

    line: int
    text: str
    stated: tuple[Stated, ...]


@lru_cache(maxsize=1)
def _quantity() -> re.Pattern[str]:
    spellings = []
    for unit in vocabulary().units.values():
        for spelling in unit.aliases:
            if unit.dimension == "ratio" or spelling == "b":
                continue
            glue = r"[ \t]" if spelling == "s" else r"[ \t]?"
            spellings.append(glue + (r"(?:[kKMGTPE]i?)?" if unit.prefixed else "") + re.escape(spelling))
    units = "|".join(sorted(spellings, key=len, reverse=True))
    return re.compile(rf"(?<![\w.,^-])(?P<number>{NUMBER})(?P<unit>{units})(?![\w/])")


def normal(text: str) -> str:
    """The text with units spelled as the vocabulary has them, on as many lines."""

    def spelled(match: re.Match[str]) -> str:
        per = "/s" if match["per"] else ""
        return _SCALE_WORDS[match["scale"].lower()] + _UNIT_WORDS[match["unit"].lower()] + per

    text = _LOOKS_LIKE_ZERO.sub(" ", text).replace("⁄", "/")
    text = _PER_SECOND.sub("/s", _SPELLED.sub(spelled, text))
    return _LOWER.sub(lambda m: f"{m[1]} {_cased(m['unit'])}", text)


def _cased(unit: str) -> str:
    if unit.endswith("hz"):
        return unit[0].upper() + "Hz"
    if "flop" in unit:
        return unit.upper().removesuffix("S") + "S"
    prefix = unit[0] if unit[0] == "k" else unit[0].upper()
    return prefix + unit[1:].replace("bps", "b/s").replace("b", "B")


def sentences(text: str) -> Iterator[Sentence]:
    """Every sentence of a text that states a quantity; table rows are sentences, their cells joined by blanks."""
    count = 0
    for number, line in enumerate(normal(text).split("\n"), start=1):
        joined = re.sub(r"[|`* \t]+", " ", line)
        if not any(c.isdigit() for c in joined):
            continue
        for part in _pieces(joined):
            found = tuple(_stated(number, part))
            count += len(found)
            if found:
                yield Sentence(number, part, found)
            if count > MAX_QUANTITIES:
                return


def _pieces(line: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(line):
        for start in range(0, len(sentence), _PIECE):
            yield sentence[start : start + _PIECE]


def _stated(line: int, text: str) -> Iterator[Stated]:
    for match in _quantity().finditer(text):
        unit = match["unit"].strip()
        readings = [parse_quantity(match["number"], unit), parse_quantity(match["number"], unit, capacity=True)]
        known = tuple(dict.fromkeys(reading for reading in readings if reading is not None))
        if known:
            yield Stated(line, match[0].strip(), match.start(), match.end(), known)


@dataclass
class Figures:
    """Quantities that a claim may rest on, found by their value."""

    _values: dict[str, list[tuple[Decimal, Quantity, frozenset[str]]]] = field(default_factory=dict)
    _sorted: bool = True

    def add(self, quantity: Quantity, names: Iterable[str] = ()) -> None:
        """One that stands; `names`: what it is the value of, none where that is not said."""
        self._values.setdefault(quantity.unit.dimension, []).append((quantity.base, quantity, frozenset(names)))
        self._sorted = False

    def add_text(self, text: str) -> None:
        """Every quantity that a text states."""
        for sentence in sentences(text):
            for stated in sentence.stated:
                for reading in stated.readings:
                    self.add(reading)

    def has(self, readings: Sequence[Quantity], names: Iterable[str] = ()) -> bool:
        """Whether one of the readings says what one of the figures says, of the same thing where both say of what."""
        wanted = frozenset(names)
        return any(not known or not wanted or known & wanted for known in self._same(readings))

    def _same(self, readings: Sequence[Quantity]) -> Iterator[frozenset[str]]:
        if not self._sorted:
            for figures in self._values.values():
                figures.sort(key=lambda figure: figure[0])
            self._sorted = True
        for claim in readings:
            figures = self._values.get(claim.unit.dimension, [])
            # Fewer than three digits say the same only where the figure has no more: the whole band would be tried.
            half = claim.number.last_place * claim.unit.scale / 2
            first = bisect_left(figures, claim.base - half, key=lambda figure: figure[0])
            last = bisect_right(figures, claim.base + half, key=lambda figure: figure[0])
            for _, quantity, names in figures[first:last]:
                if says_the_same(quantity, claim):
                    yield names


_COUNT = Unit("", Decimal(1))


def plain_number(text: str) -> Quantity | None:
    """A number without a unit."""
    number = parse_number(text)
    return None if number is None else Quantity(number, _COUNT)


def exact(value: Decimal, dimension: str, scale: Decimal = Decimal(1)) -> Quantity:
    """A figure of code's own, with all digits that it has."""
    with localcontext() as context:
        context.prec = 60
        plain = value.normalize()
        _, digits, place = plain.as_tuple()
        at = place if isinstance(place, int) else 0
        return Quantity(Number(plain, max(1, len(digits)), Decimal(1).scaleb(at)), Unit(dimension, scale))


_TERMS = re.compile(
    rf"(?<![\w.])(?P<left>[(\s]*{NUMBER}(?:[ \t]?[A-Za-zµ%/]{{1,12}})?[)\s]*"
    rf"(?:[-−+*×·/÷][(\s]*{NUMBER}(?:[ \t]?[A-Za-zµ%/]{{1,12}})?[)\s]*){{1,12}})=\s*"
    rf"(?P<right>{NUMBER}(?:[ \t]?[A-Za-zµ%/]{{1,12}})?)"
)


@dataclass(frozen=True)
class Equation:
    """Arithmetic that a text shows."""

    line: int
    text: str
    inputs: tuple[Stated, ...]
    """Quantities on its left side."""
    results: tuple[Quantity, ...]
    result: str
    holds: bool


def equations(text: str) -> Iterator[Equation]:
    """Every equation of numbers that a text shows; what is no such equation is left out."""
    for number, line in enumerate(normal(text).split("\n"), start=1):
        if "=" not in line:
            continue
        for start in range(0, len(line), _PIECE):
            yield from _equations(number, line[start : start + _PIECE])


def _equations(number: int, line: str) -> Iterator[Equation]:
    for match in _TERMS.finditer(line):
        left, right = match["left"].strip(), match["right"].strip()
        if len(left) + len(right) > MAX_LENGTH:
            continue
        holds = _holds(left, right)
        if holds is None:
            continue
        inputs = tuple(_stated(number, left))
        named = tuple(reading for stated in _stated(number, right) for reading in stated.readings)
        bare = re.match(NUMBER, right)
        plain = plain_number(bare[0]) if bare and not named else None
        yield Equation(number, match[0].strip(), inputs, named or ((plain,) if plain else ()), right, holds)


def _holds(left: str, right: str) -> bool | None:
    """As `equation_holds`; percentages are parts of a hundred, and equal units on one side may be left out."""
    readings = [f"{left} = {right}"]
    if "%" in left + right:
        hundred = re.sub(rf"({NUMBER})\s*%", r"(\1 / 100)", left)
        readings.append(f"({hundred}) {'* 100 ' if '%' in right else ''}= {right.replace('%', '')}")
    verdicts = [equation_holds(reading) for reading in readings]
    return True if True in verdicts else False if False in verdicts else None
