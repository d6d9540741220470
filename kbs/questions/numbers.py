"""Numbers that a question gives: what it takes for granted about the hardware, and what its kernel uses or reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from kbs.evidence.spec import canonical_qualifier
from kbs.evidence.units import NUMBER, Quantity, Unit, parse_number, parse_unit
from kbs.evidence.vocabulary import Vocabulary, words
from kbs.questions.counted import counted_units
from kbs.questions.mentions import OF_MEMORY, of_a_link

_MEASURED = re.compile(
    r"\b(?:get|gets|getting|got|achiev\w*|reach\w*|measur\w*|hits?|hitting|runs? at|running at|see|seeing|only"
    r"|sustain\w*|comput(?:e|ed|es)|calculat\w+|benchmark\w*|shows?|showed|reports?|reported"
    r"|stuck at|caps? (?:out )?at|top(?:s|ping)? out at|tops? at)\b",
    re.IGNORECASE,
)
_LATENCY = re.compile(rf"(?<![\w.])(?P<n>{NUMBER})\s?(?P<unit>ns|nanoseconds?|cycles|clocks|clks?)\b", re.IGNORECASE)
_SIZES = re.compile(r"(?<![\w.])(\d{1,9}[kK]?(?:\s?[x×*]\s?\d{1,9}[kK]?){1,5})(?![\w.])")
_NAMED_SIZE = re.compile(r"\b([A-Za-z])\s?=\s?(\d{1,9})([kK])?\b")


@dataclass(frozen=True)
class Premise:
    """A number that the question states about hardware."""

    text: str
    quantity: Quantity
    metric: str
    """Metric id; empty if only the dimension narrows it."""
    qualifier: str
    measured: bool
    """The question tells what was measured, not what the hardware has."""


_WHOLE = r"(?<![\w.])(?<!\d,)"
"""Before a number: it is not the end of a longer one (the 024 of 1,024)."""
_OF_AN_SM = r"\s*(?:per|an?|each|/|of (?:an?|each|one))\s*(?:sm|multiprocessor)\b"
"""Behind what a whole SM has, and not a kernel."""
_SHARED = rf"\b(?>shared(?: mem(?:ory)?)?|smem)\b(?!{_OF_AN_SM})"
_KB = r"(?P<n>\d{1,3}(?:,\d{3})*(?:\.\d+)?)\s?Ki?B"
_THREADS = r"(?P<n>\d{2,4}|\d,\d{3})"
_PER_BLOCK = r"(?:\s*(?:per|a|/|in (?:a|each)|each)\s*(?:thread )?(?:block|cta))?"
_GIVEN: tuple[tuple[str, re.Pattern[str], int], ...] = tuple(
    (role, re.compile(pattern, re.IGNORECASE), scale)
    for role, pattern, scale in (
        ("registers", rf"{_WHOLE}(?P<n>\d{{1,3}})[ -]?(?:registers?|regs?)\b"
                      rf"(?!{_OF_AN_SM}|\s*(?:per|a|/)\s*(?:block|cta))", 1),
        ("registers", r"\b(?:registers?|regs?)(?: used)?(?:\s*/\s*thread| per thread)?\s*(?:is|are|=|:"
                      r"|of)\s*(?P<n>\d{1,3})\b(?!,\d)", 1),
        ("threads", rf"{_WHOLE}{_THREADS}[ -]?threads?\b{_PER_BLOCK}"
                    rf"(?!{_OF_AN_SM}|\s*on (?:an?|each|one) (?:sm|multiprocessor)\b)", 1),
        ("threads", r"\b(?:block ?size|threads? (?:per|a) block|blockdim(?:\.x)?|thread ?blocks?)\s*(?:of|is|="
                    rf"|:|with)?\s*{_THREADS}\b", 1),
        ("threads", r"\bnum_warps\s*=?\s*(?P<n>\d{1,2})\b", 32),
        ("threads", rf"{_WHOLE}(?P<n>\d{{1,2}})[ -]?warps?\s*(?:per|a|/|in (?:a|each))\s*(?:block|cta)\b", 32),
        ("threads", r"\b(?:block|cta|tile|kernel)\b[^.?!]{0,60}?\b(?:with|of|has|uses?|using) (?P<n>\d{1,2}) warps?\b"
                    rf"(?!{_OF_AN_SM})", 32),
        ("shared", rf"{_WHOLE}{_KB}\s*(?:of )?(?:dynamic |static )?{_SHARED}", 1024),
        ("shared", rf"{_SHARED}[^.?\d]{{0,20}}{_KB}\b(?!{_OF_AN_SM})", 1024),
    )
)  # fmt: skip


def given(text: str) -> dict[str, int]:
    """What a kernel uses: `registers` a thread, `threads` a block, bytes of `shared` memory a block; the first of
    each."""
    found: dict[str, int] = {}
    for role, pattern, scale in _GIVEN:
        if role not in found and (match := pattern.search(text)):
            found[role] = int(Decimal(match["n"].replace(",", "")) * scale)
    return found


def latency_given(text: str) -> tuple[str, Quantity] | None:
    """A latency that the question gives, in seconds or cycles: as a text, and as a quantity."""
    match = _LATENCY.search(text)
    if match is None or (number := parse_number(match["n"])) is None:
        return None
    name = "ns" if match["unit"].lower().startswith("n") else "cycles"
    unit = parse_unit(name)
    return (f"{match['n']} {name}", Quantity(number, unit)) if unit is not None else None


def sizes(text: str, operation: str, vocabulary: Vocabulary) -> dict[str, int]:
    """Sizes given in the question: `M=4096`, or `4096x8192` in the order of the operation's dimensions."""
    if not operation:
        return {}
    names = list(vocabulary.operations[operation].dims)
    found: dict[str, int] = {}
    if shape := _SIZES.search(text):
        numbers = [_size(n) for n in re.split(r"\s?[x×*]\s?", shape[1])]
        if len(numbers) == len(names):
            found = dict(zip(names, numbers, strict=True))
    for name, size, kilo in _NAMED_SIZE.findall(text):
        if name.upper() in names:
            found[name.upper()] = _size(size + kilo)
    if not found and len(set(names)) > 1 and (square := re.search(r"(?<![\w.x×])(\d{3,6})\s?(?:\^2|² )", text)):
        found = dict.fromkeys(names, int(square[1]))
    return {name: size for name, size in found.items() if size > 0}


def _size(text: str) -> int:
    return int(text[:-1]) * 1024 if text[-1:] in "kK" else int(text)


_WITH_UNIT = re.compile(rf"(?<![\w.])(?P<number>{NUMBER})\s?(?P<unit>[A-Za-zµμ%]+(?:/[A-Za-z]+)?)(?![\w/])")
_WITH_QUALIFIER = re.compile(
    rf"(?<![\w.])(?P<number>{NUMBER})\s?(?P<unit>[A-Za-z]+(?:/s)?)?\s(?P<qualifier>dense|sparse)\b", re.IGNORECASE
)
_UNIT_FIRST = re.compile(
    r"\b(?P<unit>[A-Za-z]+(?:/s)?)\s*(?:\b(?:is|are|was|of|as|at|about|around|only|to be)\b\s*|[=:]\s*)+"
    rf"(?P<number>{NUMBER})"
    r"(?![\w.]|\s?[A-Za-z]+/s\b|\s?[TGP]?FLOP)",
    re.IGNORECASE,
)
"""A rate whose unit stands before it: "the dense BF16 TFLOPS is 1513, right?"."""
_BARE = re.compile(
    rf"\b(?:is|are|has|have|=|of)\s+(?P<number>{NUMBER})"
    r"(?=\s*(?:[,?]|$|(?:right|correct|true|threads?|blocks?|warps?|sms?)\b))",
    re.IGNORECASE,
)
"""A count that is said of what the question names, without its unit: "the maximum is 1536, right?"."""
_COUNTED = ("threads", "blocks", "warps", "registers", "SM", "CU")
_FAR = 4
"""How far beyond what is plausible for a metric a number may be that is still meant to be one of it."""
_NEAR = (25, 50)
"""Letters around a number in which the name of its metric is looked for, first the nearest."""
_RATE = ("floating-point operations per second", "integer operations per second", "bytes per second")


def plain_rate(dtype: str, vocabulary: Vocabulary) -> str:
    """The metric of an element type's rate without tensor cores; "" where none is told apart."""
    metric = f"{dtype}_throughput"
    return metric if metric in vocabulary.metrics else ""


def premises(
    text: str, metrics: tuple[str, ...], dtypes: tuple[str, ...], vocabulary: Vocabulary, plain: bool = False
) -> tuple[Premise, ...]:
    """Numbers that the question states about the hardware it names, of the metrics that it names. What a kernel uses
    of threads and registers is none. `plain`: rates are those without tensor cores."""
    found: dict[int, Premise] = {}
    units = parse_unit("units")
    for one in counted_units(text, vocabulary):
        if (stated_number := parse_number(one.number)) is not None and units is not None:
            whole = text[one.number_start : one.end]
            found[one.number_start] = Premise(whole, Quantity(stated_number, units), one.metric, "", False)
    without = {vocabulary.dtypes[d].tensor: rate for d in dtypes if plain and (rate := plain_rate(d, vocabulary))}
    of_kernel = [match.span() for role, form, _ in _GIVEN if role != "shared" for match in form.finditer(text)]
    for match in _WITH_QUALIFIER.finditer(text):
        number = parse_number(match["number"])
        unit = parse_unit(match["unit"], lenient=True) if match["unit"] else None
        unit = unit or parse_unit("TFLOPS")
        if number is None or unit is None or unit.dimension not in _RATE:
            continue
        qualifier = canonical_qualifier(match["qualifier"], vocabulary) or ""
        metric = next((vocabulary.dtypes[d].tensor for d in dtypes if vocabulary.dtypes[d].tensor), "")
        metric = without.get(metric, metric)
        found[match.start()] = Premise(match.group(0), Quantity(number, unit), metric, qualifier, _reached(text, match))
    unit_first = (match for match in _UNIT_FIRST.finditer(text) if (u := _unit(match["unit"])) and u.dimension in _RATE)
    for match in (*_WITH_UNIT.finditer(text), *unit_first):
        inside = any(start <= match.start() < end for start, end in of_kernel)
        number, unit = parse_number(match["number"]), _unit(match["unit"])
        if match.start() in found or inside or number is None or unit is None:
            continue
        stated = _metric_of(unit, metrics, dtypes, text, match, vocabulary)
        if stated is None:
            continue
        stated = without.get(stated, stated)
        if stated and vocabulary.metrics[stated].capacity:
            unit = parse_unit(match["unit"].replace("b", "B"), capacity=True, lenient=True) or unit
        near = text[max(0, match.start() - 20) : match.end() + 25]
        qualifiers = [m.id for m in vocabulary.find(near, "qualifier") if m.id in ("dense", "sparse 2:4")]
        found[match.start()] = Premise(
            match.group(0).strip() if match.start() == match.start("number") else match["number"],
            Quantity(number, unit),
            stated,
            qualifiers[0] if qualifiers else "",
            _reached(text, match),
        )
    for match in _BARE.finditer(text):
        counted = [id for id in metrics if vocabulary.metrics[id].unit in _COUNTED]
        unit = parse_unit(vocabulary.metrics[counted[0]].unit) if len(counted) == len(metrics) == 1 else None
        number = parse_number(match["number"])
        if match.start("number") not in found and unit is not None and number is not None:
            found[match.start("number")] = Premise(match["number"], Quantity(number, unit), counted[0], "", False)
    return tuple(found[start] for start in sorted(found))


def _reached(text: str, match: re.Match[str]) -> bool:
    """Whether a number is told as reached, not as what the hardware has: by a word before it, or as a part ("749 GB/s
    out of 900")."""
    before = bool(_MEASURED.search(text[max(0, match.start() - 60) : match.start()]))
    return before or bool(re.match(r"\s*(?:out )?of (?:the )?(?:\w+ )?\d", text[match.end() :]))


def _unit(text: str) -> Unit | None:
    """A unit as people write it: of what ends in a small b, "256kb" and "80gb", bytes are meant, and "TFLOPs" and
    "teraFLOPS" are rates."""
    text = re.sub(r"^(t|p)(?:era|eta)?flops?$", lambda match: f"{match[1].upper()}FLOPS", text, flags=re.IGNORECASE)
    return parse_unit(re.sub(r"(?<=[kKmMgGtT])b(?=$|/)", "B", text), lenient=True)


def _metric_of(
    unit: Unit,
    metrics: tuple[str, ...],
    dtypes: tuple[str, ...],
    text: str,
    match: re.Match[str],
    vocabulary: Vocabulary,
) -> str | None:
    """The metric that a number with this unit states: the one that is named nearest to it, of those that have such a
    unit; else the one that the unit suggests.

    None if the number is about something else, such as a shape, a time or a part of a product's name.
    """
    inside = vocabulary.find(text[max(0, match.start() - 16) : match.end()], "product")
    tail = words(text[max(0, match.start() - 16) : match.end()])
    if any(mention.end == len(tail) for mention in inside):
        return None  # "A100 80GB": the number belongs to the name

    number = parse_number(match["number"])

    def fits(metric: str) -> bool:
        known = vocabulary.metrics[metric]
        usual = parse_unit(known.unit) if not known.text else None
        if usual is None or usual.dimension != unit.dimension or number is None:
            return False
        low, high = known.range or (0, float("inf"))
        return low / _FAR <= float(number.value * unit.scale / usual.scale) <= high * _FAR

    link = of_a_link(text, vocabulary.find(text, "product"))
    for reach in _NEAR:
        near = text[max(0, match.start() - reach) : match.end() + reach]
        fitting = [m.id for m in vocabulary.find(near, "metric") if fits(m.id) and not (link and m.id == OF_MEMORY)]
        if len(set(fitting)) == 1:
            return fitting[0]
    fitting = [metric for metric in metrics if fits(metric)]
    if unit.dimension == "bytes per second":
        return fitting[0] if len(fitting) == 1 else None if link else OF_MEMORY
    if len(fitting) == 1:
        return fitting[0]
    if unit.dimension in _RATE:
        # A rate, and of which element type the question may not say.
        return next((vocabulary.dtypes[d].tensor for d in dtypes if vocabulary.dtypes[d].tensor), "")
    return fitting[0] if fitting else None


def used(given_: Mapping[str, int]) -> str:
    """What `given` found, in words."""
    names = {"registers": "registers a thread", "threads": "threads a block", "shared": "B of shared memory a block"}
    return ", ".join(f"{value:,} {names[role]}" for role, value in given_.items())
