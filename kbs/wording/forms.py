"""The ways in which a claim may be said: its own words in their order, with few liberties that cannot change what it
says. Each is a regular expression made from the claim, so that what is allowed can be read off.

Docs: docs/decisions/0034-model-words-claims.md says why nothing freer is allowed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from kbs.answers.model import ClaimKind
from kbs.evidence.units import NUMBER
from kbs.evidence.vocabulary import Vocabulary
from kbs.wording.pack import Numbered

OPENERS = ("Also, ", "In addition, ", "Furthermore, ", "Moreover, ")
"""What a sentence may begin with: words that say no more than that it follows."""
JOINT = "; "
"""What stands between two claims: after a comma or an `and`, the second could be read as part of the first."""
_QUANTITY = re.compile(rf" \((?:{NUMBER}) ?(?:[A-Za-zµ%][A-Za-zµ%/]*)?\)")
"""A number with its unit in parentheses: beside what it measures, it can be left out."""
_CONSEQUENCE = re.compile(r"(?P<main>[^,;:]+), (?:so|because) (?P<rest>[^,;:]+)")
"""A clause that is said for itself, and what follows from it or why it is so."""
_NARROWS = frozenset({
    "but", "only", "unless", "except", "if", "however", "although", "though", "otherwise", "else", "yet", "still",
    "long", "far", "that", "provided", "providing", "assuming", "given", "while", "until", "when", "whenever", "where",
    "wherever", "without", "as", "than", "not", "no", "never", "nor", "cannot", "none",
})  # fmt: skip
"""Words that may narrow or turn what stands before them: a clause that has one is not left out."""
_POINTERS = frozenset({
    "it", "its", "they", "them", "their", "this", "these", "those", "such", "same", "latter", "former",
})  # fmt: skip
"""Words among the first of a sentence that point at the one before it."""
_POINTING = 3
"""So many words are the first."""
_LINKS = frozenset({
    "and", "or", "nor", "but", "so", "yet", "however", "also", "otherwise", "instead", "thus", "hence", "therefore",
    "then", "here", "both", "other", "others", "another", "still", "again", "else", "only", "except", "not", "never",
    "always", "does", "do", "is", "are", "was", "has", "have", "can", "may", "must", "should", "will", "check", "that",
    "which", "each", "either", "neither", "none", "most", "some", "many", "few", "all", "nothing", "everything",
})  # fmt: skip
"""First words of a sentence that belongs to the one before it, or whose subject stands there."""
_VERB = re.compile(r"[a-z]+s (?:an?|the|when|where|if|only|no|not|more|less|up|fewer|nothing)\b")
"""A beginning such as `Pays where`, without a subject."""
_TURNS = re.compile(
    r"(?:for (?:example|instance)|(?:in|by) (?:contrast|comparison)|in turn|on the other|as a (?:result|rule))\b"
)
"""A beginning that points back with several words."""
_QUALIFIERS = ("dense", "sparse 2:4", "rounded", "preliminary")
"""Those that may stand before a metric's name in place of parentheses behind it."""


_THE = "(?:[Tt]he )?"
_HAS = "(?:has|offers|provides)"
_AND = re.compile(r",? and |,? while |, |; ")
"""Between the products of one metric."""


@dataclass(frozen=True)
class Way:
    """One way to say a claim."""

    pattern: str
    """Of the text without the full stop at its end."""
    whole: bool
    """Nothing of weight is left out."""
    verbatim: bool
    """In the claim's own order, as it must be beside another claim."""


def plain(text: str) -> str:
    """A text with blanks of every kind as single spaces, and one micro sign."""
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text.replace("μ", "µ"))
    return re.sub(r" +", " ", spaced).strip()


def leans(text: str) -> bool:
    """Whether a sentence can be understood only after the one before it."""
    lower = text.lower()
    first = re.findall(r"[a-z]+", lower)[:_POINTING]
    points = not _POINTERS.isdisjoint(first) or (bool(first) and first[0] in _LINKS)
    return points or bool(_VERB.match(lower) or _TURNS.match(lower))


def ways(one: Numbered, terms: Vocabulary) -> Iterator[Way]:
    """All ways in which a claim may be said."""
    text, kind = plain(one.said).removesuffix("."), one.claim.kind
    gpus = _names(tuple(product.name for product in terms.products.values()))
    yield Way(_as_it_stands(text, gpus), whole=True, verbatim=True)
    if kind is ClaimKind.DERIVED and _QUANTITY.search(text):
        yield Way(_as_it_stands(_QUANTITY.sub("", text), gpus), whole=True, verbatim=True)
    if kind is ClaimKind.STATEMENT and (main := _main_clause(text)):
        yield Way(_as_it_stands(main, gpus), whole=False, verbatim=True)
    if kind is ClaimKind.SPEC and (value := SpecValue.of(one, terms)):
        for pattern in value.patterns():
            yield Way(pattern, whole=True, verbatim=False)


@lru_cache
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    """Where the name of a GPU stands without an article."""
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?<!the )(?:{either})(?![\w-])")


def _main_clause(text: str) -> str:
    """What stands before `, so` or `, because`; empty where that is no clause of its own, or may be narrowed behind."""
    found = _CONSEQUENCE.fullmatch(text)
    if found is None or not _NARROWS.isdisjoint(re.findall(r"[a-z]+", found["rest"].lower())):
        return ""
    return found["main"]


def _as_it_stands(text: str, gpus: re.Pattern[str] | None = None) -> str:
    """A text in its own words; the names of GPUs may have an article."""
    parts, at = [], 0
    for found in gpus.finditer(text) if gpus else ():
        parts += [text[at : found.start()], found[0]]
        at = found.end()
    parts.append(text[at:])
    first, *rest = (f"{_THE}{re.escape(part)}" if n % 2 else _beginning(part, n) for n, part in enumerate(parts))
    return "".join([first, *rest])


def _beginning(part: str, place: int) -> str:
    return re.escape(part) if place else _either_case(part[:1], part[1:2]) + re.escape(part[1:])


def _either_case(first: str, second: str) -> str:
    """The first letter of a word that is no name: upper case at the beginning of a sentence, else lower."""
    if first.isascii() and first.isalpha() and (second == " " or (second.isalpha() and second.islower())):
        return f"[{first.upper()}{first.lower()}]"
    return re.escape(first)


@dataclass(frozen=True)
class SpecValue:
    """The parts of a hardware value: `H100 SXM` · `BF16 tensor throughput (dense)` · `989.4 TFLOPS`."""

    product: str
    metric: str
    """A pattern."""
    value: str

    @classmethod
    def of(cls, one: Numbered, terms: Vocabulary) -> SpecValue | None:
        """The parts of a claim; None where it has another form."""
        known = terms.products.get(one.claim.subject)
        head, colon, value = plain(one.said).partition(": ")
        if known is None or not colon or not value or not head.startswith(f"{known.name} "):
            return None
        metric = head.removeprefix(f"{known.name} ")
        pattern = _as_it_stands(metric)
        bare, opening, qualifier = metric.partition(" (")
        if opening and qualifier.removesuffix(")") in _QUALIFIERS:
            named = _as_it_stands(bare)
            pattern = f"(?:{pattern}|{re.escape(qualifier.removesuffix(')'))} {named})"
        return cls(re.escape(known.name), pattern, re.escape(value))

    def patterns(self) -> Iterator[str]:
        """The value as a sentence."""
        product, metric, value = f"{_THE}{self.product}", f"{_THE}{self.metric}", self.value
        yield f"{product} {self.metric}(?:: | is ){value}"
        yield f"{product}'s {self.metric} is {value}"
        yield f"{metric} (?:of|on) {product} is {value}"
        yield f"{value} is {metric} of {product}"
        yield f"[Oo]n {product}, {metric} is {value}"
        yield from self.had()

    def had(self) -> Iterator[str]:
        """What the product has, as a sentence."""
        yield f"{_THE}{self.product} {_HAS} (?:an? )?{self.metric} of {self.value}"
        yield f"{_THE}{self.product} {_HAS} {self.value} of {self.metric}"


def same_metric(text: str, values: list[SpecValue]) -> bool:
    """Whether a text says the values of one metric of several products, each once: `The HBM bandwidth is 3.35 TB/s on
    the H100 SXM and 2000 GB/s on the H100 PCIe`, `The H100 SXM has an HBM bandwidth of 3.35 TB/s and the H100 PCIe of
    2000 GB/s`, or with one value that all have."""
    if len({value.metric for value in values}) != 1:
        return False
    metric, products = f"{_THE}{values[0].metric}", [f"{_THE}{value.product}" for value in values]
    if len({value.value for value in values}) == 1:
        shared = re.fullmatch(f"{metric} (?:of|on) (.+) is {values[0].value}", text)
        if _each_once(_AND.split(shared[1]) if shared else [], products):
            return True
    listed = re.fullmatch(f"{metric} is (.+)", text)
    pairs = zip(products, values, strict=True)
    if _each_once(_AND.split(listed[1]) if listed else [], [f"{one.value} (?:on|for|of) {gpu}" for gpu, one in pairs]):
        return True
    first, *more = _AND.split(text)
    for leader in values:
        others = [f"{_THE}{one.product}(?: {_HAS})?(?: of)? {one.value}" for one in values if one is not leader]
        if any(re.fullmatch(pattern, first) for pattern in leader.had()) and _each_once(more, others):
            return True
    return False


def _each_once(items: list[str], patterns: list[str]) -> bool:
    left = list(patterns)
    for item in items:
        fitting = [pattern for pattern in left if re.fullmatch(pattern, item)]
        if not fitting:
            return False
        left.remove(fitting[0])
    return not left
