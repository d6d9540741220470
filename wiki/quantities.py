"""Quantities in sentences: which numbers state a fact."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from kbs.evidence.quantities import unit_pattern
from kbs.evidence.units import NUMBER
from kbs.evidence.vocabulary import Vocabulary, words

_COUNTS = frozenset({"threads", "warps", "blocks", "registers", "sectors", "FLOP"})
"""Units of things that a sentence may simply choose or count ("a block of 256 threads")."""
_NUMBER = rf"(?<![\w.,^-])(?P<number>{NUMBER})"


class Quantities:
    """Finds numbers with units."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        units = vocabulary.units.values()
        measured = unit_pattern(unit for unit in units if unit.id not in _COUNTS)
        counted = unit_pattern(unit for unit in units if unit.id in _COUNTS)
        self.measured = re.compile(rf"{_NUMBER}(?:{measured}|\s?[kMGTP]FLOPs?)(?![\w/])")
        """A number with a physical unit."""
        self.counted = re.compile(rf"{_NUMBER}(?:{counted})(?!\w)")
        names = {
            name
            for term in (*vocabulary.products.values(), *vocabulary.families.values())
            for name in (term.name, *term.aliases)
            if len(words(name)) > 1
        }
        self._products = re.compile(rf"\b(?:{any_of(name.casefold() for name in names)})\b", re.IGNORECASE)
        boards = {name for term in vocabulary.products.values() for name in (term.name, *term.aliases)}
        self._boards = re.compile(
            rf"(?<![\w-])(?:{any_of(n.casefold() for n in boards if re.search(r'[0-9]', n))})(?![\w-])", re.IGNORECASE
        )

    def sentence(self, line: str) -> str:
        """`line` without what only looks like a fact: link texts and names such as "A100 SXM 40 GB"."""
        without_links = re.sub(r"!?\[[^\]]*\]\([^)]*\)", lambda link: " " * len(link[0]), line)
        return self._products.sub(lambda name: "§" * len(name[0]), without_links)

    def boards(self, line: str) -> list[str]:
        """The boards that `line` names, link texts and code left out."""
        plain = re.sub(r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)", lambda part: " " * len(part[0]), line)
        return self._boards.findall(plain)

    def facts(self, line: str) -> Iterator[str]:
        """The parts of `line` that state a measured quantity, a limit or a gain, as they are written."""
        sentence = self.sentence(line)
        for match in self.measured.finditer(sentence):
            yield match[0]
        for match in self.counted.finditer(sentence):
            if _LIMIT.search(sentence[: match.start()]):
                yield match[0]
        for match in _GAIN.finditer(sentence):
            yield match[0]


@lru_cache(maxsize=4)
def quantities_of(vocabulary: Vocabulary) -> Quantities:
    """What finds numbers with units of a vocabulary: its patterns take long to make."""
    return Quantities(vocabulary)


def any_of(names: Iterable[str]) -> str:
    """A regular expression of names that finds the longest, and reads each letter of their beginnings once."""
    ends: dict[str, set[str]] = {}
    empty = False
    for name in names:
        if name:
            ends.setdefault(name[0], set()).add(name[1:])
        else:
            empty = True
    parts = [re.escape(first) + (any_of(rest) if rest != {""} else "") for first, rest in sorted(ends.items())]
    if not parts:
        return ""
    return f"(?:{'|'.join(parts)}){'?' if empty else ''}" if empty or len(parts) > 1 else parts[0]


_LIMIT = re.compile(
    r"\b(?:at most|at least|up to|no more than|more than|fewer than|maximum of|limit of)\s+$", re.IGNORECASE
)
_GAIN = re.compile(
    rf"{_NUMBER}(?:[x×](?!\w|\s*[\dA-Z(])"
    r"|\s(?:times|percent)\s(?:as|faster|slower|more|less|fewer|longer|shorter|higher|lower|larger|smaller)\b)"
    r"|\b(?i:twice|thrice|half|(?:two|three|four|five|ten) times)\sas\s(?:fast|slow|long)\b"
)
