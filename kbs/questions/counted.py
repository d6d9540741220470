"""Arithmetic units that a question counts: how many CUDA cores, 4 tensor cores per SM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kbs.evidence.units import NUMBER
from kbs.evidence.vocabulary import Mention, Vocabulary, words

_SM = r"(?:sms?|cus?|compute units?|(?:streaming )?multi-?processors?)\b"
_ONE = r"(?:an?|each|every|one|a single|the)"
_EACH = re.compile(
    rf"\s*(?:/|per)\s*(?:[\w.-]+ )?{_SM}"
    rf"|\s+(?:(?:(?:are|is) )?(?:there )?(?:in|on|of|for|by)\s+)?{_ONE}\s+(?:[\w.-]+\s){{0,4}}?{_SM}"
    rf"|\s+(?:does|do|has|have|is|are)\s+(?:there\s+)?(?:in\s+|on\s+|per\s+)?(?:{_ONE}\s+)?(?:[\w.-]+\s){{0,3}}?{_SM}",
    re.IGNORECASE,
)
"""Behind the name of a unit: those of one SM are meant."""
_OF_EACH = re.compile(rf"\b(?:an?|each|every|one|per)\s+(?:[\w.-]+\s){{0,2}}?{_SM}[^.?!;]{{0,60}}$", re.IGNORECASE)
_ASKED = re.compile(
    r".*\b(?:how (?:many|much)|number of|count of|total(?: number)?(?: of)?|more|fewer|most|least|less)\s+"
    r"(?P<between>[^.?!;:]{0,60})$",
    re.IGNORECASE | re.DOTALL,
)
_OTHERWISE = re.compile(
    r"\b(?:do|does|did|can|could|is|are|per|than|to|for|of|on|with|in|should|will|would|needs?|uses?|using|fit|run"
    r"|what|which|why|how)\b",
    re.IGNORECASE,
)
"""Words between "how many" and the name of a unit that show that something else is counted."""
_NUMBER = re.compile(
    rf"(?<![\w.])(?P<number>{NUMBER})\s+(?:(?:\w+[- ])?(?:gen|generation)\s|(?:nvidia|amd|physical|total)\s)?$", re.I
)
_COUNT = re.compile(r"\s+(?:counts?|number|total)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Counted:
    """Units that are counted in a text."""

    metric: str
    start: int
    end: int
    """Characters of their name and of what says that those of one SM are meant."""
    number: str = ""
    """The number that the text gives of them."""
    number_start: int = 0


def counted_units(text: str, vocabulary: Vocabulary) -> Iterator[Counted]:
    """The units that a text counts, in its order."""
    names, form = _names(vocabulary)
    for match in form.finditer(text):
        metric = vocabulary.metrics[_metric_of(match, names)]
        before, after = text[: match.start()], text[match.end() :]
        each = _EACH.match(after)
        number = _NUMBER.search(before)
        if number is not None and _in_product(text, number.start("number"), vocabulary):
            number = None
        asked = _ASKED.match(before)
        asks = asked is not None and not _OTHERWISE.search(asked["between"])
        if not (each or number or asks or _COUNT.match(after)):
            continue
        end = match.end() + (each.end() if each else 0)
        id = metric.each if each or _OF_EACH.search(before) else metric.id
        given = (number["number"], number.start("number")) if number else ("", 0)
        yield Counted(id, match.start(), end, *given)


def bare(text: str, found: list[Mention], vocabulary: Vocabulary) -> Iterator[Counted]:
    """The units that a text names beside GPUs and nothing else: "RTX 4090 CUDA cores"."""
    names, form = _names(vocabulary)
    matches = list(form.finditer(text))
    if len(matches) != 1 or vocabulary.find(matches[0][0], "technique"):
        return
    [match] = matches
    start = len(words(text[: match.start()]))
    named = set(range(start, start + len(words(match[0]))))
    for mention in found:
        if mention.kind in ("product", "family", "vendor"):
            named.update(range(mention.start, mention.end))
    rest = [word for place, word in enumerate(words(text)) if place not in named]
    if set(rest) <= _SMALL and len(named) > len(words(match[0])):
        yield Counted(_metric_of(match, names), match.start(), match.end())


_SMALL = frozenset(
    {"vs", "versus", "and", "or", "of", "the", "in", "for", "a", "an", "compare", "compared", "to", "with"}
)


def unit_mentions(text: str, found: list[Mention], vocabulary: Vocabulary) -> list[Mention]:
    """The metrics of the units that a text counts, at their places in `words(text)`; a unit that is counted once is
    meant wherever it is named."""
    units = list(counted_units(text, vocabulary)) or list(bare(text, found, vocabulary))
    names, form = _names(vocabulary)
    meant = {vocabulary.metrics[unit.metric].each or unit.metric: unit.metric for unit in units}
    for match in form.finditer(text) if units else ():
        id = meant.get(vocabulary.metrics[_metric_of(match, names)].each)
        if id and not any(unit.start <= match.start() < unit.end for unit in units):
            units.append(Counted(id, match.start(), match.end()))
    out = []
    for unit in units:
        start = len(words(text[: unit.start]))
        out.append(Mention("metric", unit.metric, start, start + len(words(text[unit.start : unit.end]))))
    return out


def _metric_of(match: re.Match[str], names: dict[str, str]) -> str:
    return names[re.sub(r"[\s-]+", " ", match[1].lower())]


def _in_product(text: str, start: int, vocabulary: Vocabulary) -> bool:
    """Whether a number is a part of the name of a GPU, as in "RTX 4090 CUDA cores"."""
    place = len(words(text[:start]))
    return any(mention.start <= place < mention.end for mention in vocabulary.find(text, "product"))


@lru_cache(maxsize=4)
def _names(vocabulary: Vocabulary) -> tuple[dict[str, str], re.Pattern[str]]:
    """Name of a unit → id of the metric that counts it; and a regular expression for all names, the longest first."""
    names = {name: metric.id for metric in vocabulary.metrics.values() for name in metric.counted}
    form = "|".join(re.escape(name).replace(r"\ ", r"[\s-]+") for name in sorted(names, key=len, reverse=True))
    return names, re.compile(rf"(?<![\w-])({form})s?(?!\w)", re.IGNORECASE)
