"""Accounts for every number in what a proposer wrote.

A number passes if it is measured, cited, computed before the reader's eyes, or no claim: a size of the run, what the
kernel chooses, part of a name, a small count of things that are no hardware. Whatever is none of these is refused, so
that a new way of writing a hardware spec needs no new pattern here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Literal

from evaluator.profiling.profile import Launch
from kbs.evidence.quantities import Stated, find_quantities, normal
from kbs.evidence.units import NUMBER, Quantity, parse_number, parse_unit, says_the_same
from kbs.evidence.vocabulary import Vocabulary
from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.figures import Figures, exact, pieces, plain_number
from loop.gate.names import FoundName, NameFinder, Words, name_words
from loop.gate.plain_text import plain
from loop.gate.sources import PROFILE_UNITS, is_element

RATES = frozenset(
    {"bytes per second", "floating-point operations per second", "integer operations per second", "watts"}
)
"""Dimensions of specs, measurements and claims: a kernel does not choose such a value."""
HARDWARE = RATES | {"hertz", "multiprocessors", "links", "floating-point operations per byte"}
COUNTS = frozenset({"threads", "warps", "blocks", "registers", "barriers", "banks", "sectors"})
"""Dimensions of what a kernel chooses or counts, unless the text speaks of what the hardware has."""
FEWEST_SMS = 8
"""No GPU on the market has fewer."""
SMALL = 16
"""The largest count of things that needs no source."""
CHOSEN = 1024
"""The largest count of threads, warps, registers or blocks that a kernel is taken to choose."""
_NEAR = 240
"""Characters before and after a number that are looked at."""
_FORETOLD = frozenset({"percent", "seconds", "ratio", "registers", "threads", "warps", "blocks", "bytes", "cycles"})

_PART = (
    r"(?:streaming\s+)?multi-?processors?|sms?|cus?|compute\s+units?|[gt]pcs?|(?:cuda|tensor|shader|matrix|[a-z]+\d+)\s+cores?"
    r"|cores?|(?:warp\s+)?schedulers?|sub-?(?:partitions?|cores?)|(?:memory\s+|hbm\d*e?\s+|dram\s+)?(?:channels?|stacks?|controllers?)"
    r"|l2\s+(?:slices?|partitions?)|slices|chiplets?|dies|xcds?|gpcs?|transistors|copy\s+engines?|load/store\s+units?"
    r"|(?:fp|int|alu|sfu|tensor)\d*\s+(?:units?|pipes?|lanes?)|sfus?|alus?|hbm\d*e?|gpus?"
)
_ADJECTIVES = r"(?:(?!(?:per|of|in|on|for|to|and|or|the|by|with|from|over|across|into|at|an?|each|every|is|are|than|as)\b)[A-Za-z][A-Za-z-]*\s+){0,2}"  # fmt: skip
_PARTS_AFTER = re.compile(rf"^[\s-]*{_ADJECTIVES}(?:{_PART})(?![\w-])", re.IGNORECASE)
_UNIT_AFTER = re.compile(
    r"^\s*[-/]?\s*" + _ADJECTIVES + r"(?:"
    r"[kKMGTPE]?i?(?:B|b|FLOPS?|Flops|flops|OPS|Hz|hz|W|J|V)(?:/\w+|ps)?(?![\w])|[kKMGTPE]i?b(?![\w])"
    r"|[KMGTPE]/s|/\s?s\b|[TGMKP](?![\w])"
    r"|(?i:(?:kilo|mega|giga|tera|peta|exa|kibi|mebi|gibi|tebi)\w+|octets?|bytes?|bits?|flops?|hertz|watts?|joules?|volts?"
    r"|hundreds?|thousands?|[mbt]r?illions?|clocks?|clk|cycles?|(?:milli|micro|nano)?seconds?|tokens?\s+per\s+second))",
)
_GAIN = re.compile(
    r"^\s*(?:-?fold|x|×|times)?\s*(?:\w+\s+){0,2}?(?:faster|slower|quicker|speed-?ups?|higher|lower|better|worse|more|less|fewer|gain"
    r"|improvement|ahead|what|that\s+of|those\s+of|as\s+(?:fast|quick|much|many|high|good)|the\s+(?:speed|rate|time|throughput|bandwidth|performance))\b",
    re.IGNORECASE,
)
_GAIN_BEFORE = re.compile(
    r"\b(?:speed-?ups?|faster|slower|gains?|ratio|factor|improvement)\b[^.;]{0,30}?\b(?:of|by|:|=|is|was|a)?\s*$", re.I
)
_OF_THEM = re.compile(r"^\s+of\s+(?:them|these|those|it)\b", re.IGNORECASE)
_SHARE = re.compile(r"^\s?/\s?\d+\s+(?:of|the)\b")
_TIMES = re.compile(r"^\s?(?:x|×|X)(?![\w]|\s?\d)|^\s?-?fold\b|^\s?times\b")
_SHAPE_AFTER = re.compile(r"^\s?[x×*]\s?(?:\d|[A-Z]\b)")
_HAS = re.compile(
    r"\b(?:limit(?:ed to|s)?|max(?:imum|imal)?|has|have|having|offers?|provides?|supports?|allows?|hosts?|hold(?:s|ing)?"
    r"|contains?|comes? with|ships? with|features?|room for|available|capacity|in total|hardware|resident|peak|theoretical"
    r"|delivers?|sustains?|serves?|gives?|fits?|built|equipped)\b",
    re.IGNORECASE,
)
_THING = re.compile(
    r"\b(?:an?\s+sm|sms?|(?:streaming\s+)?multi-?processors?|gpus?|device|card|chip|die|silicon|hopper|ampere|ada|blackwell"
    r"|hbm\d*e?|dram|l2|l1|nvlink|pcie|register\s+file|memory\s+(?:bus|controller|channel|system)|tensor\s+cores?|warp\s+schedulers?)\b",
    re.IGNORECASE,
)
_USES = re.compile(
    r"\b(?:us(?:es?|ed|ing)|tak(?:es?|ing|en)|need(?:s|ed|ing)?|require[sd]?|allocat\w+|keeps?|kept|reads?|writes?|written"
    r"|loads?|loaded|stores?|stored|mov(?:es?|ed|ing)|spill\w*|launch(?:es|ed)?|stag\w+|buffers?|tiles?|choos\w+|runs?"
    r"|blocks? of|fetch\w*|cop(?:y|ied|ies)|transfers?|each (?:thread|warp|block|program|row)|per (?:thread|block|program|row|warp))\b",
    re.IGNORECASE,
)
_JOIN = re.compile(
    r"^[\s:=~≈(\[,'\"|]*(?:(?:is|are|was|of|at|the|a|an|to|about|value|with|count|has|have|gives?|offers?|provides?|sustains?|reaches)\b[\s:=~≈('\"|]*){0,4}$",  # fmt: skip
    re.IGNORECASE,
)
_BEHIND = re.compile(r"^[\s(]*(?:of\b\s*)?(?:the\s+|its\s+)?$", re.IGNORECASE)
_COMPARED = re.compile(
    r"(?:\b(?:above|below|over|under|exceeds?|exceeding|within|than|at least|at most|least|most|up to|by|to|reach(?:es)?"
    r"|beyond|past|near|towards?|from|between|improves?|gains?)|[<>≤≥]=?)\s*~?$",
    re.IGNORECASE,
)
_MODAL = re.compile(r"\b(?:may|might|could|can|would|if|should|risk|unless|when)\b", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\b(?:version|v|line|lines|L|step|iteration|attempt|section|figure|fig\.|table|page|chapter|listing|equation|level|stage|phase"
    r"|pass|variant|option|case|part|item|rule|note|method|loop|dimension|axis|dim|argument|cuda|triton|torch|pytorch|python|ptx|nvcc"
    r"|gcc|driver|isa|capability|opset|issue|pr|priority|flashattention|attention|hopper|generation|gen|top|rev(?:ision)?|release"
    r"|algorithm|technique|approach|bits?|index|column|row|id|rank|number|no\.|seed|ncu|compute)"
    r"[\s-]*#?\s*(?:\d+(?:\.\d+)*\s*(?:,|-|to|and|or|\.\.+)\s*)*$",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?:sm|compute|gfx|ltx|cc|cu|rtx|gtx|cuda|nvcc|py|cp)_?\d+\w*|(?:[usbf]|bf|fp|tf|int|uint|float|bfloat|complex|half|char|short|"
    r"long|double)\d{1,3}(?:x\d{1,2})?\w*|m\d+n\d+k\d+\w*|[xvkB]\d{1,3}|e\dm\d\w*|[A-Z]{2,8}[A-Z0-9]*(?:\.[A-Z0-9]+)+|[a-z]{2,12}(?:\.[a-z0-9_]+)+|[ep]\d+",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    rf"(?P<name>[A-Za-zµ_§][\w§]*(?:[.:@][A-Za-z0-9_]+)*)|(?P<number>{NUMBER})(?P<more>(?:\.\d+)*)(?P<suffix>[kKMGT]i?(?![\w/]))?"
)
_REFERENCES = re.compile(
    r"\S{1,80}/\S{1,200}:L\d{1,9}\S{0,80}|(?:receipt|profile|log)/\S{1,300}|https?://\S{1,300}|\S{1,80}\.(?:py|cu|md|txt|json)(?::\d+)?"
    r"|\b(?=\d*[a-f])[0-9a-f]{12,64}\b|\b01[0-9A-HJKMNP-TV-Z]{24}\b"
)
_HEDGE_BEFORE = re.compile(
    r"(?:\b(?P<word>about|approximately|approx\.?|roughly|around|circa|ca\.|nearly|almost|some|typically|probably"
    r"|presumably|likely|perhaps|maybe|an? estimated|estimated|assum(?:ed|ing)"
    r"|similar (?:products?|gpus?|cards?|chips?))(?:\s+(?:a|the|to|at|of|have|has|is))*[\s:]*|(?P<mark>[~≈]\s?)"
    r"|\b(?P<should>(?:should|might|may|could|must) (?:be|have))"
    r"\s+(?:\w+\s+){0,3})$",
    re.IGNORECASE,
)
_HEDGE_AFTER = re.compile(
    r"^[\s,(]*(?P<word>or so|approximately|roughly|more or less|give or take"
    r"|(?:on|like|as (?:on|in)) (?:a )?similar (?:products?|gpus?|cards?|chips?)"
    r"|similar products?|i (?:think|believe)|presumably|probably)\b",
    re.IGNORECASE,
)
_RULED = re.compile(r"[\s|:-]*-[\s|:-]*")
_UNIT_IN_HEAD = re.compile(r"[(,\[]\s*[^()\s|]{1,12}\s*[)\]]?\s*\|")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s|\s*#")
_CLAUSE = re.compile(r"[,;:()]|\b(?:so|thus|hence|therefore|whereas|while|but|then|and here|ours?)\b|->|→|=>")
_GENERIC = frozenset(
    {"wait", "barrier", "drain", "selected", "sleeping", "miscellaneous", "duration", "registers", "waves", "issued"}
)
"""Names of metrics that are also ordinary words."""


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


@dataclass(frozen=True)
class Given:
    """Figures of one source."""

    figures: Figures
    product: str = ""
    """The GPU that they are of; empty for measurements, and for lines that name none."""


@dataclass(frozen=True)
class Sources:
    """What the numbers of a text may rest on."""

    launches: Sequence[Launch]
    """Profiles whose metrics may be quoted, the parent's first."""
    measured: Sequence[Figures]
    cited: Sequence[Given]
    gains: Sequence[Figures]
    """Where ratios may be from: receipts and the lines that this text cites."""
    computed: Figures
    equations: Sequence[str]
    """Arithmetic of the text that is right: a number in it needs its source, and is no value of the metric beside it."""
    product: str
    """The run's GPU."""
    words: Set[str]
    """Identifiers of kernel and reference: digits in them are names."""

    def in_equation(self, at: int, text: str) -> bool:
        """Whether a place of a sentence lies in arithmetic that is shown and right."""
        for equation in self.equations:
            start = text.find(equation)
            if 0 <= start <= at < start + len(equation):
                return True
        return False


@dataclass(frozen=True)
class Chosen:
    """Numbers that are no claims: sizes of the run and constants of its kernels."""

    exactly: frozenset[Decimal]
    combined: frozenset[Decimal] = field(default_factory=frozenset)
    """Products and quotients of two of them."""

    @staticmethod
    def of(sizes: Set[Decimal], constants: Set[Decimal]) -> Chosen:
        """Also what follows from them in one step."""
        base = sorted(one for one in (*sizes, *constants, Decimal(32)) if one == one.to_integral() and 1 < one < 10**12)
        few = base[:150]
        made = {a * b for a in few for b in few} | {a / b for a in few for b in few if a % b == 0}
        made |= {size * width for size in made | set(base) for width in map(Decimal, (2, 4, 8))}
        return Chosen(frozenset(sizes | constants), frozenset(made))

    def has(self, value: Decimal) -> bool:
        """Whether a value is one of them or follows from two."""
        return value in self.exactly or value in self.combined or -value in self.exactly


_Name = FoundName[frozenset[str]]
"""The ids of the metrics of hardware that a name may mean; none for the name of a product."""
Mode = Literal["claims", "limits", "predictions"]
"""How a text is read: `limits` for decision rules and risks, which speak of what is to come; `predictions` for what only
claims on hardware count in: predictions, questions and strings."""


def _paragraphs(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """(number of the first line, lines) of what reads on over ends of lines; rows of tables and items stand alone."""
    start, found = 1, list[str]()
    for number, line in enumerate(lines, start=1):
        alone = line.count("|") > 1 or not line.strip() or bool(_ITEM.match(line))
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
        return bool(_THING.search(text)) or any(True for _ in self._names.find(text))

    def unaccounted(self, text: str, sources: Sources, chosen: Chosen, mode: Mode = "claims") -> Iterator[Unaccounted]:
        """Numbers of a text that nothing accounts for, and hedged specs, each with its line."""
        lines = _REFERENCES.sub(lambda m: " " * len(m[0]), normal(plain(text))).split("\n")
        head = ""
        for number, line in enumerate(lines, start=1):
            row = line.count("|") > 1
            if row and number < len(lines) and _RULED.fullmatch(lines[number][:2000]):
                head = line
            head = head if row else ""
            if head and (self.names_hardware(head) or _UNIT_IN_HEAD.search(head)):
                yield from self._of(number, [line], sources, chosen, mode, in_table=True)
        for number, paragraph in _paragraphs(lines):
            yield from self._of(number, paragraph, sources, chosen, mode)

    def _of(
        self, number: int, lines: Sequence[str], sources: Sources, chosen: Chosen, mode: Mode, *, in_table: bool = False
    ) -> Iterator[Unaccounted]:
        starts, at = list[int](), 0
        lines = [" ".join(re.sub(r"[|\t]", " ", line).split()) for line in lines]
        for line in lines:
            starts.append(at)
            at += len(line) + 1
        whole = " ".join(lines)
        offset, before = 0, ""
        for said in pieces(whole):
            offset = whole.find(said, offset)
            for spoken, hardware in self._numbers(said, before, sources, mode, in_table):
                if (mode == "predictions" and not hardware) or (
                    mode == "limits" and not hardware and spoken.foretold()
                ):
                    continue
                found = self._account(spoken, hardware, sources, chosen)
                if found is not None:
                    place = bisect_right(starts, offset + spoken.start) - 1
                    yield replace(found, line=number + place)
            before = said

    def _numbers(
        self, said: str, before: str, sources: Sources, mode: Mode, in_table: bool
    ) -> Iterator[tuple[_Spoken, bool]]:
        """(number, whether it states something of hardware) of a sentence; parts of names are left out."""
        if not any(character.isdigit() for character in said):
            return
        metrics = (one for one in _metric_names().find(said) if said[one.start : one.end] not in sources.words)
        sentence = _Sentence(said, tuple(self._names.find(said)), tuple(metrics), before)
        stated = {one.start: one for one in find_quantities(1, said)}
        behind = -1
        for token in _TOKEN.finditer(said):
            if token.start() < behind:
                continue
            if token["name"]:
                if self._hides(token["name"], said[token.end() :], sources):
                    digits = re.search(r"\d+", token["name"])
                    assert digits is not None
                    yield _Spoken(sentence, token.start(), token.end(), digits[0], "", None), True
                continue
            if any(name.start <= token.start() and token.end() <= name.end for name in sentence.names):
                continue  # a digit of a name
            unit = stated.get(token.start())
            behind = unit.end if unit else token.end()
            spoken = _Spoken(sentence, token.start(), behind, token["number"], token["suffix"] or "", unit)
            if not token["more"] and not spoken.is_name():
                inside = sources.in_equation(spoken.start, said)
                in_head = in_table and unit is None and spoken.value > 1
                yield spoken, in_head or self._is_hardware(spoken, inside, mode)

    def _hides(self, name: str, after: str, sources: Sources) -> bool:
        """Whether a name hides a number: `BW3900`, `hbm4 TB/s`."""
        digits = re.findall(r"\d+", name)
        if not digits or any(True for _ in self._names.find(name)) or self._terms.resolve("product", name):
            return False
        if _UNIT_AFTER.match(after) and re.fullmatch(r"[A-Za-z]+\d+", name):
            return name not in sources.words
        known = name in sources.words or bool(_NAMES.fullmatch(name))
        return max(map(len, digits)) > 2 and not known and not set(re.findall(r"[A-Za-z_]\w*", name)) & sources.words

    def _is_hardware(self, spoken: _Spoken, computed: bool, mode: Mode) -> bool:
        """Whether a number states something of hardware."""
        dimension, value, sentence = spoken.dimension, spoken.value, spoken.sentence
        before, after = spoken.before, spoken.after
        if spoken.counted_operations:
            return False
        if dimension in HARDWARE or (dimension == "cycles" and sentence.thing):
            return value > 1
        if not dimension and spoken.counts_parts:
            return value > 1
        if not dimension and _UNIT_AFTER.match(after) and not spoken.is_count_of_times:
            return value > 1
        if _OF_THEM.match(after) and sentence.follows_thing:
            return value > 1
        near = [name for name in sentence.names if self._fits(name, dimension)]
        chooses = dimension in COUNTS or dimension == "bytes"
        free = computed or (chooses and sentence.uses and not sentence.names_product)
        for name in near if not free else ():
            if name.end <= spoken.start and _JOIN.match(spoken.text[name.end : spoken.start]):
                return value > 1
            if name.start >= spoken.end and _BEHIND.match(spoken.text[spoken.end : name.start]):
                return value > 1
        if not dimension and re.search(
            rf"(?<![\w-])(?:{_PART})\W{{0,4}}(?:count|number)?[\s:=|]*(?:is|are|was)?[\s:=~|]*$", before, re.I
        ):
            return value > 1
        if dimension in COUNTS or dimension == "bytes" or not dimension:
            uses, has, thing = sentence.uses, sentence.has, sentence.thing
            per_thing = re.match(r"^[\s\w-]{0,40}?\b(?:per|on\s+an?|on\s+each|an?|each|in\s+each|in\s+an?)\s+(?:sm|multi-?processor|gpu|die|chip|device|card|core|scheduler)s?\b", after, re.I)  # fmt: skip
            if dimension and per_thing:
                return not uses or has
            if dimension in COUNTS or dimension == "bytes":
                return (thing or bool(near)) and (has or mode == "predictions") and not uses and value > 1
            return thing and has and not uses and value > SMALL
        return False

    def _fits(self, name: _Name, dimension: str) -> bool:
        """Whether a metric of hardware may have a value of this dimension; one without a unit may be any."""
        own = {self._dimensions.get(id, "") for id in name.meaning}
        return bool(name.meaning) and ((not dimension and name.words > 1) or dimension in own)

    def _account(self, spoken: _Spoken, hardware: bool, sources: Sources, chosen: Chosen) -> Unaccounted | None:
        shown = f"{spoken.text[spoken.start : spoken.end]}{'' if spoken.unit else spoken.after[:24].rstrip()}".strip()
        sentence = spoken.text.strip()[:200]
        beside = _beside(spoken)
        if beside is not None and not sources.in_equation(spoken.start, spoken.text):
            values = [v for launch in sources.launches for v in _values(launch, beside, bare=not spoken.dimension)]
            if any(says_the_same(value, reading) for value in values for reading in spoken.readings):
                return None
            if any(value.unit.dimension == spoken.dimension for value in values):
                there = any(given.figures.has(spoken.readings) for given in sources.cited)
                if not there and not sources.computed.has(spoken.readings):
                    return Unaccounted(1, shown, sentence, hardware, beside, _shown(sources.launches, beside))
        if not hardware and not spoken.is_gain and self._chooses(spoken, chosen):
            return None
        if spoken.is_gain:
            found = any(one.has(spoken.readings) for one in sources.gains) or sources.computed.has(spoken.readings)
            return None if found else Unaccounted(1, shown, sentence, hardware, "", "")
        wanted = self._wanted(spoken)
        measured = any(one.has(spoken.readings) for one in sources.measured) or sources.computed.has(spoken.readings)
        if measured and not (hardware and not spoken.dimension):
            return None
        if any(f"{spoken.written} {unit}" == counter.shown for launch in sources.launches for counter in launch.counters.values() for unit in re.findall(r"^\s?([\w/%]+)", spoken.behind_number)):  # fmt: skip
            return None
        if any(self._given(given, spoken, wanted, sources.product) for given in sources.cited):
            hedge = _hedge(spoken) if hardware else ""
            return Unaccounted(1, shown, sentence, True, "", "", hedge) if hedge else None
        return Unaccounted(1, shown, sentence, hardware, beside or "", "")

    def _given(self, given: Given, spoken: _Spoken, wanted: Set[str], product: str) -> bool:
        """Whether a cited line has the number, of the GPU that the clause speaks of."""
        if not given.figures.has(spoken.readings, wanted):
            return False
        if not given.product or given.product == product or self.is_capability_of(given.product, product):
            return True
        parts = [part for part in _CLAUSE.split(spoken.before) if part is not None]
        after = _CLAUSE.split(spoken.after)[0] or ""
        clause = f"{parts[-1] if parts else ''} {after}"
        if ":" in spoken.before[-3:] and len(parts) > 1:
            clause = f"{parts[-2]} {clause}"  # `H100 SXM HBM bandwidth: 3.35 TB/s`
        return any(found.meaning == given.product or self._in_family(found.meaning, given.product) for found in self._product_names.find(clause))  # fmt: skip

    def is_capability_of(self, capability: str, product: str) -> bool:
        """Whether one is the page of a compute capability that the other has."""
        one, other = self._terms.products.get(capability), self._terms.products.get(product)
        return capability.startswith("cc-") and one is not None and other is not None and one.architecture == other.architecture  # fmt: skip

    def _in_family(self, named: str, product: str) -> bool:
        known = self._terms.products.get(product)
        return known is not None and named in known.families

    def _wanted(self, spoken: _Spoken) -> frozenset[str]:
        """Metrics that the sentence gives the value to: those beside it, else all near."""
        near = [
            name
            for name in spoken.sentence.names
            if any(self._dimensions.get(id) == spoken.dimension for id in name.meaning)
        ]
        beside = [
            name
            for name in near
            if (name.end <= spoken.start and _JOIN.match(spoken.text[name.end : spoken.start]))
            or (name.start >= spoken.end and _BEHIND.match(spoken.text[spoken.end : name.start]))
        ]
        return frozenset(id for name in beside or near for id in name.meaning)

    def _chooses(self, spoken: _Spoken, chosen: Chosen) -> bool:
        """Whether a number is no claim: a size, a constant, a small count."""
        value, dimension = spoken.value, spoken.dimension
        if _SHARE.match(spoken.after) and (spoken.sentence.thing or spoken.sentence.names):
            return False
        if value in (0, 1) and dimension not in ("percent",):
            return True
        whole = value == value.to_integral()
        if dimension == "percent":
            return False
        if dimension in COUNTS:
            return whole and value <= CHOSEN
        if dimension == "bytes" and spoken.unit is not None:
            return is_element(spoken.unit) or any(chosen.has(reading.base) for reading in spoken.readings)
        if dimension:
            return False
        scaled = [reading.base for reading in spoken.readings]
        power = whole and value > 0 and (int(value) & (int(value) - 1)) == 0
        return any(chosen.has(one) for one in scaled) or (whole and abs(value) <= SMALL) or power


@dataclass(frozen=True)
class _Sentence:
    """A sentence, and what its words say of all its numbers."""

    text: str
    names: tuple[_Name, ...]
    """Names of metrics of hardware and of products."""
    metrics: tuple[FoundName[str], ...]
    """Names of metrics of a profile."""
    before: str
    """The sentence before it."""

    @cached_property
    def uses(self) -> bool:
        return bool(_USES.search(self.text))

    @cached_property
    def has(self) -> bool:
        return bool(_HAS.search(self.text))

    @cached_property
    def thing(self) -> bool:
        return bool(_THING.search(self.text)) or self.names_product

    @cached_property
    def names_product(self) -> bool:
        return any(not name.meaning for name in self.names)

    @cached_property
    def follows_thing(self) -> bool:
        return self.thing or bool(_THING.search(self.before) or re.search(rf"\b(?:{_PART})\b", self.before, re.I))


@dataclass(frozen=True)
class _Spoken:
    """A number in its sentence."""

    sentence: _Sentence
    start: int
    end: int
    written: str
    suffix: str
    unit: Stated | None

    @property
    def text(self) -> str:
        return self.sentence.text

    @property
    def before(self) -> str:
        return self.text[max(0, self.start - _NEAR) : self.start]

    @property
    def after(self) -> str:
        return self.text[self.end : self.end + _NEAR]

    @property
    def behind_number(self) -> str:
        """What follows the digits, the unit with it."""
        place = self.start + len(self.written) + len(self.suffix)
        return self.text[place : place + _NEAR]

    @property
    def counted_operations(self) -> bool:
        """`2 ops an element`: a count, although `ops` is also a rate."""
        return self.unit is not None and self.unit.text.endswith(("ops", "flops")) and self.value <= CHOSEN

    @property
    def dimension(self) -> str:
        bare = self.unit is None or self.counted_operations or (self.unit.dimension in COUNTS and self.counts_parts)
        return "" if bare or self.unit is None else self.unit.dimension

    @property
    def counts_parts(self) -> bool:
        """`8 warp schedulers`: parts of a GPU, whatever unit the first word is."""
        return bool(_PARTS_AFTER.match(self.behind_number))

    @property
    def plain(self) -> Quantity:
        found = plain_number(self.written)
        assert found is not None
        return found

    @property
    def value(self) -> Decimal:
        return (
            self.unit.readings[0].base if self.unit and self.unit.dimension in HARDWARE | {"bytes"} else self.plain.base
        )

    @property
    def readings(self) -> tuple[Quantity, ...]:
        """What it may mean: 16K is 16,000 or 16,384."""
        if self.dimension and self.unit is not None:
            return self.unit.readings
        power = " kMGT".find(self.suffix[:1].replace("K", "k")) if self.suffix else 0
        if power <= 0:
            return (self.plain,)
        value = self.plain.number.value
        return tuple(exact(value * Decimal(base) ** power, "") for base in (1000, 1024))

    @property
    def is_count_of_times(self) -> bool:
        return bool(_TIMES.match(self.after))

    @property
    def is_gain(self) -> bool:
        """Whether it says how many times faster, or more, something is."""
        if self.dimension or _SHAPE_AFTER.match(self.after):
            return False
        times = bool(_TIMES.match(self.after))
        whole = self.value == self.value.to_integral()
        if times and (_GAIN.match(self.after) or _GAIN_BEFORE.search(self.before) or not whole or self.value > SMALL):
            return True
        if times and re.match(r"^\s?(?:x|×|X|-?fold)", self.after):
            return True
        return bool(_GAIN_BEFORE.search(self.before)) and not whole

    def is_name(self) -> bool:
        """Whether it belongs to a name or counts versions, lines and the like: `FlashAttention-2`, `line 40`, `1st`."""
        if re.match(r"^(?:st|nd|rd|th|D|-?D)\b", self.after) and self.value <= 100:
            return True
        if re.search(r"[A-Za-z]-$", self.before) and len(self.written) <= 2 and not self.unit:
            return not _UNIT_AFTER.match(self.after)
        if self.unit is not None and self.dimension not in ("", "bytes", "seconds"):
            return False
        numbered = bool(_NUMBERED.search(self.before)) and self.value < 10_000
        return (
            numbered and not _UNIT_AFTER.match(self.after) and not _PARTS_AFTER.match(self.after) and self.unit is None
        )

    def foretold(self) -> bool:
        """Whether it is the limit of a comparison, or what may come."""
        dimension = self.dimension or ("ratio" if self.is_gain or _TIMES.match(self.after) else "")
        if dimension not in _FORETOLD:
            return not dimension
        tail = self.before[-48:]
        behind = re.match(r"^\s*(?:or (?:more|less|better|faster|slower|fewer)|faster|slower|better|worse|less|more|lower|higher)\b", self.after)  # fmt: skip
        return bool(_COMPARED.search(tail) or behind or _MODAL.search(self.before))


@lru_cache(maxsize=1)
def _metric_names() -> NameFinder[str]:
    table: dict[Words, str] = {}
    for metric in profile_metrics().all.values():
        for name in (metric.id, metric.name, metric.label, *metric.ncu):
            key = name_words(name)
            if not (len(key) == 1 and key[0] in _GENERIC):
                table.setdefault(key, metric.id)
    return NameFinder(table)


_LINK = re.compile(
    r"^[\s:=(~≈]*(?:(?:is|are|was|were|of|at|the|a|an|to|about|only|just|already|value|has|=)\b[\s:=(]*){0,4}$",
    re.IGNORECASE,
)


def _beside(spoken: _Spoken) -> str | None:
    """The metric of the profile whose name is right before or right after a number."""
    names = spoken.sentence.metrics
    before = next((name for name in reversed(names) if name.end <= spoken.start), None)
    if before is not None and spoken.start - before.end < 40 and _LINK.match(spoken.text[before.end : spoken.start]):
        return before.meaning
    behind = next((name for name in names if name.start >= spoken.end), None)
    near = behind is not None and behind.start - spoken.end < 20
    if behind is not None and near and spoken.dimension and _BEHIND.match(spoken.text[spoken.end : behind.start]):
        return behind.meaning
    return None


def _values(launch: Launch, metric: str, *, bare: bool = False) -> list[Quantity]:
    counter = launch.metric(metric)
    if counter is None or counter.amount is None or counter.value is None:
        return []
    found = [exact(counter.amount, "")] if bare or not counter.unit else []
    if bare:
        found.append(exact(counter.value, ""))
    known = PROFILE_UNITS.get(counter.unit)
    if known is not None:
        scale = counter.value / counter.amount * known[1] if counter.amount else known[1]
        found.append(exact(counter.amount, known[0], scale))
    elif not counter.unit:
        # A count may be stated with the name of what it counts, and a share of 1 as a percentage.
        found += [exact(counter.amount, dimension) for dimension in (*COUNTS, "multiprocessors", "cycles", "per cycle")]
        found.append(exact(counter.amount, "percent", Decimal(1)))
    return found


def _shown(launches: Sequence[Launch], metric: str) -> str:
    """The value of a metric in the first profile that has it; empty for none."""
    counters = (launch.metric(metric) for launch in launches)
    return next((counter.shown for counter in counters if counter), "")


def _hedge(spoken: _Spoken) -> str:
    found = _HEDGE_BEFORE.search(spoken.before[-80:]) or _HEDGE_AFTER.match(spoken.after[:60])
    found = found or re.search(r"\bsimilar (?:products?|gpus?|cards?|chips?)\b", spoken.text, re.IGNORECASE)
    if not found:
        return ""
    return next((part for part in found.groups() if part), found[0]).strip()


def integers(text: str) -> Iterator[Decimal]:
    """Numbers in code or data, as they stand there."""
    for match in re.finditer(r"(?<![\w.])(?:0x[0-9a-fA-F]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d{1,3})?)", text):
        spelled = match[0].replace("_", "").rstrip(".")
        number = Decimal(int(spelled, 16)) if spelled.startswith("0x") else None
        parsed = parse_number(spelled) if number is None else None
        if number is not None or parsed is not None:
            yield number if number is not None else parsed.value  # type: ignore[union-attr]  # one of the two is there
