"""Collect the numbers with units of a text, and look them up in cited lines, measurements and shown arithmetic: what a
text may rest on, and what a run and its kernels choose."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import lru_cache
from typing import TypedDict

from evaluator.profiling.profile import Launch
from kbs.evidence.arithmetic import MAX_LENGTH, equation_holds
from kbs.evidence.quantities import Stated, find_quantities, normal
from kbs.evidence.units import NUMBER, Number, Quantity, Unit, parse_number, says_the_same
from loop.gate.numbers.plain_text import plain

MAX_QUANTITIES = 5_000
"""Numbers with units that are read of one text; one with more is no explanation."""
_PIECE = 1_500
"""Characters of a sentence: a longer one is read in pieces."""
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\s+[–—]\s+")


@dataclass(frozen=True)
class Sentence:
    """A part of a line, with its quantities."""

    line: int
    text: str
    stated: tuple[Stated, ...]


def sentences(text: str) -> Iterator[Sentence]:
    """Every sentence of a text that states a quantity; table rows are sentences, their cells joined by blanks."""
    count = 0
    for number, line in enumerate(normal(plain(text)).split("\n"), start=1):
        joined = re.sub(r"[|`* \t]+", " ", line)
        if not any(c.isdigit() for c in joined):
            continue
        for part in pieces(joined):
            found = tuple(find_quantities(number, part))
            count += len(found)
            if found:
                yield Sentence(number, part, found)
            if count > MAX_QUANTITIES:
                return


def pieces(line: str) -> Iterator[str]:
    """The sentences of a line."""
    for sentence in _SENTENCE.split(line):
        for start in range(0, len(sentence), _PIECE):
            yield sentence[start : start + _PIECE]


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


COUNT = Unit("", Decimal(1))


def plain_number(text: str) -> Quantity | None:
    """A number without a unit."""
    number = parse_number(text)
    return None if number is None else Quantity(number, COUNT)


def written_numbers(text: str) -> Iterator[Quantity]:
    """Every number of a text as a bare one: what a line has may be quoted without its unit."""
    for match in re.finditer(rf"(?<![\w.]){NUMBER}", normal(plain(text))):
        found = plain_number(match[0])
        if found is not None:
            yield found


_DIGITS = Context(prec=60)


@lru_cache(maxsize=1 << 16)
def exact(value: Decimal, dimension: str, scale: Decimal = Decimal(1)) -> Quantity:
    """A figure of code's own, with all digits that it has."""
    plain = _DIGITS.normalize(value)
    _, digits, place = plain.as_tuple()
    at = place if isinstance(place, int) else 0
    return Quantity(Number(plain, max(1, len(digits)), _DIGITS.scaleb(Decimal(1), at)), Unit(dimension, scale))


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
    for number, line in enumerate(normal(plain(text)).split("\n"), start=1):
        if "=" not in line:
            continue
        for start in range(0, len(line), _PIECE):
            yield from _equations(number, line[start : start + _PIECE])


def _equations(number: int, line: str) -> Iterator[Equation]:
    for match in _TERMS.finditer(line):
        left, right = match["left"].strip(), match["right"].strip()
        if left.startswith("(") and left.count("(") > left.count(")"):
            left = left[1:].strip()
        if len(left) + len(right) > MAX_LENGTH:
            continue
        holds = _holds(left, right)
        if holds is None:  # `7.76 / 2 = 3.88 waves`: the word behind the result is no unit
            bare = re.match(rf"{NUMBER}(?=[ \t]?[a-z])", right)
            right = bare[0] if bare else right
            holds = _holds(left, right) if bare else None
        if holds is None:
            continue
        inputs = tuple(find_quantities(number, left))
        named = tuple(reading for stated in find_quantities(number, right) for reading in stated.readings)
        bare = re.match(NUMBER, right)
        alone = plain_number(bare[0]) if bare and not named else None
        yield Equation(number, match[0].strip(), inputs, named or ((alone,) if alone else ()), right, holds)


def _holds(left: str, right: str) -> bool | None:
    """As `equation_holds`; percentages are parts of a hundred, and equal units on one side may be left out."""
    readings = [f"{left} = {right}"]
    if "%" in left + right:
        hundred = re.sub(rf"({NUMBER})\s*%", r"(\1 / 100)", left)
        readings.append(f"({hundred}) {'* 100 ' if '%' in right else ''}= {right.replace('%', '')}")
    bare = re.fullmatch(rf"({NUMBER})[ \t]?[A-Za-zµ/]+", right)
    if bare and not re.search(r"[A-Za-zµ%]", left):
        readings.append(f"{left} = {bare[1]}")  # `122.5 - 112.0 = 10.5 us`
    verdicts = [equation_holds(reading) for reading in readings]
    return True if True in verdicts else False if False in verdicts else None


@dataclass(frozen=True)
class Given:
    """Figures of one source."""

    figures: Figures
    product: str = ""
    """The GPU that they are of; empty for measurements, and for lines that name none."""
    said: str = ""
    """The cited lines, which may say under which conditions they hold; empty for measurements."""
    claimed: bool = False
    """Whether the text itself states the figure beside its citation."""


class OfVersion(TypedDict):
    """The fields of `Sources` that a version's own measurements take."""

    launches: Sequence[Launch]
    measured: Sequence[Figures]


@dataclass(frozen=True)
class Sources:
    """What the numbers of a text may rest on."""

    launches: Sequence[Launch]
    """Profiles whose metrics may be quoted, the parent's first."""
    measured: Sequence[Figures]
    cited: Sequence[Given]
    gains: Sequence[Figures]
    """Where ratios may be from: receipts and the lines that this text cites."""
    computed: Figures
    """Results of the text's own arithmetic."""
    elsewhere: Figures
    """Results of arithmetic that other texts of the proposal show: of hardware they say nothing."""
    equations: Sequence[str]
    """Arithmetic of the text that is right: a number in it needs a source, and is no value of the metric beside it."""
    product: str
    """The run's GPU."""
    words: Set[str]
    """Identifiers of kernel and reference: digits in them are names."""
    others: Figures = field(default_factory=Figures)
    """What receipts measured of other programs than the run's kernels."""
    logged: Figures = field(default_factory=Figures)
    """What the records of the experience log say that a query of the version found."""
    versions: Mapping[int, OfVersion] = field(default_factory=dict)
    """What the measurements of one version alone say, for sentences that say so of it."""

    def in_equation(self, at: int, text: str) -> bool:
        """Whether a place of a sentence lies in arithmetic that is shown and right."""
        for equation in self.equations:
            start = text.find(equation)
            if 0 <= start <= at < start + len(equation):
                return True
        return False


@dataclass(frozen=True)
class Chosen:
    """Numbers that are no claims: sizes of the run and constants of its kernels."""

    exactly: frozenset[Decimal]
    combined: frozenset[Decimal] = field(default_factory=frozenset)
    """Products and quotients of two of them."""

    @staticmethod
    def of(sizes: Set[Decimal], constants: Set[Decimal]) -> Chosen:
        """Also what follows from them in one step."""
        base = sorted(one for one in (*sizes, *constants, Decimal(32)) if one == one.to_integral() and 1 < one < 10**12)
        few = base[:150]
        made = {a * b for a in few for b in few} | {a / b for a in few for b in few if a % b == 0}
        made |= {size * width for size in made | set(base) for width in map(Decimal, (2, 4, 8))}
        return Chosen(frozenset(sizes | constants), frozenset(made))

    def has(self, value: Decimal) -> bool:
        """Whether a value is one of them or follows from two."""
        return value in self.exactly or value in self.combined or -value in self.exactly
