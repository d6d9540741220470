"""How many arithmetic units a GPU has: as its own row says, or those of one SM times its SMs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Claim, ClaimKind, Step
from kbs.evidence.spec import ABSENT, Spec
from kbs.evidence.vocabulary import Vocabulary

_SM_COUNT = "sm_count"
_UNIT = "units"


@dataclass(frozen=True)
class Count:
    """A number of units, and what says so."""

    product: str
    value: Decimal
    claim: Claim
    specs: tuple[Spec, ...]
    """The rows that it was counted from."""
    called: str
    """The name of the units."""


def is_of_units(metric: str, vocabulary: Vocabulary) -> bool:
    """Whether a metric counts arithmetic units, of an SM or of a GPU."""
    return vocabulary.metrics[metric].unit == _UNIT


def of_one_sm(product: str, metric: str, knowledge: Knowledge) -> list[Spec]:
    """Units of one SM: of the product's own page, of its compute capability, or of the target of its architecture."""
    return knowledge.stated(product, metric) or knowledge.of(knowledge.target(product), metric)


def unit_count(product: str, metric: str, knowledge: Knowledge) -> Count | None:
    """How many units a product has, of an SM or in all as the metric says; None where no rows tell."""
    terms = knowledge.vocabulary
    each = terms.metrics[metric].each
    whole = metric if each else next(one.id for one in terms.metrics.values() if one.each == metric)
    called = terms.metrics[whole].called.get(terms.products[product].vendor, terms.metrics[whole].name)
    own = _first(knowledge.of(product, whole))
    of_each = _first(of_one_sm(product, each or metric, knowledge))
    for spec in (own, of_each):
        if spec is not None and spec.value == ABSENT:
            text = f"{knowledge.name(product)} has no {called}."
            claim = Claim(text, ClaimKind.DERIVED, (spec.citation,), subject=product)
            return Count(product, Decimal(0), claim, (spec,), called)
    row = own if each else of_each
    if row is not None and (value := row.base(terms)) is not None:
        return Count(product, value, knowledge.spec_claim(row), (), called)
    if not each or of_each is None:
        return None
    sms = _first(knowledge.of(product, _SM_COUNT))
    number, one = (spec.base(terms) if spec else None for spec in (sms, of_each))
    if sms is None or number is None or one is None:
        return None
    value = number * one
    figure = f"{value.normalize():,f}"
    step = Step("units", f"{sms.value} × {of_each.value}", value, _UNIT, f"{sms.value} × {of_each.value} = {figure}")
    text = f"{knowledge.name(product)}: {sms.value} {sms.unit}s × {of_each.value} = {figure} {called}."
    claim = Claim(text, ClaimKind.DERIVED, (sms.citation, of_each.citation), (step,), subject=product)
    return Count(product, value, claim, (sms, of_each), called)


def _first(specs: Sequence[Spec]) -> Spec | None:
    return next((spec for spec in specs if spec.published), None)
