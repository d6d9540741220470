"""A number in its sentence: what the words around it make of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from kbs.evidence.quantities import Stated
from kbs.evidence.units import Quantity
from loop.gate.numbers import wording
from loop.gate.numbers.figures import exact, plain_number
from loop.gate.numbers.names import FoundName

Name = FoundName[frozenset[str]]
"""The ids of the metrics of hardware that a name may mean; none for the name of a product."""


@dataclass(frozen=True)
class Sentence:
    """A sentence, and what its words say of all its numbers."""

    text: str
    names: tuple[Name, ...]
    """Names of metrics of hardware and of products."""
    metrics: tuple[FoundName[str], ...]
    """Names of metrics of a profile."""
    before: str
    """The sentence before it."""
    following: str = ""
    """The sentence after it."""

    @cached_property
    def uses(self) -> bool:
        """Whether it says what a kernel takes."""
        return bool(wording.USES.search(self.text))

    @cached_property
    def has(self) -> bool:
        """Whether it says what something has."""
        return bool(wording.HAS.search(self.text))

    @cached_property
    def thing(self) -> bool:
        """Whether it names hardware."""
        return bool(wording.THING.search(self.text)) or self.names_product

    @cached_property
    def names_product(self) -> bool:
        """Whether it names a GPU."""
        return any(not name.meaning for name in self.names)

    @cached_property
    def follows_thing(self) -> bool:
        """Whether it, or the sentence before it, names hardware."""
        return self.thing or bool(wording.THING.search(self.before) or wording.PARTS.search(self.before))


@dataclass(frozen=True)
class Spoken:
    """A number in its sentence."""

    sentence: Sentence
    start: int
    end: int
    written: str
    suffix: str
    unit: Stated | None
    hidden: bool = False
    """Whether it stands in a name that is none: a version that the run does not have, an architecture that none is."""
    unread: bool = False
    """Whether a unit stands there behind a word that is not understood, where a number should be."""

    @property
    def version(self) -> int | None:
        """The version that alone is said to have it: `v0 takes 130 us`; None if none is."""
        if self.dimension not in wording.MEASURED or wording.COMPARES.search(self.text):
            return None
        of = wording.OF_VERSION.search(self.before)
        return int(of[1] or of[2]) if of else None

    @property
    def is_share(self) -> bool:
        """Whether it is a share of what is measured: `a fifth of the instructions`."""
        share = wording.SHARE.match(self.after)
        if share is None:
            return False
        of = self.after[share.end() :][:40]
        return self.sentence.thing or bool(self.sentence.names) or bool(wording.MEASURABLE.match(of))

    @property
    def text(self) -> str:
        """The sentence."""
        return self.sentence.text

    @property
    def before(self) -> str:
        """What stands before it."""
        return self.text[max(0, self.start - wording.NEAR) : self.start]

    @property
    def after(self) -> str:
        """What stands behind it and its unit."""
        return self.text[self.end : self.end + wording.NEAR]

    @property
    def behind_number(self) -> str:
        """What follows the digits, the unit with it."""
        place = self.start + len(self.written) + len(self.suffix)
        return self.text[place : place + wording.NEAR]

    @property
    def counted_operations(self) -> bool:
        """`2 ops an element`: a count, although `ops` is also a rate."""
        return self.unit is not None and self.unit.text.endswith(("ops", "flops")) and self.value <= wording.CHOSEN

    @property
    def dimension(self) -> str:
        """What its unit measures; empty without one, and where the word is none here."""
        if self.unit is None or self.counted_operations:
            return ""
        return "" if self.unit.dimension in wording.COUNTS and self.counts_parts else self.unit.dimension

    @property
    def counts_parts(self) -> bool:
        """`8 warp schedulers`: parts of a GPU, whatever unit the first word is."""
        return bool(wording.PARTS_AFTER.match(self.behind_number))

    @property
    def plain(self) -> Quantity:
        """The number without its unit."""
        found = plain_number(self.written)
        assert found is not None
        return found

    @property
    def value(self) -> Decimal:
        """In base units for hardware and bytes, else as written."""
        scaled = self.unit is not None and self.unit.dimension in wording.HARDWARE | {"bytes"}
        return self.unit.readings[0].base if scaled and self.unit is not None else self.plain.base

    @property
    def readings(self) -> tuple[Quantity, ...]:
        """What it may mean: 16K is 16,000 or 16,384."""
        if self.dimension and self.unit is not None:
            return self.unit.readings
        if self.is_share:
            whole = Decimal(wording.SHARE.match(self.after)[1])  # type: ignore[index]  # it is one
            return (exact(self.plain.number.value / max(whole, Decimal(1)), "percent", Decimal(1)),)
        power = " kMGT".find(self.suffix[:1].replace("K", "k")) if self.suffix else 0
        if power <= 0:
            return (self.plain,)
        value = self.plain.number.value
        return tuple(exact(value * Decimal(base) ** power, "") for base in (1000, 1024))

    @property
    def is_result(self) -> bool:
        """Whether arithmetic that is shown comes to it."""
        return self.before.rstrip().endswith("=")

    @property
    def reaches_a_limit(self) -> bool:
        """Whether its sentence ends in the claim that so much fills a part of the GPU."""
        counts = not self.dimension or self.dimension in wording.COUNTS or self.dimension == "bytes"
        return counts and bool(wording.FILLS.search(self.after))

    @property
    def is_count_of_times(self) -> bool:
        """Whether `times`, `x` or `fold` follows."""
        return bool(wording.TIMES.match(self.after))

    @property
    def is_gain(self) -> bool:
        """Whether it says how many times faster, or more, something is."""
        if self.dimension or wording.SHAPE_AFTER.match(self.after):
            return False
        whole = self.value == self.value.to_integral()
        told = bool(wording.GAIN_BEFORE.search(self.before))
        if not self.is_count_of_times:
            return (told and not whole) or bool(wording.SPEEDUP_BEFORE.search(self.before))
        gains = told or bool(wording.GAIN.match(self.after) or wording.FACTOR.match(self.after))
        return gains or not whole

    def is_name(self) -> bool:
        """Whether it belongs to a name or counts versions, lines and the like: `FlashAttention-2`, `line 40`, `1st`."""
        if re.match(r"^(?:st|nd|rd|th|D|-?D)\b", self.after) and self.value <= 100:
            return True
        if re.search(r"[A-Za-z]-$", self.before) and len(self.written) <= 2 and not self.unit:
            return not wording.UNIT_AFTER.match(self.after)
        if self.unit is not None or wording.UNIT_AFTER.match(self.after) or wording.PARTS_AFTER.match(self.after):
            return False
        return bool(wording.NUMBERED.search(self.before)) and self.value < 10_000

    def foretold(self) -> bool:
        """Whether it is the limit of a comparison, or what may come."""
        dimension = self.dimension or ("ratio" if self.is_gain or wording.TIMES.match(self.after) else "")
        if dimension not in wording.FORETOLD:
            return not dimension
        compared = wording.COMPARED.search(self.before[-48:]) or wording.COMPARED_AFTER.match(self.after)
        return bool(compared or wording.MODAL.search(self.before))
