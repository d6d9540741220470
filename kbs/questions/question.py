"""What a question asks about: products, operation, dtype, metric, symptom, sizes, and numbers it assumes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kbs.evidence.spec import canonical_qualifier
from kbs.evidence.units import NUMBER, Quantity, Unit, parse_number, parse_unit
from kbs.evidence.vocabulary import Mention, Vocabulary, words
from kbs.questions.mentions import meant, of_each, targets, variants

INTENTS = ("experience", "comparison", "calculation", "diagnosis", "technique", "spec", "definition")
_MEASURED = re.compile(
    r"\b(?:get|gets|getting|got|achiev\w*|reach\w*|measur\w*|hits?|runs? at|running at|see|seeing|only|sustain\w*)\b",
    re.IGNORECASE,
)
_THAN = re.compile(r"\b(?:\w+er|more|less|better|worse) (?:\w+ ){0,4}than\b", re.IGNORECASE)
"""Words of a comparison that are no phrase."""
_RIDGE = re.compile(r"\b(?:ridge|roofline|intensity|machine balance)\b", re.IGNORECASE)
"""What can be calculated of a product with no operation named."""
_TRIED = re.compile(
    r"\bdid\b.{1,80}?\b(?:help|work|pay off|hurt|fail|improve|gain|bring)\b"
    r"|\bwhat\b.{1,40}?\b(?:worked|failed|helped)\b"
    r"|\b(?:have|has|had) (?:we|i|anyone|anybody|somebody) (?:already |ever )?(?:tried|learned|learnt)\b",
    re.IGNORECASE,
)
"""A question about what came of a change; `[intents]` of the vocabulary has the phrases that stand whole."""


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


@dataclass(frozen=True)
class Told:
    """What the user's own profile, kernel and reference tell; it counts where the question leaves something open."""

    products: tuple[str, ...] = ()
    operation: str = ""
    dtype: str = ""
    symptoms: tuple[str, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    words: str = ""
    """Names of these, to be looked for beside the words of the question."""


@dataclass(frozen=True)
class Question:
    """A question, understood."""

    text: str
    products: tuple[str, ...] = ()
    """Product ids, families spelled out."""
    named: tuple[tuple[str, ...], ...] = ()
    """The products of each name in the question: two for "A100 80GB", which leaves SXM or PCIe open."""
    unknown_products: tuple[str, ...] = ()
    operation: str = ""
    dtype: str = ""
    metrics: tuple[str, ...] = ()
    qualifiers: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    intent: str = "definition"
    dims: Mapping[str, int] = field(default_factory=dict)
    premises: tuple[Premise, ...] = ()
    beside: str = ""
    """Words that the user's own files add to what is looked for."""

    @property
    def sought(self) -> str:
        """What is looked for."""
        return f"{self.text} {self.beside}".strip()

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Facet → ids, for the search to prefer pages about them."""
        return {
            "operation": (self.operation,) if self.operation else (),
            "product": self.products,
            "symptom": self.symptoms,
            "bottleneck": self.bottlenecks,
            "technique": self.techniques,
            "language": self.languages,
        }


def understand(
    text: str,
    vocabulary: Vocabulary,
    *,
    gpus: tuple[str, ...] = (),
    dtype: str = "",
    dims: Mapping[str, int] | None = None,
    told: Told | None = None,
) -> Question:
    """Read a question. `gpus`, `dtype` and `dims` are what the user said beside it, and count for more; `told` is what
    their files tell, and counts for less: only its products narrow those of an open name, such as a family's."""
    found = meant(vocabulary.find(text), text)
    found += vocabulary.find(of_each(text), "metric")

    def ids(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.id for m in found if m.kind == kind))

    named = gpus_named(found, vocabulary) + variants(found, text, vocabulary)
    named += targets(named, text, vocabulary)
    unknown = _unknown_products(text, vocabulary)
    for gpu in gpus:
        members = vocabulary.resolve("product", gpu)
        if members:
            named.append(tuple(members))
        else:
            unknown.append(gpu)
    told = told or Told()
    if told.products and not unknown:
        named = [tuple(told.products)]
    products = tuple(dict.fromkeys(p for group in named for p in group))
    operations = [m for m in found if m.kind == "operation"]
    # The longest name is the most specific one: "row softmax" beats "reduction".
    operation = max(operations, key=lambda m: m.end - m.start).id if operations else told.operation
    dtypes = ids("dtype")
    chosen_dtype = dtype or (dtypes[0] if dtypes else told.dtype)
    metrics = _metrics(found, dtypes, vocabulary)
    qualifiers = ids("qualifier")
    sizes = {**_dims(text, operation, vocabulary), **(dims or {})}
    question = Question(
        text=text,
        products=products,
        named=tuple(dict.fromkeys(named)),
        unknown_products=tuple(dict.fromkeys(unknown)),
        operation=operation,
        dtype=chosen_dtype,
        metrics=metrics,
        qualifiers=qualifiers,
        symptoms=tuple(dict.fromkeys((*ids("symptom"), *told.symptoms))),
        bottlenecks=tuple(dict.fromkeys((*ids("bottleneck"), *told.bottlenecks))),
        techniques=ids("technique"),
        languages=ids("language"),
        architectures=ids("architecture"),
        dims=sizes,
        beside=told.words,
    )
    premises = _premises(text, question, dtypes, vocabulary)
    return Question(**{**question.__dict__, "premises": premises, "intent": _intent(found, question)})


def gpus_named(found: list[Mention], vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """The products of each product or family name, in the order of the question."""
    groups: dict[tuple[int, int], list[str]] = {}
    for mention in found:
        if mention.kind == "product":
            groups.setdefault((mention.start, mention.end), []).append(mention.id)
        elif mention.kind == "family":
            groups.setdefault((mention.start, mention.end), []).extend(vocabulary.family_members(mention.id))
    return [tuple(dict.fromkeys(group)) for _, group in sorted(groups.items())]


def _unknown_products(text: str, vocabulary: Vocabulary) -> list[str]:
    return [
        name
        for name in vocabulary.product_like(text)
        if not vocabulary.find(name, "product") and not vocabulary.find(name, "dtype", "architecture", "metric")
    ]


def _metrics(found: list[Mention], dtypes: tuple[str, ...], vocabulary: Vocabulary) -> tuple[str, ...]:
    named = [m.id for m in found if m.kind == "metric"]
    groups = [m.id for m in found if m.kind == "metric group"]
    if dtypes and groups and not named:
        # "BF16 peak throughput": the rates of that element type, tensor cores first.
        return tuple(
            dict.fromkeys(
                metric
                for dtype in dtypes
                for metric in (vocabulary.dtypes[dtype].tensor, vocabulary.dtypes[dtype].vector)
                if metric and metric.startswith(dtype)
            )
        )
    for dtype in dtypes:
        # A vector rate that was not asked for by name is rarely what is meant by "BF16 throughput".
        if f"{dtype}_throughput" in named and vocabulary.dtypes[dtype].vector != f"{dtype}_throughput":
            named[named.index(f"{dtype}_throughput")] = vocabulary.dtypes[dtype].tensor
    if not named:
        named = [metric for group in groups for metric in vocabulary.metric_groups[group].metrics]
    return tuple(dict.fromkeys(named))


def _intent(found: list[Mention], question: Question) -> str:
    cues = Counter(m.id for m in found if m.kind == "intent")
    wants = {intent for intent, count in cues.items() if count}
    about_kernel = bool(question.operation or question.symptoms or question.bottlenecks)
    if "experience" in wants or _TRIED.search(question.text):
        return "experience"
    than = bool(_THAN.search(question.text))
    if len(question.named) > 1 and question.operation and question.dims:
        return "calculation"
    if len(question.named) > 1 and ("comparison" in wants or ((question.metrics or than) and not question.operation)):
        return "comparison"
    if question.operation and ("calculation" in wants or (than and len(question.named) > 1)):
        return "calculation"
    if "calculation" in wants and question.products and _RIDGE.search(question.text):
        return "calculation"
    if "diagnosis" in wants and about_kernel:
        return "diagnosis"
    if "technique" in wants and not (question.metrics and question.products and "spec" in wants):
        return "technique"
    if question.products and question.metrics and not (question.operation and question.bottlenecks):
        return "spec"
    if question.metrics and "spec" in wants and not about_kernel and not question.techniques:
        return "spec"
    if question.operation and (question.products or question.bottlenecks):
        return "diagnosis"
    if question.products and ("spec" in wants or not (about_kernel or question.techniques)):
        return "spec"
    return "definition"


_SIZES = re.compile(r"(?<![\w.])(\d{1,9}(?:\s?[x×*]\s?\d{1,9}){1,5})(?![\w.])")
_NAMED_SIZE = re.compile(r"\b([A-Za-z])\s?=\s?(\d{1,9})([kK])?\b")


def _dims(text: str, operation: str, vocabulary: Vocabulary) -> dict[str, int]:
    """Sizes given in the question: `M=4096`, or `4096x8192` in the order of the operation's dimensions."""
    if not operation:
        return {}
    names = list(vocabulary.operations[operation].dims)
    sizes: dict[str, int] = {}
    shape = _SIZES.search(text)
    if shape:
        numbers = [int(n) for n in re.split(r"\s?[x×*]\s?", shape[1])]
        if len(numbers) == len(names):
            sizes = dict(zip(names, numbers, strict=True))
    for name, size, kilo in _NAMED_SIZE.findall(text):
        if name.upper() in names:
            sizes[name.upper()] = int(size) * (1024 if kilo else 1)
    return {name: size for name, size in sizes.items() if size > 0}


_WITH_UNIT = re.compile(rf"(?<![\w.])(?P<number>{NUMBER})\s?(?P<unit>[A-Za-zµμ%]+(?:/[A-Za-z]+)?)(?![\w/])")
_WITH_QUALIFIER = re.compile(
    rf"(?<![\w.])(?P<number>{NUMBER})\s?(?P<unit>[A-Za-z]+(?:/s)?)?\s(?P<qualifier>dense|sparse)\b", re.IGNORECASE
)
_RATE = ("floating-point operations per second", "integer operations per second", "bytes per second")


def _premises(text: str, question: Question, dtypes: tuple[str, ...], vocabulary: Vocabulary) -> tuple[Premise, ...]:
    """Numbers that the question states about the hardware it names."""
    found: dict[int, Premise] = {}
    for match in _WITH_QUALIFIER.finditer(text):
        number = parse_number(match["number"])
        unit = parse_unit(match["unit"], lenient=True) if match["unit"] else None
        unit = unit or parse_unit("TFLOPS")
        if number is None or unit is None or unit.dimension not in _RATE:
            continue
        qualifier = canonical_qualifier(match["qualifier"], vocabulary) or ""
        metric = next((vocabulary.dtypes[d].tensor for d in dtypes if vocabulary.dtypes[d].tensor), "")
        found[match.start()] = Premise(match.group(0), Quantity(number, unit), metric, qualifier, False)
    for match in _WITH_UNIT.finditer(text):
        if match.start() in found:
            continue
        number, unit = parse_number(match["number"]), parse_unit(match["unit"], lenient=True)
        if number is None or unit is None:
            continue
        stated = _premise_metric(unit, question, dtypes, text, match, vocabulary)
        if stated is None:
            continue
        metric = stated
        if metric and vocabulary.metrics[metric].capacity:
            unit = parse_unit(match["unit"], capacity=True, lenient=True) or unit
        measured = bool(_MEASURED.search(text[max(0, match.start() - 60) : match.start()]))
        near = text[max(0, match.start() - 20) : match.end() + 25]
        qualifiers = [m.id for m in vocabulary.find(near, "qualifier") if m.id in ("dense", "sparse 2:4")]
        found[match.start()] = Premise(
            match.group(0).strip(), Quantity(number, unit), metric, qualifiers[0] if qualifiers else "", measured
        )
    return tuple(found[start] for start in sorted(found))


def _premise_metric(
    unit: Unit,
    question: Question,
    dtypes: tuple[str, ...],
    text: str,
    match: re.Match[str],
    vocabulary: Vocabulary,
) -> str | None:
    """The metric that a number with this unit states: named in the question, or the one that the unit suggests.

    None if the number is about something else, such as a shape, a time or a part of a product's name.
    """
    inside = vocabulary.find(text[max(0, match.start() - 16) : match.end()], "product")
    tail = words(text[max(0, match.start() - 16) : match.end()])
    if any(mention.end == len(tail) for mention in inside):
        return None  # "A100 80GB": the number belongs to the name
    fitting = [
        metric
        for metric in question.metrics
        if not vocabulary.metrics[metric].text
        and (usual := parse_unit(vocabulary.metrics[metric].unit)) is not None
        and usual.dimension == unit.dimension
    ]
    if fitting:
        return fitting[0]
    if unit.dimension == "bytes per second":
        return "hbm_bandwidth"
    if unit.dimension in _RATE:
        return next((vocabulary.dtypes[d].tensor for d in dtypes if vocabulary.dtypes[d].tensor), "")
    return None
