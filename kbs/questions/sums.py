"""Numbers of a question that only a sum needs: what repeats and how long it takes, the sizes of a tensor, a limit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

_TIMES = {"ns": "ns", "us": "µs", "µs": "µs", "μs": "µs", "ms": "ms", "s": "s"}
_THINGS = (
    r"(?:kernels?|launch(?:es)?|kernel launch(?:es)?|calls?|ops?|operators?|layers?|iterations?|steps?|tokens?|graphs?"
    r"|copies|transfers?|blocks?|tiles?|syncs?|synchronizations?|nodes?)"
)
_COUNT = re.compile(rf"(?<![\w.])(\d[\d,]*)(k?) (?:\w+ ){{0,2}}?{_THINGS}\b", re.IGNORECASE)
_EACH = re.compile(
    r"(?<![\w.])~?(\d[\d,]*(?:\.\d+)?) ?(ns|us|µs|μs|ms|s)\b(?= (?:\w+ ){0,3}?(?:each|apiece|per|a|every)\b|/)"
    r"|\b(?:each|per \w+|every \w+|apiece)\b[^.?!\d]{0,30}?(\d[\d,]*(?:\.\d+)?) ?(ns|us|µs|μs|ms|s)\b",
    re.IGNORECASE,
)
_NOUN = (
    r"(?:tokens?|vocab(?:ulary)?|rows?|columns?|cols?|elements?|heads?|layers?|batch(?:es)?|hidden|channels?|features?"
    r"|entries|sequences?|seq(?:uence)?(?:[ _-]?len(?:gth)?)?|experts?|dims?|head[ _-]?dim)"
)
_SHAPE = re.compile(r"(?<![\w.])\d[\d,]*[kK]?(?: ?[x×*] ?\d[\d,]*[kK]?){1,5}(?![\w.])")
_BEFORE = re.compile(rf"(?<![\w.])(\d[\d,]*)([kK]?) {_NOUN}\b", re.IGNORECASE)
_AFTER = re.compile(rf"\b{_NOUN}(?: size)?(?: of| is| =|=|:)? ?(\d[\d,]*)([kK]?)\b(?! ?{_NOUN}\b)", re.IGNORECASE)
_LIMIT = re.compile(r"\blimit(?: is|:|=| of)? ?(?:only )?(\d{5,7})\b|\b(\d{5,7})(?: bytes| B)? limit\b", re.IGNORECASE)


@dataclass(frozen=True)
class Repeated:
    """What is done `count` times and takes `time` each time."""

    count: int
    time: Decimal
    unit: str
    """ns, µs, ms or s."""


def repeated(text: str) -> Repeated | None:
    """A count of things and the time of each; None where the text does not give both."""
    counts = [_whole(match[1], match[2]) for match in _COUNT.finditer(text)]
    each = _EACH.search(text)
    if not counts or each is None:
        return None
    time, unit = (each[1], each[2]) if each[1] else (each[3], each[4])
    return Repeated(max(counts), Decimal(time.replace(",", "")), _TIMES[unit.lower()])


def extent(text: str) -> list[int]:
    """The sizes of a tensor, in the order of the text: of a shape (4096x128), or each beside the name of what it
    counts (81920 tokens, vocab 128256)."""
    if shape := _SHAPE.search(text):
        return [_whole(*_kilo(size)) for size in re.split(r" ?[x×*] ?", shape[0])]
    found = {match.start(1): _whole(match[1], match[2]) for form in (_BEFORE, _AFTER) for match in form.finditer(text)}
    return [size for _, size in sorted(found.items()) if size > 0]


def limit_given(text: str) -> int | None:
    """The bytes that a message names as a limit: "Hardware limit: 166912"."""
    match = _LIMIT.search(text)
    return int(match[1] or match[2]) if match else None


_AMOUNT = re.compile(r"(?<![\w.])~?(\d[\d,]*(?:\.\d+)?) ?([KMGT]i?B)\b(?! ?/ ?s| per s)")
_TAKEN = re.compile(r"(?<![\w.])~?(\d[\d,]*(?:\.\d+)?) ?(ns|us|µs|μs|ms|s|seconds?)\b")


def moved(text: str) -> tuple[str, str] | None:
    """(bytes, the time that they take), each with its unit, as the text gives them; None where it does not give just
    one of each. Bytes behind which a rate or the name of a memory stands are none that move."""
    amounts = {f"{match[1]} {match[2]}" for match in _AMOUNT.finditer(text)}
    times = {f"{match[1]} {_TIMES.get(match[2], 's')}" for match in _TAKEN.finditer(text)}
    return (amounts.pop(), times.pop()) if len(amounts) == len(times) == 1 else None


def _kilo(size: str) -> tuple[str, str]:
    return (size[:-1], size[-1]) if size[-1:] in "kK" else (size, "")


def _whole(number: str, kilo: str) -> int:
    return int(number.replace(",", "")) * (1024 if kilo else 1)
