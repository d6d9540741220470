"""A question as slots: what it is about, what it asks for, and in which form; each filled by a reader of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kbs.evidence.vocabulary import Mention, Vocabulary, words
from kbs.questions.counted import unit_mentions
from kbs.questions.forms import BOTH, MEASURED, PLAIN, Form, asking, asking_clause, cues, form_of, refers_back
from kbs.questions.mentions import meant, of_each
from kbs.questions.numbers import Premise, given, plain_rate, premises, sizes
from kbs.questions.products import NAMES, NOBODY, named, without_unknown
from kbs.questions.spelling import corrected, in_english

_IDENTIFIER = re.compile(
    r"(?<![\w.])[A-Za-z_][A-Za-z0-9]*(?:(?:__|[._]|::)+[A-Za-z0-9]+|:[A-Za-z][A-Za-z0-9]*)+(?![\w])|(?<!\w)__\w+"
)
_ADDRESS = re.compile(r"\bhttps?://\S+")
"""What says where something stands, and not what is asked."""
_SHORT = 4
"""Letters of what is an abbreviation ("e.g") and no name of a tool."""
_LEVELS = (
    ("shared", re.compile(r"\b(?:shared(?: mem(?:ory)?)?|smem|lds)\b", re.IGNORECASE)),
    ("L1", re.compile(r"\bL1\b", re.IGNORECASE)),
    ("L2", re.compile(r"\bL2\b", re.IGNORECASE)),
    ("DRAM", re.compile(r"\b(?:hbm\w*|dram|global(?: mem(?:ory)?)?|vram|gddr\w*|device memory"
                        r"|main memory)\b", re.IGNORECASE)),
    ("registers", re.compile(r"\bregisters?\b", re.IGNORECASE)),
)  # fmt: skip
"""Levels of the memory, and how a question names them."""


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


_SEVERAL = 2


@dataclass(frozen=True)
class Question:
    """A question, understood."""

    text: str
    """As it was asked."""
    read: str = ""
    """As it was read: in English, typing errors mended, GPUs by their whole names, unknown ones taken out."""
    corrections: tuple[tuple[str, str], ...] = ()
    """(as typed, as read)"""
    form: Form = Form.TOPIC
    measured: bool = False
    """It asks for what was measured, not for a peak."""
    products: tuple[str, ...] = ()
    """Product ids, families spelled out."""
    named: tuple[tuple[str, ...], ...] = ()
    """The products of each name in the question: two for "A100 80GB", which leaves SXM or PCIe open."""
    unknown_products: tuple[str, ...] = ()
    """Words that look like the name of a GPU and are none that is known."""
    operation: str = ""
    dtype: str = ""
    metrics: tuple[str, ...] = ()
    qualifiers: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    bottlenecks: tuple[str, ...] = ()
    techniques: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    plain: bool = False
    """It asks for rates without tensor cores."""
    levels: tuple[str, ...] = ()
    """Levels of the memory, in the order of the question."""
    identifiers: tuple[str, ...] = ()
    """Names of metrics, functions and instructions, as tools write them."""
    dims: Mapping[str, int] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    """What a kernel uses: `registers` a thread, `threads` a block, bytes of `shared` memory a block."""
    premises: tuple[Premise, ...] = ()
    beside: str = ""
    """Words that the user's own files add to what is looked for."""
    spans: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """Kind of slot → the words (places in `words(read)`) that fill it."""

    @property
    def sought(self) -> str:
        """What is looked for."""
        return f"{(self.read or self.text).replace(NOBODY, '')} {self.beside}".strip()

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

    def left(self, *kinds: str, everywhere: bool = False) -> tuple[str, ...]:
        """The words of the sentence that asks which none of these kinds of slots explain, and neither its form nor a
        particle does. What other sentences say are circumstances; `everywhere`: they count too."""
        explained = frozenset[int]().union(*(self.spans.get(kind, frozenset()) for kind in (*kinds, "form")))
        asking = frozenset() if everywhere else self.spans.get("asking", frozenset())
        return tuple(
            word
            for place, word in enumerate(words(self.read))
            if place not in explained and (not asking or place in asking)
        )


def understand(
    text: str,
    vocabulary: Vocabulary,
    *,
    gpus: tuple[str, ...] = (),
    dtype: str = "",
    dims: Mapping[str, int] | None = None,
    told: Told | None = None,
    known: Callable[[str], bool] = lambda _: False,
) -> Question:
    """Read a question. `gpus`, `dtype` and `dims` are what the user said beside it, and count for more; `told` is what
    their files tell, and counts for less: only its products narrow those of an open name, such as a family's. `known`
    says whether the wikis have a word: such a word is no typing error."""
    without = _ADDRESS.sub(" ", text)
    read, corrections = corrected(vocabulary.spelled_out(in_english(without)), vocabulary, known)
    read, unknown = without_unknown(read, vocabulary)
    identifiers = tuple(dict.fromkeys(name for name in _IDENTIFIER.findall(read) if len(name) > _SHORT))
    found = meant(vocabulary.find(read), read, identifiers)
    found = _limited(found, read, vocabulary)
    of_units = unit_mentions(read, found, vocabulary)
    found = [*(m for m in found if m.kind != "metric" or not _inside(m, of_units)), *of_units]
    plain = bool(PLAIN.search(read))

    def ids(kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.id for m in found if m.kind == kind))

    asked, sentence = _asking(read)
    groups = named(found, read, vocabulary)
    # What the sentence that asks names is asked about; other sentences, as a pasted message, tell the circumstances.
    groups = named([m for m in found if m.kind not in NAMES or m.start in sentence], read, vocabulary) or groups
    for gpu in gpus:
        members = vocabulary.resolve("product", gpu)
        if members:
            groups.append(tuple(members))
        else:
            unknown = (*unknown, gpu)
    told = told or Told()
    if told.products and not unknown:
        groups = [tuple(told.products)]
    operations = [m for m in found if m.kind == "operation"]
    # The longest name is the most specific one: "row softmax" beats "reduction".
    operation = max(operations, key=lambda m: m.end - m.start).id if operations else told.operation
    dtypes = ids("dtype")
    metrics = _metrics(
        [m for m in found if m.start in asked or m.start == m.end], dtypes, vocabulary, read if plain else ""
    )
    # "1,979 TFLOPS or 1,671, what is the difference between H100 SXM and H100 NVL?" asks for more than the rate.
    if not metrics and len({m.id for m in found if m.kind in NAMES and m.start in asked}) < _SEVERAL:
        metrics = _metrics(found, dtypes, vocabulary, read if plain else "")
    past = any(m.kind == "intent" and m.id == "experience" for m in found)
    question = Question(
        text=text,
        read=read,
        corrections=corrections,
        measured=bool(MEASURED.search(read)),
        products=tuple(dict.fromkeys(product for group in groups for product in group)),
        named=tuple(dict.fromkeys(groups)),
        unknown_products=tuple(dict.fromkeys(unknown)),
        operation=operation,
        dtype=dtype or (dtypes[0] if dtypes else told.dtype),
        metrics=metrics,
        qualifiers=ids("qualifier"),
        symptoms=tuple(dict.fromkeys((*ids("symptom"), *told.symptoms))),
        bottlenecks=tuple(dict.fromkeys((*ids("bottleneck"), *told.bottlenecks))),
        techniques=ids("technique"),
        languages=ids("language"),
        architectures=ids("architecture"),
        plain=plain,
        levels=_levels(read),
        identifiers=identifiers,
        dims={**sizes(read, operation, vocabulary), **(dims or {})},
        given=given(read),
        premises=premises(read, metrics, dtypes, vocabulary, plain),
        beside=told.words,
    )
    form = form_of(read, names=len(question.named) + len(question.unknown_products), past=past)
    if form is Form.YES_NO and question.products:
        supported = (m.id for m in vocabulary.metrics.values() if set(m.support) & set(question.techniques))
        question = replace(question, metrics=tuple(dict.fromkeys((*question.metrics, *supported))))
    return replace(question, form=form, spans={**_spans(found, question, vocabulary), "asking": asked})


def _asking(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """The places of the words of the clause that asks, or of all where it says "that" of what stands before; and of its
    sentence; in `words(text)`."""
    sentence = asking(text)
    clause = asking_clause(sentence)
    start = text.rindex(sentence)
    if refers_back(clause):
        return frozenset(range(len(words(text)))), frozenset(
            range(first := len(words(text[:start])), first + len(words(sentence)))
        )
    before, within = len(words(text[:start])), len(words(text[: start + sentence.rindex(clause)]))
    end = before + len(words(sentence))
    return frozenset(range(within, end)), frozenset(range(before, end))


def _limited(found: list[Mention], text: str, vocabulary: Vocabulary) -> list[Mention]:
    """The mentions with the limits that a text names indirectly, and without metrics of a part of their names: "how
    much shared memory can a block use" does not ask for that of an SM. A limit names no place in the text."""
    of_limit = of_each(text)
    limits = vocabulary.find(of_limit, "metric")
    tokens, named_ = words(text), words(of_limit)
    whole = [" ".join(named_[limit.start : limit.end]) for limit in limits]

    def part(m: Mention) -> bool:
        said = " ".join(tokens[m.start : m.end])
        return m.kind == "metric" and any(name.startswith(f"{said} ") for name in whole)

    return [*(m for m in found if not part(m)), *(replace(limit, end=limit.start) for limit in limits)]


def _inside(mention: Mention, others: Iterable[Mention]) -> bool:
    return any(other.start < mention.end and mention.start < other.end for other in others)


def _levels(text: str) -> tuple[str, ...]:
    at = {name: match.start() for name, form in _LEVELS if (match := form.search(text))}
    return tuple(sorted(at, key=lambda name: at[name]))


def _metrics(found: list[Mention], dtypes: tuple[str, ...], vocabulary: Vocabulary, plain: str) -> tuple[str, ...]:
    """`plain`: the text, where it asks for rates without tensor cores."""
    named_ = [m.id for m in found if m.kind == "metric"]
    groups = [m.id for m in found if m.kind == "metric group"]
    if plain and dtypes:
        tensor = {vocabulary.dtypes[dtype].tensor for dtype in dtypes}
        own = [rate for dtype in dtypes if (rate := plain_rate(dtype, vocabulary))]
        if BOTH.search(plain):
            return tuple(dict.fromkeys([*named_, *own, *sorted(tensor)]))
        return tuple(dict.fromkeys([*(one for one in named_ if one not in tensor), *own]))
    if dtypes and groups and not named_:
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
        if f"{dtype}_throughput" in named_ and vocabulary.dtypes[dtype].vector != f"{dtype}_throughput":
            named_[named_.index(f"{dtype}_throughput")] = vocabulary.dtypes[dtype].tensor
    if not named_:
        named_ = [metric for group in groups for metric in vocabulary.metric_groups[group].metrics]
    return tuple(dict.fromkeys(named_))


def _spans(found: list[Mention], question: Question, vocabulary: Vocabulary) -> dict[str, frozenset[int]]:
    """Which words fill which kind of slot; those of `form` only say what kind of answer is wanted."""
    tokens = words(question.read)
    spans: dict[str, set[int]] = {}
    for mention in found:
        kind = {"family": "product", "metric group": "metric", "vendor": "product", "intent": "form"}.get(
            mention.kind, mention.kind
        )
        spans.setdefault(kind, set()).update(range(mention.start, mention.end))
    forms = spans.setdefault("form", set())
    idle = vocabulary.question_words | vocabulary.manner_words
    forms.update(place for place, word in enumerate(tokens) if word in idle or len(word) == 1)

    def mark(kind: str, texts: list[str]) -> None:
        said = {word for text in texts for word in words(text)}
        spans.setdefault(kind, set()).update(place for place, word in enumerate(tokens) if word in said)

    mark("number", [word for word in tokens if re.fullmatch(r"[\d.x×*=]+[a-z]*", word) and word[:1].isdigit()])
    mark("level", [match.group(0) for _, form in _LEVELS if (match := form.search(question.read))])
    mark("identifier", list(question.identifiers))
    mark("form", [cue for cue in cues(question.read) if not vocabulary.find(cue, "metric")])
    mark("product", [NOBODY, *(vocabulary.products[product].name for product in question.products)])
    mark("metric", [match.group(0) for match in PLAIN.finditer(question.read)])
    mark("measured", [match.group(0) for match in MEASURED.finditer(question.read)])
    of_limit = of_each(question.read)
    if of_limit:
        mark("metric", [of_limit, "resident", "maximum", "multiprocessor"])
    return {kind: frozenset(places) for kind, places in spans.items()}
