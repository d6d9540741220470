"""Numbers and units as versions and locales of Nsight Compute write them.

Versions differ in spelling (`usecond`, `us`; `cycle/nsecond`, `Ghz`) and in scale, so every value is brought to one
unit a dimension: microseconds, bytes, bytes a second, hertz, per cent, and bare counts. Prefixes are powers of 1000,
for bytes too (Nsight Compute CLI, "Metrics and Units"). Locales differ in the marks of decimals and of thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

MISSING = frozenset({"", "n/a", "(!) n/a", "nan", "-nan", "inf", "-inf", "no data", "-", "not collected"})
"""What stands in a cell that has no value, in lower case. It is never zero."""
MAX_DIGITS = 60
_MAX_EXPONENT = 40
_BLANKS = " \u00a0\u2009\u202f'’"  # marks of thousands beside the comma and the point
_INSTANCES = re.compile(r"^(?P<value>[^()]+?)\s*\([^()]*;[^()]*\)$")
_FORM = re.compile(
    rf"(?P<sign>[+-]?)(?P<body>\d[\d.,{_BLANKS}]*|[.,]\d+)(?:[eE](?P<exponent>[+-]?\d{{1,3}}))?", re.ASCII
)
_WORD = re.compile(r"(?P<prefix>[KMGTPmun]?)(?P<base>[a-z%#]+)")
_PREFIXES = {
    "": Decimal(1),
    "K": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
}
_SECONDS = {"": Decimal(10**6), "m": Decimal(1000), "u": Decimal(1), "n": Decimal("0.001")}
"""Microseconds of a second with its prefix."""
_SECOND_WORDS = frozenset({"second", "seconds", "s", "sec"})
_BYTE_WORDS = frozenset({"byte", "bytes", "b"})
_COUNTED = frozenset(
    word + plural
    for plural in ("", "s")
    for word in (
        *(
            "inst",
            "instruction",
            "cycle",
            "warp",
            "thread",
            "lane",
            "block",
            "register",
            "sm",
            "gpc",
            "tpc",
            "instance",
        ),
        *("sector", "request", "wavefront", "transaction", "access", "bank", "way", "branch", "sample", "flop", "item"),
        *("ratio", "count"),
    )
)
_SHORT_SECONDS = {"us": "u", "ms": "m", "ns": "n"}
Dimension = Literal["us", "B", "B/s", "Hz", "%", ""]


@dataclass(frozen=True)
class NcuUnit:
    """What a unit of a report measures, and how many of ours one of it is."""

    dimension: Dimension
    scale: Decimal


def parse_ncu_unit(text: str) -> NcuUnit | None:
    """Read a unit as a report writes it; None for one that is not known."""
    written = text.strip().replace("µ", "u").replace("μ", "u")
    if written in ("", "#"):
        return NcuUnit("", Decimal(1))
    if written == "%" or written.lower() in ("pct", "percent"):
        return NcuUnit("%", Decimal(1))
    above, slash, below = written.partition("/")
    top = _word(above)
    if top is None:
        return None
    if not slash:
        return NcuUnit("Hz", top.scale) if top.dimension == "Hz" else top
    bottom = _word(below)
    if bottom is None or bottom.dimension in ("B", "Hz", "%"):
        return None
    if bottom.dimension == "us":
        per_second = top.scale / bottom.scale * 10**6
        if top.dimension == "B":
            return NcuUnit("B/s", per_second)
        return NcuUnit("Hz", per_second) if top.dimension == "" else None
    return NcuUnit(top.dimension, top.scale / bottom.scale)


def _word(text: str) -> NcuUnit | None:
    text = text.strip()
    if text in ("", "1"):
        return NcuUnit("", Decimal(1))
    if text in _SHORT_SECONDS:
        return NcuUnit("us", _SECONDS[_SHORT_SECONDS[text]])
    if text.lower().endswith("hz"):
        prefix = text[:-2].upper()
        return NcuUnit("Hz", _PREFIXES[prefix]) if prefix in _PREFIXES else None
    if text in ("B", "KB", "MB", "GB", "TB"):
        return NcuUnit("B", _PREFIXES[text[:-1]])
    if text.lower() in _COUNTED:
        return NcuUnit("", Decimal(1))
    match = _WORD.fullmatch(text)
    if match is None:
        return None
    prefix, base = match["prefix"], match["base"]
    if base in _SECOND_WORDS:
        return NcuUnit("us", _SECONDS[prefix]) if prefix in _SECONDS else None
    if prefix not in _PREFIXES:
        return None
    if base in _BYTE_WORDS:
        return NcuUnit("B", _PREFIXES[prefix])
    return NcuUnit("", _PREFIXES[prefix]) if base in _COUNTED else None


@dataclass(frozen=True)
class NumberForm:
    """How a file writes its numbers."""

    decimal: Literal[".", ","] = "."

    def parse(self, text: str) -> Decimal | None:
        """The value of a cell; None where it has none, or is a text."""
        cell = text.strip()
        if cell.lower() in MISSING or len(cell) > 4096:
            return None
        instances = _INSTANCES.match(cell)
        cell = instances["value"] if instances else cell
        match = _FORM.fullmatch(cell)
        if match is None or len(cell) > MAX_DIGITS:
            return None
        thousands = "," if self.decimal == "." else "."
        body = match["body"]
        whole, mark, fraction = body.partition(self.decimal)
        if self.decimal in fraction or thousands in fraction or re.search(rf"[{_BLANKS}]", fraction):
            return None
        groups = re.split(rf"[{re.escape(thousands)}{_BLANKS}]", whole)
        if len(groups) > 1 and not (1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])):
            return None
        exponent = int(match["exponent"] or 0)
        if abs(exponent) > _MAX_EXPONENT:
            return None
        return Decimal(f"{match['sign']}{''.join(groups) or '0'}{mark and '.'}{fraction}").scaleb(exponent)


def find_number_form(cells: Iterable[str]) -> NumberForm | None:
    """Which mark the numbers of a file have for decimals; the point where nothing speaks for the comma.

    None where one cell can only be read with a point and another only with a comma.
    """
    point, comma = NumberForm("."), NumberForm(",")
    only_point = only_comma = False
    for cell in cells:
        if "." not in cell and "," not in cell:
            continue
        with_point, with_comma = point.parse(cell), comma.parse(cell)
        if with_point is not None and (with_comma is None or _leading_zero(cell, ".")):
            only_point = True
        elif with_comma is not None and (with_point is None or _leading_zero(cell, ",")):
            only_comma = True
    if only_point and only_comma:
        return None
    return comma if only_comma else point


def _leading_zero(cell: str, mark: str) -> bool:
    """`0.123` has decimals: no group of thousands begins with a zero."""
    return re.match(rf"\s*[+-]?0{re.escape(mark)}\d", cell) is not None
