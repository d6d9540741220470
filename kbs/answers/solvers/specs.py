"""Values of hardware: one, several, whether a GPU has a feature; measured ones where those are asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from kbs.answers.calculation import MEASURED_OF
from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Claim, ClaimKind
from kbs.answers.solvers.part import Part, parts
from kbs.answers.unit_counts import is_of_units, of_one_sm, unit_count
from kbs.evidence.spec import ABSENT, Spec
from kbs.evidence.units import says_the_same
from kbs.evidence.vocabulary import SPEC_SHEET
from kbs.questions.forms import Form, asking, denies
from kbs.questions.numbers import Premise, plain_rate
from kbs.questions.question import Question

USES = ("product", "metric", "dtype", "qualifier", "architecture", "level", "number")
SUPPORT = "technique"
"""The kind of slot that a question about the support of a feature has beside these."""
FORMS = (Form.VALUE, Form.YES_NO, Form.TOPIC, Form.DEFINITION, Form.CALCULATION, Form.DIFFERENCE)
NO_PLAIN_RATE = "no_plain_rate"
"""The reason where no rate without tensor cores is known: what pages say of rates with them is no answer."""
NO_UNIT_COUNT = "no_unit_count"
"""The reason where a number of units is not known: a section that names the units is no answer."""
MEASURED = "measured_"
"""What ids of measured metrics begin with."""


def specs(question: Question, knowledge: Knowledge) -> Part | None:
    """Values by lookup, each with its line; unpublished and unknown ones are said to be so."""
    metrics = question.metrics or dtype_rates(question, knowledge)
    if question.plain and question.dtype and question.products and not (metrics or question.operation):
        name = knowledge.vocabulary.dtypes[question.dtype].name
        text = f"Not known: a rate of {name} without tensor cores of {knowledge.names(question.products)}."
        return Part((Claim(text, ClaimKind.ABSENCE),), USES, FORMS, refusal=NO_PLAIN_RATE)
    if question.measured and question.products:
        return _measured(question, knowledge, metrics)
    if not metrics and not (question.products and _sheet(question)):
        return None
    metrics = metrics or knowledge.vocabulary.metric_groups[SPEC_SHEET].metrics
    if not question.products:  # in the name of a counter, the words of a metric say something else
        return None if question.identifiers else _of_every(question, knowledge, metrics)
    asked = bool(question.metrics or question.dtype)
    said: list[Claim] = []
    others: list[Claim] = []
    shown: list[Spec] = []
    silent: list[Spec] = []
    read_off: list[Claim] = []
    gaps: list[str] = []
    rows: list[Claim] = []
    told = False
    for product in question.products:
        for metric in metrics:
            of_units = is_of_units(metric, knowledge.vocabulary)
            if of_units and (count := unit_count(product, metric, knowledge)) is not None:
                if _is_told([one.text for one in question.premises if _states(one, metric, count.value)], question):
                    told = True
                    continue
                said.append(_confirmed(count.claim, metric, count.value, question))
                rows += [knowledge.spec_claim(spec) for spec in count.specs]
                others += [knowledge.spec_claim(spec) for spec in knowledge.others(product, metric)]
                continue
            # Of a compute capability, which has no number of SMs, those of one SM are known.
            each = knowledge.vocabulary.metrics[metric].each
            stated = of_one_sm(product, each or metric, knowledge) if of_units else knowledge.stated(product, metric)
            found = [
                spec
                for spec in qualified(stated, question)
                if not _is_told(_stated_as(spec, question, knowledge), question)
            ]
            if stated and not found:
                told = True
                continue
            withheld = any(not spec.published and not spec.qualifier for spec in found)
            # What a device reports is shown, but is not what its vendor publishes.
            (read_off if withheld else said).extend(
                _said(spec, question, knowledge) for spec in found if spec.published
            )
            shown += [spec for spec in found if spec.published]
            others += [knowledge.spec_claim(spec) for spec in knowledge.others(product, metric) if spec.published]
            silent += [spec for spec in found if not spec.published]
            if not found and asked:
                gaps.append(f"{knowledge.name(product)} {knowledge.vocabulary.metrics[metric].name}: I found no line.")
    if question.form is not Form.YES_NO and shown and all(_is_stated(spec, question, knowledge) for spec in shown):
        return None  # who states a value does not ask for it
    if told and not (said or silent or read_off):
        return None
    for spec in silent:
        qualifier = f" ({spec.qualifier})" if spec.qualifier else ""
        metric = knowledge.vocabulary.metrics[spec.metric].name
        gaps.append(f"{knowledge.name(spec.product)} {metric}{qualifier}: its vendor publishes no value.")
    unpublished = [
        Claim(spec.statement(knowledge.vocabulary), ClaimKind.SPEC, (spec.citation,), subject=spec.product)
        for spec in silent
    ]
    if said := list(dict.fromkeys(said)):
        confirmed = [claim for claim in said if claim.kind is ClaimKind.DERIVED] if question.premises else []
        rest = [claim for claim in said if claim not in confirmed] if confirmed else []
        said, alike = _together(confirmed or said, knowledge)
        titled = {
            "Values": [*alike, *rest],
            "Counted from": list(dict.fromkeys(rows)),
            "Read off a device, where the vendor publishes nothing": read_off,
            "Where sources disagree": others,
            "Not published": unpublished,
        }
        of_feature = any(knowledge.vocabulary.metrics[metric].support for metric in metrics)
        uses = (*USES, SUPPORT) if of_feature else USES
        return Part(tuple(said), uses, FORMS, parts(titled), tuple(gaps))
    what = join([knowledge.vocabulary.metrics[metric].name for metric in metrics])
    what += " without tensor cores" if question.plain else ""
    why = "its vendor publishes no value" if silent else "I found no line about it"
    direct = Claim(
        f"Not known: {what} of {knowledge.names(question.products)}; {why}.",
        ClaimKind.ABSENCE,
        tuple(spec.citation for spec in silent),
    )
    titled = {"What the wiki says": unpublished, "What is known instead": [*read_off, *others]}
    missing = NO_PLAIN_RATE if question.plain else "not_in_wiki"
    if all(is_of_units(metric, knowledge.vocabulary) for metric in metrics):
        missing = NO_UNIT_COUNT
    return Part((direct,), USES, FORMS, parts(titled), tuple(gaps), "unpublished" if silent else missing)


def _together(said: list[Claim], knowledge: Knowledge) -> tuple[list[Claim], list[Claim]]:
    """(one line for GPUs that have the same value, the lines themselves); (the lines, none) where they differ."""
    tails = {claim.text.replace(knowledge.name(claim.subject), "", 1) for claim in said}
    if len(said) < 2 or len(tails) > 1:
        return said, []
    names = knowledge.names([claim.subject for claim in said])
    head, _, rest = said[0].text.partition(knowledge.name(said[0].subject))
    text = f"{head}{names}{rest.replace(' has no ', ' have no ')}".rstrip(".")
    citations = tuple(citation for claim in said for citation in claim.citations)
    return [Claim(f"{text}.", ClaimKind.DERIVED, citations, said[0].derivation)], said if said[
        0
    ].kind is ClaimKind.SPEC else []


def dtype_rates(question: Question, knowledge: Knowledge) -> tuple[str, ...]:
    """The rates of the element type that a question names with no metric: does it have FP8, how fast is FP64."""
    if not question.dtype or question.operation or not question.products:
        return ()
    dtype = knowledge.vocabulary.dtypes[question.dtype]
    if question.plain:
        return tuple(filter(None, [plain_rate(question.dtype, knowledge.vocabulary)]))
    vector = f"{question.dtype}_throughput"  # some GPUs have a type without tensor cores for it
    held = any(knowledge.stated(product, vector) for product in question.products)
    named = (dtype.tensor, vector if held else dtype.vector)
    own = [metric for metric in named if metric.startswith(question.dtype)]
    return tuple(dict.fromkeys(filter(None, own or [dtype.tensor or dtype.vector])))


def qualified(found: Sequence[Spec], question: Question) -> list[Spec]:
    """The specs of the qualifiers that the question names, where one has them; else all."""
    wanted = {*question.qualifiers, *question.levels}
    return [spec for spec in found if spec.qualifier in wanted] or list(found)


def _said(spec: Spec, question: Question, knowledge: Knowledge) -> Claim:
    """The value; where a question wants a yes or no of something that a GPU has or has not, with that word."""
    claim = knowledge.spec_claim(spec)
    metric = knowledge.vocabulary.metrics[spec.metric]
    lacks = spec.value in (ABSENT, "no")
    if not lacks and not (question.form is Form.YES_NO and _confirms(spec, question, knowledge)):
        return claim
    word = "No" if lacks is not denies(question.read) else "Yes"
    has = f"has no {metric.name}" if lacks else f"{metric.name}: {spec.value} {spec.unit}".rstrip()
    text = f"{word}: {knowledge.name(spec.product)} {has}{f' ({spec.qualifier})' if spec.qualifier else ''}."
    return Claim(text, ClaimKind.DERIVED, (spec.citation,), subject=spec.product, note=claim.note)


def _confirmed(claim: Claim, metric: str, value: Decimal, question: Question) -> Claim:
    """A number of units; with yes or no where the question states that very number."""
    states = any(_states(one, metric, value) for one in question.premises)
    if question.form is not Form.YES_NO or not states:
        return claim
    text = f"{'No' if denies(question.read) else 'Yes'}: {claim.text.rstrip('.')}."
    return replace(claim, text=text, kind=ClaimKind.DERIVED)


def _states(premise: Premise, metric: str, value: Decimal) -> bool:
    """Whether a number of the question is this number of units."""
    return premise.metric == metric and premise.quantity.base == value


def _stated_as(spec: Spec, question: Question, knowledge: Knowledge) -> list[str]:
    """The words with which the question states this very value."""
    if knowledge.vocabulary.metrics[spec.metric].text:
        return [spec.value] if re.search(rf"(?<![\w.]){re.escape(spec.value)}(?!\w|\.\d)", question.read, re.I) else []
    quantity = spec.quantity(knowledge.vocabulary)
    same = (one for one in question.premises if one.metric == spec.metric)
    return [one.text for one in same if quantity is not None and says_the_same(quantity, one.quantity)]


_OF_WHAT_IS_TOLD = re.compile(r"\b(?:is|are|was|were) (?:it|this|that|these|those)\b", re.IGNORECASE)


def _is_told(texts: Sequence[str], question: Question) -> bool:
    """Whether a question that wants yes or no tells a value as a circumstance: it stands before the sentence that
    asks, and not in it."""
    asked = asking(question.read)
    if _OF_WHAT_IS_TOLD.search(asked):
        return False
    numbers = [re.match(r"[\d.,]*\d|.*", text) for text in texts]
    return question.form is Form.YES_NO and bool(texts) and not any(one and one[0] in asked for one in numbers)


def _confirms(spec: Spec, question: Question, knowledge: Knowledge) -> bool:
    """Whether a value says yes to what is asked: to a feature or an element type, or because the question names it. A
    number that the question states may be another one, and nothing says yes to that."""
    metric = knowledge.vocabulary.metrics[spec.metric]
    numbers = question.spans.get("number", frozenset()) - question.spans.get("product", frozenset())
    if metric.support or (question.dtype and not numbers):
        return True
    return bool(_stated_as(spec, question, knowledge))


def _is_stated(spec: Spec, question: Question, knowledge: Knowledge) -> bool:
    """Whether the question states this very value."""
    return not knowledge.vocabulary.metrics[spec.metric].text and bool(_stated_as(spec, question, knowledge))


def _sheet(question: Question) -> bool:
    """Whether a question that names a GPU and no metric asks for nothing else. A number that it states is something
    else."""
    return not question.left("product", "architecture") and not (
        question.dtype or question.operation or question.symptoms or question.bottlenecks or question.techniques
    )


def _of_every(question: Question, knowledge: Knowledge, metrics: Sequence[str]) -> Part | None:
    """A metric of all GPUs, one line for each value."""
    of_feature = question.form is Form.YES_NO and (
        question.dtype or any(knowledge.vocabulary.metrics[metric].support for metric in metrics)
    )
    if not of_feature and (question.form is Form.YES_NO or (question.left(*USES) and question.form is not Form.VALUE)):
        return None
    claims: list[Claim] = []
    for metric in (knowledge.vocabulary.metrics[metric].each or metric for metric in metrics):
        by_value: dict[str, list[Spec]] = {}
        for product in _documented(question, knowledge):
            for spec in qualified(knowledge.of(product, metric), question):
                if spec.published:
                    by_value.setdefault(f"{spec.value} {spec.unit} {spec.qualifier}".strip(), []).append(spec)
        name = knowledge.vocabulary.metrics[metric].name
        for value, having in sorted(by_value.items(), key=lambda pair: -len(pair[1])):
            names = knowledge.names([spec.product for spec in having])
            text = f"{name}: {value} on {names}."
            claims.append(Claim(text, ClaimKind.DERIVED, tuple(spec.citation for spec in having)))
    return Part(tuple(claims), USES, FORMS) if claims else None


def _documented(question: Question, knowledge: Knowledge) -> list[str]:
    terms = knowledge.vocabulary
    of = set(question.architectures)
    return [p for p in knowledge.documented if not of or terms.products[p].architecture in of]


def _measured(question: Question, knowledge: Knowledge, metrics: Sequence[str]) -> Part | None:
    """What was measured on the GPUs of a question, and the peak beside it."""
    wanted = [metric for metric in metrics if metric.startswith(MEASURED)]
    wanted += [measured for metric in metrics for measured in MEASURED_OF.get(metric, ())]
    if not wanted:
        return None
    found = [
        knowledge.spec_claim(spec)
        for product in question.products
        for metric in dict.fromkeys(wanted)
        for spec in qualified(knowledge.stated(product, metric), question)
        if spec.published
    ]
    peaks = [
        knowledge.spec_claim(spec)
        for product in question.products
        for metric in metrics
        if not metric.startswith(MEASURED)
        for spec in knowledge.of(product, metric)
        if spec.published and spec.qualifier in ("", "dense")
    ]
    uses = (*USES, "measured", "operation")
    if found:
        return Part(tuple(found), uses, FORMS, parts({"The peak": peaks}))
    names = knowledge.names(question.products)
    what = [knowledge.vocabulary.metrics[metric].name for metric in dict.fromkeys(wanted)]
    text = f"Not known: I found no {join([name[:1].lower() + name[1:] for name in what])} of {names}."
    return Part(
        (Claim(text, ClaimKind.ABSENCE),), uses, FORMS, parts({"The peak, which is not what was asked": peaks}),
        refusal="not_in_wiki",
    )  # fmt: skip
