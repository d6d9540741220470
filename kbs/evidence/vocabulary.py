"""The controlled vocabulary, read from `kbs/data/vocabulary.toml` here only.

Names of vendors, architectures, products and their families, dtypes, units, metrics, qualifiers, bottleneck classes,
symptoms, techniques, operations, languages, hardware features, and the words that a question is asked with.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, TypeVar


@dataclass(frozen=True)
class Term:
    """A name of the vocabulary: `id` in files and commands, `name` in sentences."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()


T = TypeVar("T", bound=Term)


@dataclass(frozen=True)
class Vendor(Term):
    """A maker of GPUs."""

    words: str = ""
    """A regular expression of words that speak of its tools, languages and units alone."""


@dataclass(frozen=True)
class Product(Term):
    """A GPU that can be bought, or a compute capability whose limits its products share."""

    vendor: str = ""
    architecture: str = ""
    families: tuple[str, ...] = ()


@dataclass(frozen=True)
class Metric(Term):
    """Something a product has a value of."""

    unit: str = ""
    """The unit that its values are usually given in; empty for text."""
    text: bool = False
    """The value is a word, compared as text."""
    capacity: bool = False
    """K, M and G are binary."""
    sparsity: bool = False
    """Dense or sparse must be said."""
    support: tuple[str, ...] = ()
    """Techniques of which it says whether a GPU supports them."""
    range: tuple[float, float] | None = None
    """What is physically plausible, in `unit`."""
    each: str = ""
    """The metric of one SM of which it is the sum over all SMs."""
    called: Mapping[str, str] = field(default_factory=dict)
    """What each vendor calls the units that it counts."""
    counted: tuple[str, ...] = ()
    """Names of these units, in the singular; they ask for it only where a question counts them."""


@dataclass(frozen=True)
class MetricGroup(Term):
    """Several metrics that one word asks for; for a bottleneck, those of the hardware that decide it."""

    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnitName(Term):
    """A unit without its prefix."""

    dimension: str = ""
    scale: Decimal = Decimal(1)
    prefixed: bool = False


@dataclass(frozen=True)
class Dtype(Term):
    """An element type: its bytes, and the metrics that state its peak rate on the vector and tensor pipes."""

    bytes: int = 0
    vector: str = ""
    tensor: str = ""


@dataclass(frozen=True)
class Operation(Term):
    """An operation whose cost is on the wiki page `page`."""

    page: str = ""
    dtype: str = "fp32"
    dims: Mapping[str, int] = field(default_factory=dict)
    """The sizes that its cost is written in, each with an example value."""
    operators: tuple[str, ...] = ()
    """Operators of PyTorch that compute it, as step 0 of a run counts them; `a+b` where several stand together."""


@dataclass(frozen=True)
class Symptom(Term):
    """What a profile shows, the bottleneck that it speaks for, and the Nsight Compute metrics that it is read from."""

    bottleneck: str = ""
    ncu: tuple[str, ...] = ()
    defect: bool = False
    """Something that the kernel does wrong, whatever bounds it: it is named before states such as stalls."""
    general: bool = False
    """It says which bottleneck there is and not why: it is named last."""
    every: bool = False
    """All metrics of its threshold rows must show it; otherwise one is enough."""
    comparison: bool = False
    """It serves to judge others or to choose the class, and is nothing to name beside it."""
    also: tuple[str, ...] = ()
    """Further bottlenecks that it speaks for: an access pattern costs bandwidth, and where that is left, latency."""


@dataclass(frozen=True)
class Mention:
    """A name of the vocabulary found in a text: tokens [start, end) of `words(text)`."""

    kind: str
    id: str
    start: int
    end: int


SPEC_SHEET = "spec-sheet"
"""The metric group that a question about a product, with no metric named, asks for."""
PER_SM_LIMITS = "per-sm-limits"
"""The metric group of what a kernel may use of an SM."""
PEAK_RATES = "peak-rates"
"""The metric group that a bare "TFLOPS" may be about."""

_CAPABILITY = "cc-"
_TARGET = re.compile(r"(?<![\w.-])sm_?(\d{1,2})(\d)[af]?(?![\w-])", re.IGNORECASE)
_NUMBERED = re.compile(r"(?<![\w.-])sm ?\d(?!\w)", re.IGNORECASE)
"""The SMs of one GPU, numbered from 0: no target has one digit."""
_JOINED = re.compile(r"(?<!\d)([1-9]\d{3})(super)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z0-9@+#][a-z0-9@+#.:]*", re.IGNORECASE)


def words(text: str) -> list[str]:
    """The words of `text` for matching names: lower case, `-` and `_` are blanks, "80 GB" is one word."""
    lowered = text.lower().replace("’", "'").replace("'s", " ").replace("-", " ").replace("_", " ")
    joined = re.sub(r"\b(\d+) *gb?\b", r"\1gb", lowered)
    return [word.rstrip(".:") for word in _WORD.findall(joined)]


class Vocabulary:
    """All names, and how to find them in a text."""

    def __init__(self, data: Mapping[str, Any], products: Iterable[Product] = ()) -> None:
        self._data = data
        self._with: dict[tuple[Product, ...], Vocabulary] = {}
        self.vendors: dict[str, Vendor] = _terms(data["vendors"], Vendor)
        self._words_of = {
            id: re.compile(rf"(?<!\w)(?:{vendor.words})(?!\w)", re.I) for id, vendor in self.vendors.items()
        }
        self.architectures = _terms(data["architectures"], Term)
        self.products: dict[str, Product] = _terms(data["products"], Product)
        self.families = _terms(data["families"], Term)
        known = frozenset(self.products), frozenset(self.families)
        self.products |= {product.id: product for product in products if product.id not in self.products}
        self.families |= {
            family: Term(family, family.upper())
            for product in self.products.values()
            for family in product.families
            if family not in self.families
        }
        self.dtypes: dict[str, Dtype] = _terms(data["dtypes"], Dtype)
        self.units: dict[str, UnitName] = {
            id: UnitName(id, id, tuple(u["spellings"]), u["dimension"], Decimal(u["scale"]), u["prefixed"])
            for id, u in data["units"].items()
        }
        self.unit_spellings = {spelling: unit for unit in self.units.values() for spelling in unit.aliases}
        self.metrics: dict[str, Metric] = _terms(data["metrics"], Metric)
        self.metric_groups: dict[str, MetricGroup] = _terms(data["metric_groups"], MetricGroup)
        self.qualifiers = {id: Term(id, id, tuple(aliases)) for id, aliases in data["qualifiers"].items()}
        self.bottlenecks: dict[str, MetricGroup] = _terms(data["bottlenecks"], MetricGroup)
        self.symptoms: dict[str, Symptom] = _terms(data["symptoms"], Symptom)
        self.techniques = _terms(data["techniques"], Term)
        self.operations: dict[str, Operation] = _terms(data["operations"], Operation)
        self.languages = _terms(data["languages"], Term)
        self.features = _terms(data["features"], Term)
        self.tags = frozenset(data["tags"]["names"])
        self.intents: dict[str, tuple[str, ...]] = {id: tuple(cues) for id, cues in data["intents"].items()}
        self.question_words = frozenset(data["question_words"]["words"])
        self.manner_words = frozenset(data["question_words"]["manner"])
        self.past_words = frozenset(data["question_words"]["past"])
        forms = "|".join(f"(?:{form})" for form in data["product_patterns"]["forms"])
        self._product_form = re.compile(rf"(?<![\w.-])(?:{forms})(?!\w|\.\d|-\d)", re.IGNORECASE)
        self._bare_form = re.compile(data["product_patterns"]["bare"], re.IGNORECASE)
        self._workstation = [
            (re.compile(rf"(?<![\w.-])(?:{one['form']})(?![\w-])", re.IGNORECASE), one["name"])
            for one in data["product_patterns"]["workstation"]
        ]
        after = data["product_patterns"]["cased_not_before"]
        self._cased = {
            name.lower(): re.compile(rf"(?<![\w.]){name}(?!\w|{after})") for name in data["product_patterns"]["cased"]
        }
        self._brands = frozenset(data["product_patterns"]["brands"])
        self._aliases: dict[str, dict[tuple[str, ...], list[tuple[str, str]]]] = {}
        self._longest: dict[str, dict[str, int]] = {}
        """Namespace → first word of a name → words of the longest name that begins with it."""
        self._index_aliases(*known)

    def with_products(self, products: Iterable[Product]) -> Vocabulary:
        """This vocabulary and further products, as a team's own hardware pages declare them. A name that the vocabulary
        gives to a product or family stays with that one alone."""
        fresh = tuple(product for product in products if product.id not in self.products)
        if fresh and fresh not in self._with:
            self._with = {fresh: Vocabulary(self._data, fresh)}  # the last one: a server asks for it with each question
        return self._with[fresh] if fresh else self

    def _index_aliases(self, own_products: Collection[str], own_families: Collection[str]) -> None:
        # Names of one namespace compete (the longest wins); names of different namespaces may share words.
        spaces: dict[str, list[tuple[str, Mapping[str, Term]]]] = {
            "product": [("product", self.products), ("family", self.families)],
            **{
                kind: [(kind, terms)]
                for kind, terms in (
                    ("vendor", self.vendors),
                    ("architecture", self.architectures),
                    ("dtype", self.dtypes),
                    ("metric", self.metrics),
                    ("metric group", self.metric_groups),
                    ("qualifier", self.qualifiers),
                    ("bottleneck", self.bottlenecks),
                    ("symptom", self.symptoms),
                    ("technique", self.techniques),
                    ("operation", self.operations),
                    ("language", self.languages),
                )
            },
            "intent": [("intent", {id: Term(id, id, cues) for id, cues in self.intents.items()})],
        }
        own = {"product": own_products, "family": own_families}
        known = [*(self.products[id] for id in own_products), *(self.families[id] for id in own_families)]
        taken = {tuple(words(alias)) for term in known for alias in (term.id, term.name, *term.aliases)}
        for space, groups in spaces.items():
            table: dict[tuple[str, ...], list[tuple[str, str]]] = {}
            for kind, terms in groups:
                for term in terms.values():
                    # The id of what a question wants is a name for us: "experience" is an ordinary word.
                    named = term.aliases if kind == "intent" else (term.id, term.name, *term.aliases)
                    for alias in dict.fromkeys(named):
                        key = tuple(words(alias))
                        if term.id not in own.get(kind, (term.id,)) and key in taken:
                            continue
                        if key and (kind, term.id) not in table.setdefault(key, []):
                            table[key].append((kind, term.id))
            self._aliases[space] = table
            reach = self._longest.setdefault(space, {})
            for first, *rest in table:
                reach[first] = max(reach.get(first, 0), 1 + len(rest))

    def find(self, text: str, *spaces: str) -> list[Mention]:
        """Names in `text`, longest first within a namespace, never overlapping there. No `spaces` means all of them."""
        tokens = words(text)
        mentions: list[Mention] = []
        for space in spaces or tuple(self._aliases):
            table, reach = self._aliases[space], self._longest[space]
            position = 0
            while position < len(tokens):
                for length in range(min(reach.get(tokens[position], 0), len(tokens) - position), 0, -1):
                    found = table.get(tuple(tokens[position : position + length]))
                    if found and not (length == 1 and self._is_other(tokens[position], text)):
                        mentions += [Mention(kind, id, position, position + length) for kind, id in found]
                        position += length
                        break
                else:
                    position += 1
        return mentions

    def _is_other(self, word: str, text: str) -> bool:
        """Whether `word` of `text` is a variable or a cloud's machine that has the short name of a product."""
        form = self._cased.get(word)
        return form is not None and not form.search(text)

    def names(self) -> list[str]:
        """Every name of every namespace, in words that `words` gives."""
        return [" ".join(key) for table in self._aliases.values() for key in table]

    def resolve(self, space: str, name: str) -> list[str]:
        """Ids of `space` that `name`, taken whole, is a name of; a family gives the ids of its products, and a
        compiler's target (`sm_90`) its compute capability."""
        found = self._aliases[space].get(tuple(words(name)), [])
        if space == "product" and not found:
            found = self._aliases[space].get(tuple(words(self.spelled_out(name))), [])
        if space == "product" and not found and _TARGET.fullmatch(name.strip()):
            return self.capabilities(name)
        ids: list[str] = []
        for kind, id in found:
            ids += self.family_members(id) if kind == "family" else [id]
        return list(dict.fromkeys(ids))

    def capabilities(self, text: str) -> list[str]:
        """The compute capabilities that `text` names as compilers do: `sm_89` is CC 8.9."""
        ids = [f"{_CAPABILITY}{match[1]}-{match[2]}" for match in _targets_in(text)]
        return [id for id in dict.fromkeys(ids) if id in self.products]

    def unknown_targets(self, text: str) -> list[str]:
        """Targets of NVIDIA's compilers in `text` that are no compute capability that is known, nor of an architecture
        that is."""
        return [
            match.group(0)
            for match in _targets_in(text)
            if f"{_CAPABILITY}{match[1]}-{match[2]}" not in self.products
            and not self.find(match.group(0), "architecture")
        ]

    def vendors_in(self, text: str) -> set[str]:
        """The vendors whose own tools, languages or units a text names."""
        return {id for id, form in self._words_of.items() if form.search(text)}

    def family_members(self, family: str) -> list[str]:
        """The products of a family, in the order of the vocabulary."""
        return [product.id for product in self.products.values() if family in product.families]

    def product_like(self, text: str) -> list[str]:
        """Words of `text` that have the form of a GPU's name, as they are written there."""
        return [match.group(0) for match in self._product_form.finditer(text)]

    def spelled_out(self, text: str) -> str:
        """`text` with a GeForce that is named by its number alone ("my 4090") and a card for workstations that is named
        as people do ("A6000 Ada") called by their whole names, and "Super" as a word of its own."""

        def whole(match: re.Match[str]) -> str:
            number = match.group(0)
            before = text[max(0, match.start() - 5) : match.start()].rstrip(" -").upper()
            known = before.endswith(("RTX", "GTX", "RX", "GT"))
            return number if known else f"{'RTX' if int(number[:2]) >= 20 else 'GTX'} {number}"

        for form, name in self._workstation:
            text = form.sub(name, text)
        return self._bare_form.sub(whole, _JOINED.sub(r"\1 \2", text))

    def is_named(self, name: str) -> bool:
        """Whether a word that looks like a GPU's name is, taken whole but for its maker, the name of a known one, or
        of something else that is known."""
        tokens = words(name)
        while len(tokens) > 1 and tokens[0] in self._brands and tuple(tokens) not in self._aliases["product"]:
            tokens = tokens[1:]
        whole = " ".join(tokens)
        return bool(
            self._aliases["product"].get(tuple(tokens))
            or any(m.end - m.start == len(tokens) for m in self.find(whole, "dtype", "architecture", "metric"))
        )

    def nearest_products(self, name: str, preferred: Iterable[str], count: int = 3) -> list[str]:
        """Ids of the products whose names are nearest to `name`: the preferred ones if any is near, else any. The name
        of an architecture is near to its products."""
        preferred = list(preferred)
        whole = self.resolve("architecture", name)
        if of_it := [id for id in preferred if self.products[id].architecture in whole and not is_capability(id)]:
            return of_it[:count]
        for chosen in ([self.products[id] for id in preferred], list(self.products.values())):
            spelled: dict[str, str] = {}
            for product in chosen:
                for alias in (product.id, product.name, *product.aliases, *product.families):
                    said = " ".join(word for word in words(alias) if word != "gpu")  # which makes nothing alike
                    spelled.setdefault(said, product.id)
            close = difflib.get_close_matches(" ".join(words(name)), spelled, n=count * 3, cutoff=0.5)
            if close:
                return list(dict.fromkeys(spelled[alias] for alias in close))[:count]
        return []

    def nearest_metrics(self, name: str, count: int = 3) -> list[str]:
        """Ids of the metrics whose names are nearest to `name`."""
        spelled = {
            " ".join(words(alias)): metric.id
            for metric in self.metrics.values()
            for alias in (metric.id, metric.name, *metric.aliases)
        }
        close = difflib.get_close_matches(" ".join(words(name)), spelled, n=count * 3, cutoff=0.5)
        return list(dict.fromkeys(spelled[alias] for alias in close))[:count]


def _targets_in(text: str) -> Iterable[re.Match[str]]:
    """The targets of compilers that a text names: none where it numbers the SMs of a GPU."""
    return () if _NUMBERED.search(text) else _TARGET.finditer(text)


def is_capability(product: str) -> bool:
    """Whether a product id names a compute capability, whose limits its boards share, and no board."""
    return product.startswith(_CAPABILITY)


def is_target(product: str) -> bool:
    """Whether a product id names a target of AMD's compilers, and no board."""
    return product.startswith("gfx")


def _terms(table: Mapping[str, Mapping[str, Any]], kind: type[T]) -> dict[str, T]:
    terms: dict[str, T] = {}
    for id, fields in table.items():
        values: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
        if kind is Term:
            values = {key: values[key] for key in ("name", "aliases") if key in values}
        terms[id] = kind(id=id, **values)
    return terms


@cache
def vocabulary() -> Vocabulary:
    """The bundled vocabulary, read once."""
    text = (resources.files("kbs") / "data" / "vocabulary.toml").read_text("utf-8")
    return Vocabulary(tomllib.loads(text))
