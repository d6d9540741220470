"""Find numbers with units as benchmarks print them, next to the usual words.

The text is untrusted, so every repetition is bounded or unambiguous, and matching takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kbs.evidence.units import Notation

WORDS = ("latency", "time", "runtime", "duration", "elapsed", "median", "mean", "average", "avg", "min", "max", "best")
"""Words that a time follows; p50 and its like too."""
_TIMES = {
    "ns": r"ns(?:ecs?)?|nanoseconds?",
    "us": r"[uµμ]s(?:ecs?)?|microseconds?",
    "ms": r"ms(?:ecs?)?|milliseconds?",
    "s": r"s(?:ecs?)?|seconds?",
}
_BYTES = {f"{prefix}B/s": rf"{prefix}B/s(?:ec)?" for prefix in ("", "K", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")}
_FLOPS = {f"{prefix}FLOP/s": rf"(?i:{prefix}flops?/s(?:ec)?|{prefix}flops)" for prefix in "MGTP"}
_RATIO = {"x": r"[x×](?!\s*[0-9])"}
UNITS = {**_TIMES, **_BYTES, **_FLOPS, **_RATIO, "%": "%"}
"""A unit as figures have it, and how it may be written."""

NUMBER = Notation(thousands=",", lone_group=False, loose=True, exponent_digits="+").pattern
"""A comma separates thousands only where it can mean nothing else: 1,234.5 is a number, 1,234 is none."""
_MORE = r"[.,]?[0-9]|[eE][+-]?[0-9]"
_WHOLE = rf"(?<![\w.,])(?P<number>{NUMBER})(?!{_MORE})"
_SPREAD = rf"(?:\s{{0,4}}(?:±|\+/-|\+-)\s{{0,4}}{NUMBER})?"
_UNIT_END = r"(?![\w%])(?!/(?!(?:iter|iteration|call|run|launch|step|rep)\b))"
_CODES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


def _any(units: dict[str, str]) -> str:
    return "|".join(units.values())


def _then(units: dict[str, str]) -> str:
    """What may stand between a number and its unit, and the unit."""
    return rf"{_SPREAD}\s{{0,4}}(?P<unit>{_any(units)}){_UNIT_END}"


class Seen(NamedTuple):
    """A number that was printed."""

    name: str
    number: str
    """As it is written."""
    unit: str
    """One of `UNITS`; empty where none stands there."""
    at: int
    """Where the number begins in its line."""
    line: int = 0
    """Number of its line, counted from 0."""


def without_codes(line: str) -> str:
    """A line without codes of colour, which would stand between words and numbers."""
    return _CODES.sub("", line)


def value(number: str) -> float:
    """The value of a number as it is written; it may be infinite, or NaN where JSON said so."""
    return float(number.replace(",", ""))


# --- a number that a pattern of the user's has found ------------------------------------------------------------------

_IN_GROUP = re.compile(rf"\s*(?P<number>{NUMBER})(?:\s*(?P<unit>{_any(UNITS)}))?\s*")
_BESIDE = re.compile(_then(UNITS))
_GOES_ON = re.compile(_MORE)


def number_at(line: str, start: int, end: int) -> tuple[str, str] | None:
    """(number, unit) of a part of a line, the unit in it or behind it; None where it is no number, or part of one."""
    read = _IN_GROUP.fullmatch(line[start:end])
    if read is None or _GOES_ON.match(line, end) or line[max(0, start - 1) : start].isdigit():
        return None
    beside = _BESIDE.match(line, end)
    return read["number"], _unit(read["unit"] or (beside["unit"] if beside else ""))


def _unit(written: str) -> str:
    return next((name for name, way in UNITS.items() if written and re.fullmatch(way, written)), "")


# --- the usual words --------------------------------------------------------------------------------------------------

_WORD = re.compile(rf"(?i)(?<![A-Za-z0-9])(?:{'|'.join(WORDS)}|p[0-9]{{1,2}})(?![A-Za-z0-9])")
_FOLLOWS = re.compile(rf"[^0-9,;/|]{{0,40}}?{_WHOLE}{_then(_TIMES)}")
_UNIT_FIRST = re.compile(
    rf"(?:\s{{0,4}}[\[(]\s?(?P<unit>{_any(_TIMES)})\s?[\])]|_(?P<joined>{_any(_TIMES)}))"
    rf"[\"']?(?:\s{{0,8}}[:=]|\s)\s{{0,8}}{_WHOLE}(?!\w)"
)
_PARTS_A_LIST = re.compile(r"[^0-9]*[,;/|][^0-9]*")
_OTHERS = {
    "speedup": (
        re.compile(rf"(?i:speed[- ]?up)[^0-9,;/|]{{0,40}}?{_WHOLE}{_then(_RATIO)}"),
        re.compile(rf"{_WHOLE}\s{{0,4}}(?P<unit>{_any(_RATIO)})\s{{1,4}}(?i:speed[- ]?up|faster)\b"),
    ),
    "bandwidth": (re.compile(rf"{_WHOLE}{_then(_BYTES)}"),),
    "flops": (re.compile(rf"{_WHOLE}{_then(_FLOPS)}"),),
}


def usual(line: str) -> Iterator[Seen]:
    """Times beside the usual words, speedups, and rates, whatever stands beside them."""
    before = None
    for word in _WORD.finditer(line):
        listed = before is not None and _PARTS_A_LIST.fullmatch(line, before, word.start())
        before = word.end()
        found = _FOLLOWS.match(line, word.end()) or _UNIT_FIRST.match(line, word.end())
        if found and not listed:  # in `min, median, max: 1 ms, 2 ms, 3 ms` no number is its neighbour's
            unit = found["unit"] or found["joined"]
            yield Seen(word[0].lower(), found["number"], _unit(unit), found.start("number"))
    for name, patterns in _OTHERS.items():
        places = {match.start("number"): match for pattern in patterns for match in pattern.finditer(line)}
        for at, match in sorted(places.items()):
            yield Seen(name, match["number"], _unit(match["unit"]), at)
