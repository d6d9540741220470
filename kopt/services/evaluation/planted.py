"""Wrong citations made of right ones, to see whether the check refuses them.

A right citation is one that the check accepts: a value of a page with its line, or a sentence of a page with its line.
Each wrong one differs from a right one in one thing, and in a way that cannot be right by chance: a value is off by
more than rounding, a unit has another size or measures something else, and another line states something else.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from kbs.common.json_model import JsonDataclass
from kbs.evidence.checking import CheckedCitation, Status, check_citation, check_text, plain_text, stands_in
from kbs.evidence.citation import Citation, lines_hash, parse_reference
from kbs.evidence.spec import Spec
from kbs.evidence.units import parse_quantity, parse_unit
from wiki.library import Wikis

SEED = 17
_UNITS = (
    "TB/s",
    "GB/s",
    "TFLOPS",
    "GFLOPS",
    "GB",
    "MB",
    "KB",
    "B",
    "GHz",
    "MHz",
    "W",
    "ns",
    "cycles",
    "threads",
    "bit",
)
_FACTORS = tuple(map(Decimal, ("0.1", "0.5", "0.8", "0.95", "1.05", "1.25", "2", "10")))
_SWAPS = {
    "more": "fewer", "fewer": "more", "less": "more", "higher": "lower", "lower": "higher", "faster": "slower",
    "slower": "faster", "largest": "smallest", "smallest": "largest", "always": "never", "never": "always",
    "not": "always", "each": "no", "all": "no", "one": "two", "two": "three", "is": "is not", "are": "are not",
    "needs": "forbids", "has": "lacks", "first": "last", "above": "below", "below": "above", "reads": "writes",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:\.\d+)?(?![\w.,]*\d)")
_MIN_WORDS = 6


@dataclass(frozen=True)
class Planted(JsonDataclass):
    """What became of the wrong citations of one kind."""

    kind: str
    planted: int
    accepted: int
    examples: tuple[str, ...]
    """Accepted ones, the first five."""


@dataclass(frozen=True)
class _Quote:
    """A sentence of a page, and its line."""

    text: str
    citation: Citation

    @property
    def line(self) -> str:
        return f'"{self.text}" <- {self.citation.reference}'


def plant(library: Wikis, specs: Sequence[Spec], count: int, seed: int = SEED) -> list[Planted]:
    """Plant so many wrong citations, as many of each kind, and check each. The same wiki gives the same ones."""
    chance = random.Random(seed)
    right = [spec for spec in specs if spec.quantity(library.vocabulary) and _accepted(library, _line(library, spec))]
    quotes = [quote for quote in _quotes(library) if _accepted(library, quote.line)]
    if not right or not quotes or count < 1:
        return []
    makers: dict[str, Callable[[], str | Citation | None]] = {
        "another line": lambda: _another_line(library, chance, right, quotes),
        "another value": lambda: _another_value(library, chance, chance.choice(right)),
        "another unit": lambda: _another_unit(library, chance, chance.choice(right)),
        "another product": lambda: _another_product(library, chance, chance.choice(right)),
        "another qualifier": lambda: _another_qualifier(library, chance, chance.choice(right)),
        "changed quote": lambda: _changed_quote(chance, chance.choice(quotes)),
        "another hash": lambda: _another_hash(library, chance, chance.choice(right), chance.choice(quotes)),
    }
    made: dict[str, list[str | Citation]] = {kind: [] for kind in makers}
    for number, (kind, make) in enumerate(makers.items()):
        wanted = count // len(makers) + (number < count % len(makers))
        for _ in range(40 * wanted):  # not every citation can be made wrong in every way
            if len(made[kind]) == wanted:
                break
            one = make()
            made[kind] += [one] if one is not None else []
    return [_checked(library, kind, wrong) for kind, wrong in made.items()]


def _checked(library: Wikis, kind: str, wrong: Sequence[str | Citation]) -> Planted:
    accepted = [one for one in wrong if _accepted(library, one)]
    shown = tuple(one if isinstance(one, str) else f'"{one.quote}" <- {one.reference}' for one in accepted[:5])
    return Planted(kind, len(wrong), len(accepted), shown)


def _accepted(library: Wikis, one: str | Citation) -> bool:
    """Whether the check accepts it: all that it finds in it."""
    checked: list[CheckedCitation]
    if isinstance(one, Citation):
        checked = [check_citation(one, library)]
    else:
        checked = check_text(one, library, library.vocabulary)
    return bool(checked) and all(found.status is Status.OK for found in checked)


def _line(library: Wikis, spec: Spec, **other: str) -> str:
    """The citation line of a value; `other` parts of it stand in their place."""
    terms = library.vocabulary
    product = other.get("product", terms.products[spec.product].name)
    qualifier = other.get("qualifier", spec.qualifier)
    value, unit = other.get("value", spec.value), other.get("unit", spec.unit)
    head = f"{product} {terms.metrics[spec.metric].name}{f' ({qualifier})' if qualifier else ''}"
    return f"{head}: {value} {unit}".rstrip() + f" <- {other.get('reference', spec.citation.reference)}"


def _quotes(library: Wikis) -> Iterator[_Quote]:
    """The sentences of all pages that are on one line by themselves."""
    for wiki in library.all.values():
        for file in wiki.files():
            inside = False
            lines = library.lines(wiki.name, file.path) or ()
            body = next((n for n, line in enumerate(lines[1:], start=1) if line == "---"), 0)
            for number, line in enumerate(lines, start=1):
                inside ^= line.startswith("```")
                text = plain_text(line)
                if number <= body + 1 or inside or not re.match(r"[A-Z]", line) or len(text.split()) < _MIN_WORDS:
                    continue
                if not set('"“”<|') & set(text):
                    where = (wiki.name, file.path, number, number, "")
                    yield _Quote(text, Citation(*where, lines_hash([line]), line))


def _another_line(library: Wikis, chance: random.Random, specs: Sequence[Spec], quotes: Sequence[_Quote]) -> str | None:
    spec, quote = chance.choice(specs), chance.choice(quotes)
    cited = spec.citation if chance.random() < 0.5 else quote.citation
    lines = library.lines(cited.wiki, cited.path) or ()
    number = chance.randint(1, len(lines))
    if number == cited.line_start:
        return None
    reference = f"{cited.wiki}/{cited.path}:L{number}"
    if cited is quote.citation:
        return None if stands_in(quote.text, lines[number - 1]) else f'"{quote.text}" <- {reference}'
    stated = [one for one in library.specs(cited.wiki, cited.path) if one.citation.line_start == number]
    # The rows of a product that state one metric twice, such as two measurements, may both be right.
    return None if any(one.metric == spec.metric for one in stated) else _line(library, spec, reference=reference)


def _another_value(library: Wikis, chance: random.Random, spec: Spec) -> str | None:
    """One more in the last place, which is beyond rounding; or another size."""
    try:
        now = Decimal(spec.value.replace(",", ""))
    except InvalidOperation:
        return None
    place = Decimal(1).scaleb(min(int(now.as_tuple().exponent), 0))
    then = (now * chance.choice(_FACTORS)).quantize(place) if chance.random() < 0.75 else now + place
    return _line(library, spec, value=str(then)) if abs(then - now) >= place else None


def _another_unit(library: Wikis, chance: random.Random, spec: Spec) -> str | None:
    metric, unit = library.vocabulary.metrics[spec.metric], chance.choice(_UNITS)
    now = parse_quantity(spec.value, spec.unit, capacity=metric.capacity)
    then = parse_quantity(spec.value, unit, capacity=metric.capacity)
    if now is None or (then is not None and now.unit.dimension == then.unit.dimension and now.base == then.base):
        return None
    return _line(library, spec, unit=unit) if parse_unit(unit, capacity=metric.capacity) else None


def _another_product(library: Wikis, chance: random.Random, spec: Spec) -> str | None:
    id = chance.choice(sorted(library.vocabulary.products))
    name = library.vocabulary.products[id].name
    return None if id == spec.product else _line(library, spec, product=name)


def _another_qualifier(library: Wikis, chance: random.Random, spec: Spec) -> str | None:
    qualifier = chance.choice(sorted(library.vocabulary.qualifiers))
    return None if qualifier == spec.qualifier else _line(library, spec, qualifier=qualifier)


def _changed_quote(chance: random.Random, quote: _Quote) -> str | None:
    words = quote.text.split()
    found = [n for n, word in enumerate(words) if word in _SWAPS or _NUMBER.fullmatch(word)]
    if not found:
        return None
    at = chance.choice(found)
    words[at] = _SWAPS.get(words[at]) or (
        str(int(words[at]) + 1) if words[at].isdigit() else f"{float(words[at]) * 1.1:.2f}"
    )
    changed = " ".join(words)
    return None if stands_in(changed, quote.citation.quote) else f'"{changed}" <- {quote.citation.reference}'


def _another_hash(library: Wikis, chance: random.Random, spec: Spec, quote: _Quote) -> str | Citation | None:
    """A citation whose hash is not that of its lines: in a line of text, or with its quote, as JSON has it."""
    of_text = f"{chance.getrandbits(64):016x}"
    whole = lines_hash([f"{quote.citation.quote} {of_text}"])
    made: Mapping[int, str | Citation] = {
        0: _line(library, spec, reference=f"{spec.citation.reference}@{of_text}"),
        1: f'"{quote.text}" <- {quote.citation.reference}@{of_text}',
        2: replace(quote.citation, hash=whole),
        3: replace(quote.citation, quote=f"{quote.citation.quote} {of_text}", hash=whole),
    }
    one = made[chance.randrange(len(made))]
    return one if isinstance(one, Citation) or parse_reference(one.rpartition("<- ")[2]) else None
