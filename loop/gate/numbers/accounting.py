"""Accounts for every number in what a proposer wrote.

A number passes if it is measured, cited, computed before the reader's eyes, or no claim: a size of the run, what the
kernel chooses, part of a name, a small count of things that are no hardware. Whatever is none of these is refused, so
that a new way of writing a hardware spec needs no new pattern here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from kbs.evidence.quantities import find_quantities, normal
from kbs.evidence.units import parse_number, parse_unit, says_the_same
from kbs.evidence.vocabulary import Vocabulary
from loop.gate.numbers import references, scope, wording
from loop.gate.numbers.figures import Chosen, Given, Sources, pieces
from loop.gate.numbers.names import NameFinder, Words, name_words
from loop.gate.numbers.plain_text import plain
from loop.gate.numbers.profiles import beside, metric_names, names, says, shown_of, values_of
from loop.gate.numbers.sources import is_element
from loop.gate.numbers.spoken import Name, Sentence, Spoken


@dataclass(frozen=True)
class Unaccounted:
    """A number that nothing accounts for, or a spec beside a hedging word."""

    line: int
    text: str
    """The number with what follows it."""
    sentence: str
    hardware: bool
    """Whether it states something of hardware."""
    metric: str
    """The metric of the profile beside it, if that has another value; else empty."""
    is_there: str
    """The profile's value of that metric; empty if there is none."""
    hedge: str = ""
    """The hedging word beside a spec that is otherwise accounted for."""


Mode = Literal["claims", "limits", "predictions"]
"""How a text is read: `limits` for decision rules and risks, which speak of what is to come; `predictions` for those in
which only claims on hardware count: predictions, questions and strings."""


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) of what reads on over ends of lines; rows of tables and items stand alone."""
    start, found = 1, list[str]()
    for number, line in enumerate(lines, start=1):
        cites = "<-" in line or (bool(found) and "<-" in found[-1])
        alone = line.count("|") > 1 or not line.strip() or bool(wording.ITEM.match(line)) or cites
        if found and (alone or found[-1].count("|") > 1 or found[-1].rstrip().endswith((".", ":", ";", "!", "?"))):
            yield start, found
            found = []
        if not found:
            start = number
        if line.strip():
            found.append(line)
    if found:
        yield start, found


class Accountant:
    """Accounts for numbers by the names of a vocabulary."""

    def __init__(self, terms: Vocabulary) -> None:
        self._terms = terms
        table: dict[Words, frozenset[str]] = {}
        for metric in terms.metrics.values():
            for alias in (metric.id, metric.name, *metric.aliases):
                table[name_words(alias)] = table.get(name_words(alias), frozenset()) | {metric.id}
        self._products: dict[Words, str] = {}
        for product in (*terms.products.values(), *terms.families.values()):
            for alias in (product.id, product.name, *product.aliases):
                self._products.setdefault(name_words(alias), product.id)
                table.setdefault(name_words(alias), frozenset())
        self._names = NameFinder(table)
        self._product_names = NameFinder(self._products)
        self._dimensions = {
            id: unit.dimension
            for id, metric in terms.metrics.items()
            if not metric.text and (unit := parse_unit(metric.unit, capacity=metric.capacity)) is not None
        }

    def names_hardware(self, text: str) -> bool:
        """Whether a text has the name of a metric or product, or of a part of a GPU."""
        return bool(wording.THING.search(text)) or any(True for _ in self._names.find(text))

    def unaccounted(self, text: str, sources: Sources, chosen: Chosen, mode: Mode = "claims") -> Iterator[Unaccounted]:
        """Numbers of a text that nothing accounts for, and hedged specs, each with its line."""
        lines = references.blanked(normal(plain(text))).split("\n")
        head = ""
        for number, line in enumerate(lines, start=1):
            row = line.count("|") > 1
            if row and number < len(lines) and wording.RULED.fullmatch(lines[number][:2000]):
                head = line
            head = head if row else ""
            if head and (self.names_hardware(head) or wording.UNIT_IN_HEAD.search(head)):
                yield from self._of(number, [line], sources, chosen, mode, in_table=True)
        paragraphs = list(_paragraphs(lines))
        for at, (number, paragraph) in enumerate(paragraphs):
            around = [" ".join(paragraphs[n][1]) if 0 <= n < len(paragraphs) else "" for n in (at - 1, at + 1)]
            yield from self._of(number, paragraph, sources, chosen, mode, around)

    def _of(
        self,
        number: int,
        lines: Sequence[str],
        sources: Sources,
        chosen: Chosen,
        mode: Mode,
        around: Sequence[str] = ("", ""),
        *,
        in_table: bool = False,
    ) -> Iterator[Unaccounted]:
        starts, at = list[int](), 0
        lines = [" ".join(re.sub(r"[|\t]", " ", line).split()) for line in lines]
        for line in lines:
            starts.append(at)
            at += len(line) + 1
        whole = " ".join(lines)
        offset, before = 0, (list(pieces(around[0])) or [""])[-1]
        several = list(pieces(whole))
        after = [*several[1:], (list(pieces(around[1])) or [""])[0]]
        for said, following in zip(several, after, strict=False):
            offset = whole.find(said, offset)
            for spoken, hardware in self._numbers(said, (before, following), sources, mode, in_table):
                if not hardware and (mode == "predictions" or (mode == "limits" and spoken.foretold())):
                    continue
                found = self._account(spoken, hardware, sources, chosen)
                if found is not None:
                    place = bisect_right(starts, offset + spoken.start) - 1
                    yield replace(found, line=number + place)
            before = said

    def _numbers(
        self, said: str, around: tuple[str, str], sources: Sources, mode: Mode, in_table: bool
    ) -> Iterator[tuple[Spoken, bool]]:
        """(number, whether it states something of hardware) of a sentence; parts of names are left out."""
        unread = wording.UNIT_ALONE.search(said) or wording.AS_MANY_PARTS.search(said)
        if unread and mode != "predictions":
            empty = Sentence(said, (), (), *around)
            yield Spoken(empty, unread.start(1), unread.end(1), "0", "", None, unread=True), True
        if not any(character.isdigit() for character in said):
            return
        metrics = (one for one in metric_names().find(said) if said[one.start : one.end] not in sources.words)
        sentence = Sentence(said, tuple(self._names.find(said)), tuple(metrics), *around)
        stated = {one.start: one for one in find_quantities(1, said)}
        behind = -1
        for token in wording.TOKEN.finditer(said):
            if token.start() < behind or wording.POWER.search(said[max(0, token.start() - 4) : token.start()]):
                continue
            if token["name"]:
                if self._is_no_name(token["name"], said[: token.start()], sentence, sources):
                    yield Spoken(sentence, token.start(), token.end(), "0", "", None, hidden=True), True
                elif self._hides(token["name"], said[token.end() :], sources):
                    digits = re.search(r"\d+", token["name"])
                    assert digits is not None
                    yield Spoken(sentence, token.start(), token.end(), digits[0], "", None), True
                continue
            if any(name.start <= token.start() and token.end() <= name.end for name in sentence.names):
                continue  # a digit of a name
            unit = stated.get(token.start())
            behind = unit.end if unit else token.end()
            spoken = Spoken(sentence, token.start(), behind, token["number"], token["suffix"] or "", unit)
            if not token["more"] and not spoken.is_name():
                inside = sources.in_equation(spoken.start, said)
                in_head = in_table and unit is None and spoken.value > 1
                yield spoken, in_head or self._is_hardware(spoken, inside, mode)

    def _hides(self, name: str, after: str, sources: Sources) -> bool:
        """Whether a name hides a number: `BW3900`, `hbm4 TB/s`."""
        digits = re.findall(r"\d+", name)
        if wording.HIDDEN.search(name):
            return True
        if not digits or any(True for _ in self._names.find(name)) or self._terms.resolve("product", name):
            return False
        unit = wording.UNIT_AFTER.match(after) or wording.PARTS_AFTER.match(after)
        if unit and re.fullmatch(r"[A-Za-z]+\d+", name) and not wording.NAMES.fullmatch(name):
            return name not in sources.words
        known = name in sources.words or bool(wording.NAMES.fullmatch(name))
        return max(map(len, digits)) > 2 and not known and not set(re.findall(r"[A-Za-z_]\w*", name)) & sources.words

    def _is_no_name(self, name: str, before: str, sentence: Sentence, sources: Sources) -> bool:
        """Whether a name is one of an architecture that none is, or, beside hardware, of a version or a size that the
        run does not have: `SM132`, `bus v384`."""
        if name in sources.words or self._terms.resolve("product", name):
            return False
        if built := wording.ARCHITECTURE.fullmatch(name):
            return f"cc-{built[1]}-{built[2]}" not in self._terms.products
        counted = wording.NUMBERED_NAME.fullmatch(name)
        hardware = bool(wording.THING.search(sentence.text)) or any(one.meaning for one in sentence.names)
        if counted is None or not hardware or wording.NUMBERED.search(before):
            return False
        value = int(counted[2])
        return value > wording.SMALL and (counted[1] in "vV" or (value & (value - 1)) != 0)

    def _is_hardware(self, spoken: Spoken, computed: bool, mode: Mode) -> bool:
        """Whether a number states something of hardware."""
        dimension, value, sentence = spoken.dimension, spoken.value, spoken.sentence
        after = spoken.after
        if spoken.counted_operations:
            return False
        if dimension in wording.HARDWARE or (dimension == "cycles" and sentence.thing):
            return value > 1
        if not dimension and spoken.counts_parts:
            return value > 1
        if not dimension and wording.UNIT_AFTER.match(after) and not spoken.is_count_of_times:
            return value > 1
        if wording.OF_THEM.match(after) and sentence.follows_thing:
            return value > 1
        if not dimension and wording.AMONG_PARTS.match(after) and wording.COUNTS_OUT.search(spoken.before):
            return value > 1
        if spoken.reaches_a_limit and (spoken.is_result or not computed):
            return value > 1
        if not dimension and wording.A_CLOCK.match(after):
            return value > 1
        if (dimension in wording.COUNTS or dimension == "bytes") and wording.KEPT_BY.search(spoken.before):
            return value > 1
        near = [name for name in sentence.names if self._fits(name, dimension)]
        chooses = dimension in wording.COUNTS or dimension == "bytes"
        free = computed or (chooses and sentence.uses and not sentence.names_product)
        for name in near if not free else ():
            if name.end <= spoken.start and wording.JOIN.match(spoken.text[name.end : spoken.start]):
                return value > 1
            if name.start >= spoken.end and wording.BEHIND.match(spoken.text[spoken.end : name.start]):
                return value > 1
        if not dimension and wording.PARTS_BEFORE.search(spoken.before):
            return value > 1
        if dimension in wording.COUNTS or dimension == "bytes" or not dimension:
            uses, has, thing = sentence.uses, sentence.has, sentence.thing
            if dimension and wording.PER_PART.match(after):
                return not uses or has
            if dimension in wording.COUNTS or dimension == "bytes":
                if mode == "predictions":
                    return (thing or bool(near)) and value > 1
                return (thing or bool(near)) and has and not uses and value > 1
            return thing and has and not uses and value > wording.SMALL
        return False

    def _fits(self, name: Name, dimension: str) -> bool:
        """Whether a metric of hardware may have a value of this dimension; one without a unit may be any."""
        own = {self._dimensions.get(id, "") for id in name.meaning}
        return bool(name.meaning) and ((not dimension and name.words > 1) or dimension in own)

    def _account(self, spoken: Spoken, hardware: bool, sources: Sources, chosen: Chosen) -> Unaccounted | None:
        shown = f"{spoken.text[spoken.start : spoken.end]}{'' if spoken.unit else spoken.after[:24].rstrip()}".strip()
        sentence = spoken.text.strip()[:200]
        if spoken.unread:
            return Unaccounted(1, f"the number before {shown}", sentence, True, "", "")
        if spoken.hidden:
            name = spoken.text[spoken.start : spoken.end]
            return Unaccounted(1, f"the figure in the name {name}", sentence, True, "", "")
        if self._is_of_another(spoken, sources, chosen):
            return Unaccounted(1, shown, sentence, hardware, "", "")
        if (version := spoken.version) is not None and version in sources.versions:
            sources = replace(sources, **sources.versions[version])
        metric = None if scope.of_other_program(spoken.before) else beside(spoken)
        if metric is not None and not sources.in_equation(spoken.start, spoken.text):
            values = [v for launch in sources.launches for v in values_of(launch, metric, bare=not spoken.dimension)]
            if any(says_the_same(value, reading) for value in values for reading in spoken.readings):
                return None
            if any(value.unit.dimension == spoken.dimension for value in values):
                there = any(given.figures.has(spoken.readings) for given in sources.cited)
                if not there and not sources.computed.has(spoken.readings):
                    return Unaccounted(1, shown, sentence, hardware, metric, shown_of(sources.launches, metric))
        if not hardware and not spoken.is_gain and self._chooses(spoken, chosen):
            return None
        if spoken.is_gain:
            shows = [
                sources.computed,
                sources.elsewhere,
                *([sources.logged] if wording.OF_LOG.search(spoken.text) else []),
            ]
            found = any(one.has(spoken.readings) for one in (*sources.gains, *shows))
            return None if found else Unaccounted(1, shown, sentence, hardware, "", "")
        wanted = self._wanted(spoken)
        if spoken.dimension in wording.MEASURED and scope.of_other_program(spoken.before):
            sources = replace(sources, measured=[sources.others], launches=())
        shown_here = sources.computed.has(spoken.readings) and not spoken.reaches_a_limit
        measured = any(one.has(spoken.readings) for one in sources.measured) or shown_here
        if measured and not (hardware and not spoken.dimension):
            return None
        if not hardware and sources.elsewhere.has(spoken.readings):
            return None
        if any(says(launch, spoken) or names(launch, spoken) for launch in sources.launches):
            return None
        if any(self._given(given, spoken, wanted, sources.product) for given in sources.cited):
            stated = hardware or (spoken.dimension in {*wording.HARDWARE, "bytes"} and spoken.sentence.thing)
            hedge = _hedge(spoken) if stated else ""
            return Unaccounted(1, shown, sentence, True, "", "", hedge) if hedge else None
        return Unaccounted(1, shown, sentence, hardware, metric or "", "")

    def _is_of_another(self, spoken: Spoken, sources: Sources, chosen: Chosen) -> bool:
        """Whether the text cites the number of another GPU than the run's, and the sentence tells it of none."""
        if spoken.plain.base in chosen.exactly or spoken.sentence.names_product:
            return False
        readings = (*spoken.readings, spoken.plain)
        found = [one for one in sources.cited if one.figures.has(readings)]
        others = any(one.claimed and one.product not in ("", sources.product) for one in found)
        ours = any(one.product in ("", sources.product) for one in found)
        return others and not ours and not any(one.has(readings) for one in sources.measured)

    def _given(self, given: Given, spoken: Spoken, wanted: Set[str], product: str) -> bool:
        """Whether a cited line has the number, of the GPU that the clause speaks of."""
        if not given.figures.has(spoken.readings, wanted):
            return False
        parts = [part for part in wording.CLAUSE.split(spoken.before) if part is not None]
        after = wording.CLAUSE.split(spoken.after)[0] or ""
        clause = f"{parts[-1] if parts else ''} {after}"
        if ":" in spoken.before[-3:] and len(parts) > 1:
            clause = f"{parts[-2]} {clause}"  # `H100 SXM HBM bandwidth: 3.35 TB/s`
        if not scope.same_conditions(given.said, clause, spoken.text, spoken.after):
            return False
        if not given.product or self.is_capability_of(given.product, product):
            return True
        named = [found.meaning for found in self._product_names.find(clause)]
        if scope.of_all(clause) and given.product not in named:
            return False
        if any(one == given.product or self._in_family(one, given.product) for one in named):
            return True
        return given.product == product and (not named or bool(scope.THIS_ONE.search(clause)))

    def other_product(self, text: str, product: str) -> str:
        """The GPU that a cited line is about, if it names one and not `product`; else empty."""
        named = [found.meaning for found in self._product_names.find(plain(text))]
        if not named or any(one == product or self._in_family(one, product) for one in named):
            return ""
        return named[0]

    def is_capability_of(self, capability: str, product: str) -> bool:
        """Whether one is the page of a compute capability that the other has."""
        one, other = self._terms.products.get(capability), self._terms.products.get(product)
        known = capability.startswith("cc-") and one is not None and other is not None
        return known and one is not None and other is not None and one.architecture == other.architecture

    def _in_family(self, named: str, product: str) -> bool:
        known = self._terms.products.get(product)
        return known is not None and named in known.families

    def _wanted(self, spoken: Spoken) -> frozenset[str]:
        """Metrics that the sentence gives the value to: those beside it, else all near."""
        near = [
            name
            for name in spoken.sentence.names
            if any(self._dimensions.get(id) == spoken.dimension for id in name.meaning)
        ]
        next_to = [
            name
            for name in near
            if (name.end <= spoken.start and wording.JOIN.match(spoken.text[name.end : spoken.start]))
            or (name.start >= spoken.end and wording.BEHIND.match(spoken.text[spoken.end : name.start]))
        ]
        if named := frozenset(id for name in next_to or near for id in name.meaning):
            return named
        levels = {match[0].lower() for match in wording.LEVEL.finditer(spoken.before)}
        if not levels or spoken.dimension != "bytes per second":
            return named
        return frozenset(f"{wording.LEVELS.get(level.split()[0], level.split()[0])}_bandwidth" for level in levels)

    def _chooses(self, spoken: Spoken, chosen: Chosen) -> bool:
        """Whether a number is no claim: a size, a constant, a small count."""
        value, dimension = spoken.value, spoken.dimension
        if spoken.is_share:
            return False
        if value in (0, 1) and dimension not in ("percent",):
            return True
        whole = value == value.to_integral()
        if dimension == "percent":
            return False
        if dimension in wording.COUNTS:
            return whole and value <= wording.CHOSEN
        if dimension in ("bytes", "floating-point operations") and spoken.unit is not None:
            return is_element(spoken.unit) or any(chosen.has(reading.base) for reading in spoken.readings)
        if dimension:
            return False
        scaled = [reading.base for reading in spoken.readings]
        power = whole and value > 0 and (int(value) & (int(value) - 1)) == 0
        return any(chosen.has(one) for one in scaled) or (whole and abs(value) <= wording.SMALL) or power


def _hedge(spoken: Spoken) -> str:
    found = wording.HEDGE_BEFORE.search(spoken.before[-80:]) or wording.HEDGE_AFTER.match(spoken.after[:60])
    found = found or wording.HEDGE_ANYWHERE.search(spoken.text)
    for near in (spoken.text, spoken.sentence.before, spoken.sentence.following):
        found = found or wording.DOUBT.search(near)
    found = found or wording.DOUBT_OF_IT.match(spoken.sentence.following)
    if not found:
        return ""
    return next((part for part in found.groups() if part), found[0]).strip()


def integers(text: str) -> Iterator[Decimal]:
    """Numbers in code or data, as they stand there."""
    for match in re.finditer(
        r"(?<![\w.])(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)", text
    ):
        spelled = match[0].replace("_", "").rstrip(".")
        if spelled[1:2].lower() in ("x", "b", "o"):
            yield Decimal(int(spelled, 0))
        elif (parsed := parse_number(spelled)) is not None:
            yield parsed.value
