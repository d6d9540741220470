"""Finds names of several words in a text, such as those of metrics and products."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

_WORD = re.compile(r"[A-Za-z0-9]+")
Words = tuple[str, ...]
Meaning = TypeVar("Meaning")


def name_words(name: str) -> Words:
    """A name as it is compared: its words in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))


@dataclass(frozen=True)
class FoundName(Generic[Meaning]):
    """A name in a text."""

    start: int
    end: int
    meaning: Meaning
    words: int


class NameFinder(Generic[Meaning]):
    """Finds the names of a table in texts; of two that begin at the same word, the longer one."""

    def __init__(self, names: Mapping[Words, Meaning]) -> None:
        self._by_first: dict[str, list[tuple[Words, Meaning]]] = {}
        for words, meaning in names.items():
            if words:
                self._by_first.setdefault(words[0], []).append((words, meaning))
        for found in self._by_first.values():
            found.sort(key=lambda pair: -len(pair[0]))

    def find(self, text: str) -> Iterator[FoundName[Meaning]]:
        """Every name of a text, in order; none overlaps another."""
        tokens = [(match.start(), match.end(), match[0].lower()) for match in _WORD.finditer(text)]
        position = 0
        while position < len(tokens):
            for words, meaning in self._by_first.get(tokens[position][2], ()):
                last = position + len(words)
                if last <= len(tokens) and all(tokens[position + n][2] == word for n, word in enumerate(words)):
                    yield FoundName(tokens[position][0], tokens[last - 1][1], meaning, len(words))
                    position = last - 1
                    break
            position += 1
