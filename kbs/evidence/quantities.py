"""Numbers with units in texts: the units that people write, and those that profilers print.

The vocabulary says which units there are and how people spell them; `kbs.evidence.units` reads a number and a unit that
stand alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from kbs.evidence.units import NUMBER, Quantity, Unit, parse_quantity
from kbs.evidence.vocabulary import UnitName, vocabulary

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


def find_quantities(line: int, text: str) -> Iterator[Stated]:
    """Every number with a unit in `text`, a part of the line `line`; units are spelled as `normal` leaves them."""
    for match in _quantity().finditer(text):
        unit = match["unit"].strip()
        readings = [parse_quantity(match["number"], unit, capacity=binary) for binary in (False, True)]
        known = tuple(dict.fromkeys(reading for reading in readings if reading is not None))
        if known:
            yield Stated(line, match[0].strip(), match.start(), match.end(), known)


@lru_cache(maxsize=1)
def _quantity() -> re.Pattern[str]:
    units = unit_pattern(vocabulary().units.values())
    return re.compile(rf"(?<![\w.,^-])(?P<number>{NUMBER})(?P<unit>{units})(?![\w/])")


def unit_pattern(units: Iterable[UnitName]) -> str:
    """A regular expression for one of `units` behind a number, with its prefix and the blank before it.

    Ratios are left out: `2x` is also the beginning of `2x4`. A bare `b` or `s` glued to a number is no unit ("1990s").
    """
    spellings = [
        (r"\s" if spelling == "s" else r"\s?") + (r"(?:[kKMGTPE]i?)?" if unit.prefixed else "") + re.escape(spelling)
        for unit in units
        for spelling in unit.aliases
        if unit.dimension != "ratio" and spelling != "b"
    ]
    return "|".join(sorted(spellings, key=len, reverse=True))


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


# --- units of profilers -----------------------------------------------------------------------------------------------

_PREFIXES = {prefix: Decimal(1000) ** power for power, prefix in enumerate(("", "K", "M", "G", "T", "P"))}
_SECONDS = {"": Decimal(10**6), "m": Decimal(1000), "u": Decimal(1), "n": Decimal("0.001")}
"""Microseconds of a second with its prefix."""
_COUNTED = (
    "inst|instruction|cycle|warp|thread|lane|block|register|sm|gpc|tpc|instance|sector|request|wavefront|transaction"
    "|access|bank|way|branch|sample|flop|item|ratio|count"
)
_WORD = re.compile(
    r"(?P<prefix>[kKMGTPmun]?)"
    rf"(?:(?P<second>s|sec|seconds?)|(?P<byte>bytes?|b|B)|(?P<count>(?:{_COUNTED})s?))|(?P<any>(?i:{_COUNTED})s?)"
    r"|(?P<clock>(?i:[KMGTP]?hz))"
)


@lru_cache(maxsize=1024)
def parse_profiler_unit(text: str) -> Unit | None:
    """Read a unit as Nsight Compute writes it (`usecond`, `Kbyte/block`, `cycle/nsecond`, `Ghz`); None for another.

    Its versions differ in spelling and in scale, so every unit is brought to one of each dimension: us, B, B/s, Hz, %,
    and "" for counts and ratios. Prefixes are powers of 1000, for bytes too (Nsight Compute CLI, "Metrics and Units").
    """
    written = text.strip().replace("µ", "u").replace("μ", "u")
    if written in ("", "#"):
        return Unit("", Decimal(1))
    if written.lower() in ("%", "pct", "percent"):
        return Unit("%", Decimal(1))
    above, slash, below = written.partition("/")
    top, bottom = _word(above), _word(below)
    if top is None or not slash:
        return top
    if bottom is None or bottom.dimension in ("B", "Hz"):
        return None
    scale = top.scale / bottom.scale
    if bottom.dimension != "us":
        return Unit(top.dimension, scale)
    rate = {"B": "B/s", "": "Hz"}.get(top.dimension)
    return Unit(rate, scale * 10**6) if rate else None


def _word(text: str) -> Unit | None:
    text = text.strip()
    if text in ("", "1"):
        return Unit("", Decimal(1))
    match = _WORD.fullmatch(text)
    if match is None:
        return None
    if match["clock"]:
        return Unit("Hz", _PREFIXES[text[:-2].upper()])
    prefix = match["prefix"] or ""
    if match["second"]:
        return Unit("us", _SECONDS[prefix]) if prefix in _SECONDS else None
    scale = _PREFIXES.get(prefix.replace("k", "K"))
    return None if scale is None else Unit("B" if match["byte"] else "", scale)
