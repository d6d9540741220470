"""Where edits of a page can go: its lines of prose, rows, sections and front matter, found by the page format alone.

Nothing here is taken from the lint, so that a place which the lint overlooks is drawn as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

SPEC = "| metric | value | unit | qualifier | confidence | source |"
TABLES = ("Specifications", "Cost", "Measured", "What to try", "Where sources disagree", "Not published")
UNITS = r"(?:[TGMK]?B/s|[TG]?FLOPS|TOPS|[MGK]B|KiB|MHz|GHz|W|ns|µs|ms|%)"
FIGURE = re.compile(rf"(?<![\w.,])\d[\d,.]*\d? {UNITS}(?![\w/])")


@dataclass(frozen=True)
class Row:
    """A row of a table: the index of its line, and its cells."""

    at: int
    cells: list[str]

    def text(self, **changed: str) -> str:
        """The row with cells changed: `c1="..."` is the second cell."""
        return "| " + " | ".join(changed.get(f"c{n}", cell) for n, cell in enumerate(self.cells)) + " |"


@dataclass(frozen=True)
class Section:
    """A heading, its comment of asks and what stands below, as indices of lines."""

    heading: int
    end: int
    title: str
    asks: tuple[int, int] | None
    """First and last line of the comment."""


class Body:
    """A page taken apart by lines."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.lines = path, text.split("\n")
        self.front = self.lines.index("---", 1) if "---" in self.lines[1:] else 0
        self.code, inside = set[int](), False
        for at, line in enumerate(self.lines):
            if line.lstrip().startswith("```"):
                self.code.add(at)
                inside = not inside
            elif inside:
                self.code.add(at)
        heads = [at for at, line in enumerate(self.lines) if re.match(r"#{1,4} ", line) and at not in self.code]
        self.sections = [self._section(at, after) for at, after in zip(heads, [*heads[1:], self._notes()], strict=True)]
        self.asked = {n for one in self.sections if one.asks for n in range(one.asks[0], one.asks[1] + 1)}

    def _notes(self) -> int:
        return next((at for at, line in enumerate(self.lines) if re.match(r"\[\^[^]]+\]: ", line)), len(self.lines) - 1)

    def _section(self, at: int, end: int) -> Section:
        begin = next((n for n in range(at + 1, min(at + 3, end)) if self.lines[n].startswith("<!-- asks:")), None)
        asks = None
        if begin is not None:
            asks = (begin, next((n for n in range(begin, end) if self.lines[n].endswith("-->")), begin))
        return Section(at, end, self.lines[at].lstrip("# "), asks)

    def prose(self) -> list[int]:
        """Lines of prose, without headings, tables, code, footnotes, lists and asks."""
        first, last = self.sections[0].heading if self.sections else self.front, self._notes()
        return [
            at
            for at in range(first + 1, last)
            if re.match(r"[\w`*\"(]", self.lines[at]) and at not in self.code and at not in self.asked
        ]

    def rows(self, head: str = SPEC) -> list[Row]:
        """Rows of the tables with this header."""
        found = []
        for at, line in enumerate(self.lines):
            if line != head:
                continue
            for n in range(at + 2, len(self.lines)):
                if not self.lines[n].startswith("|"):
                    break
                found.append(Row(n, [cell.strip() for cell in self.lines[n].strip("|").split("|")]))
        return found

    def asked_sections(self) -> list[Section]:
        """Sections of prose with asks."""
        return [one for one in self.sections if one.asks and one.title not in TABLES]

    def asks(self, one: Section) -> list[str]:
        """The asks of a section."""
        first, last = one.asks or (0, -1)
        whole = " ".join(self.lines[first : last + 1]).removeprefix("<!-- asks:").removesuffix("-->")
        return [ask.strip() for ask in whole.split(" · ")]

    def with_asks(self, one: Section, asks: list[str]) -> str:
        """The page with other asks of a section."""
        assert one.asks is not None
        return self.put(one.asks[0], one.asks[1] + 1, "<!-- asks: " + " · ".join(asks) + " -->")

    def put(self, start: int, stop: int, *new: str) -> str:
        """The page with lines replaced; `start == stop` inserts."""
        return "\n".join([*self.lines[:start], *new, *self.lines[stop:]])

    def sub(self, at: int, old: str, new: str) -> str:
        """The page with one text of a line replaced once."""
        return self.put(at, at + 1, self.lines[at].replace(old, new, 1))

    def key(self, name: str) -> int | None:
        """The line of a key of the front matter."""
        return next((at for at in range(1, self.front) if self.lines[at].startswith(f"{name}:")), None)

    def sources(self) -> Iterator[tuple[int, str]]:
        """Line and id of each source."""
        for at in range(1, self.front):
            if found := re.match(r"  - \{id: ([\w.-]+)", self.lines[at]):
                yield at, found[1]


def other_digits(rng: Random, number: str) -> str:
    """A number with two of its digits exchanged, or one changed where all are the same."""
    places = [n for n, char in enumerate(number) if char.isdigit()]
    pairs = [(a, b) for a, b in pairwise(places) if number[a] != number[b] and not (a == 0 and number[b] == "0")]
    chars = list(number)
    if pairs:
        a, b = rng.choice(pairs)
        chars[a], chars[b] = chars[b], chars[a]
    else:
        at = rng.choice(places)
        chars[at] = str((int(chars[at]) + rng.randint(1, 8)) % 9 + 1)
    made = "".join(chars)
    return made if made != number else other_digits(rng, number)
