"""Corrects a number that the question takes for granted about hardware and that is wrong."""

from __future__ import annotations

import re
from decimal import Decimal

from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Answer, Claim, ClaimKind
from kbs.answers.unit_counts import is_of_units, unit_count
from kbs.evidence.spec import Spec
from kbs.evidence.units import says_the_same
from kbs.evidence.vocabulary import PEAK_RATES, PER_SM_LIMITS
from kbs.questions.forms import Form
from kbs.questions.numbers import Premise
from kbs.questions.question import Question

_SPARSE, _DENSE = "sparse 2:4", "dense"


def wrong_premise(question: Question, knowledge: Knowledge, answer: Answer, *, measured: bool = False) -> bool:
    """Whether the question takes a hardware number for granted that is wrong; then the answer says what is right.

    `measured`: only of rates that are told as measured, or are those of a GPU of the same family, where the question
    asks for a reason or a remedy.
    """
    corrected: list[Claim] = []
    lines: list[str] = []
    for premise in question.premises:
        if measured and not (_is_rate(premise) and (premise.measured or _of_kin(premise, question, knowledge))):
            continue
        wrong = _corrections(premise, question, knowledge)
        if wrong is not None:
            line, claims = wrong
            lines.append(line)
            corrected += claims
    if not lines:
        return False
    answer.abstained = True
    answer.reason = "wrong_premise"
    citations = tuple(dict.fromkeys(citation for claim in corrected for citation in claim.citations))
    answer.add("", [Claim(" ".join(lines), ClaimKind.ABSENCE, citations)])
    answer.add("What the wiki says", list(dict.fromkeys(corrected)))
    return True


def _corrections(premise: Premise, question: Question, knowledge: Knowledge) -> tuple[str, list[Claim]] | None:
    vocabulary = knowledge.vocabulary
    if premise.metric and is_of_units(premise.metric, vocabulary):
        return _of_units(premise, question, knowledge)
    metrics = {premise.metric} if premise.metric else set(vocabulary.metric_groups[PEAK_RATES].metrics)
    about = [s for s in knowledge.specs if s.metric in metrics and s.quantity(vocabulary) is not None]
    mine = [s for s in about if s.product in question.products]
    if not mine:
        return None
    same = [s for s in about if (q := s.quantity(vocabulary)) and says_the_same(q, premise.quantity)]
    said = [s for s in same if s in mine and (not premise.qualifier or s.qualifier == premise.qualifier)]
    told = premise.qualifier or "spars" in question.read.lower()
    if premise.metric and said and not told and all(s.qualifier == _SPARSE for s in said):
        return _only_sparse(premise, said, mine, knowledge)
    if said:
        return None
    near = [
        s
        for s in mine
        if s.recommended
        and s.qualifier in (premise.qualifier or s.qualifier, "")
        and (base := s.base(vocabulary))
        and _rounds(base, premise)
    ]
    if near and not any(s not in mine and s.recommended for s in same):
        return None
    order = {product: position for position, product in enumerate(question.products)}
    mine = sorted((s for s in mine if s.recommended), key=lambda s: order[s.product])
    # What is measured is dense, and so is what is called dense; who speaks of sparsity may mean the other peak.
    dense = (premise.measured or premise.qualifier == _DENSE) and "spars" not in question.read.lower()
    peaks = [s for s in mine if not (dense and s.qualifier == _SPARSE)]
    peak = max((s.base(vocabulary) or Decimal(0) for s in peaks), default=Decimal(0))
    elsewhere = [s for s in same if s.recommended]
    impossible = premise.quantity.base > peak * Decimal("1.005")
    stated = _states(premise, question.read)
    if premise.measured and not impossible:
        return None
    if not impossible and premise.metric in _limits(knowledge) and not _of_the_board(premise, question):
        return None
    if not (impossible or stated or (elsewhere and _is_rate(premise))):
        return None
    if not (impossible or stated) and _KERNEL.search(question.read[: question.read.find(premise.text)]):
        return None
    if impossible and not elsewhere and not stated and not premise.measured and not _is_rate(premise):
        return None
    wanted = [s for s in mine if not premise.qualifier or s.qualifier == premise.qualifier] or mine
    if not premise.metric:
        related = {s.metric for s in elsewhere}
        wanted = [s for s in wanted if s.metric in related] or wanted
    right = [knowledge.spec_claim(s) for s in _best_first(wanted, premise)]
    values = join([claim.text for claim in right[:4]])
    line = f"No, not {premise.text}: {values}."
    if premise.measured:
        line = f"{premise.text} is more than the peak: {values}. {_why_too_much(premise, peak)}"
    owner = next((s for s in elsewhere if s in mine), elsewhere[0] if elsewhere else None)
    if owner is not None:
        right.append(knowledge.spec_claim(owner))
        qualifier = f" ({owner.qualifier})" if owner.qualifier else ""
        metric = vocabulary.metrics[owner.metric].name
        line += f" {owner.value} {owner.unit} is the {metric}{qualifier} of {knowledge.name(owner.product)}."
    elif (meant := _of_another_metric(premise, question, knowledge)) is not None:
        right.append(knowledge.spec_claim(meant))
        line += f" {right[-1].text}."
    return line, right


def _of_units(premise: Premise, question: Question, knowledge: Knowledge) -> tuple[str, list[Claim]] | None:
    """How many units there are, where the question states another number as a fact; a rounded number is none other."""
    if question.form is not Form.YES_NO and not _states(premise, question.read):
        return None
    counts = [unit_count(product, premise.metric, knowledge) for product in question.products]
    known = [count for count in counts if count is not None]
    if not known or any(_rounds(count.value, premise) or count.value == premise.quantity.base for count in known):
        return None
    right = [count.claim for count in known]
    rows = [knowledge.spec_claim(spec) for count in known for spec in count.specs]
    return f"No, not {premise.text}: {join([claim.text.rstrip('.') for claim in right[:4]])}.", [*right, *rows]


def _of_kin(premise: Premise, question: Question, knowledge: Knowledge) -> bool:
    """Whether a number is the value of another GPU of the same family: 3.35 TB/s of an H100 PCIe are the SXM's."""
    vocabulary = knowledge.vocabulary
    families = {family for product in question.products for family in vocabulary.products[product].families}
    return any(
        says_the_same(quantity, premise.quantity)
        for spec in knowledge.specs
        if spec.metric == premise.metric and spec.recommended and spec.product not in question.products
        if families & set(vocabulary.products[spec.product].families) and (quantity := spec.quantity(vocabulary))
    )


def _only_sparse(
    premise: Premise, sparse: list[Spec], mine: list[Spec], knowledge: Knowledge
) -> tuple[str, list[Claim]] | None:
    """That a rate holds for sparse matrices alone, which data sheets print first; None where no dense one is known."""
    dense = [
        s for s in mine if s.recommended and s.qualifier == _DENSE and s.product in {one.product for one in sparse}
    ]
    if not dense:
        return None
    right = [knowledge.spec_claim(s) for s in (*dense, *sparse)]
    values = join([claim.text for claim in right[: len(dense)]])
    return f"{premise.text} is with 2:4 sparsity, and half of it without: {values}.", right


def _of_another_metric(premise: Premise, question: Question, knowledge: Knowledge) -> Spec | None:
    """The value of the same GPU that was taken for this one: 1536 threads are those of an SM, not of a block."""
    vocabulary = knowledge.vocabulary
    stated = [spec for product in question.products for spec in _of_product(product, knowledge)]
    same = [s for s in stated if (q := s.quantity(vocabulary)) and says_the_same(q, premise.quantity)]
    return same[0] if len({spec.metric for spec in same}) == 1 else None


def _of_product(product: str, knowledge: Knowledge) -> list[Spec]:
    mine = dict.fromkeys((product, knowledge.capability(product)))
    return [spec for one in mine for spec in knowledge.about(one) if spec.recommended]


def _rounds(value: Decimal, premise: Premise) -> bool:
    """Whether a value is the number that the question states, to the digits that it states: 1000 GB/s of 1008."""
    stated = premise.quantity.base
    digits = len(stated.normalize().as_tuple().digits)
    return bool(stated) and Decimal(f"{value:.{digits - 1}e}") == stated


_ABOVE = Decimal("1.3")
"""How far above the peak a clock beyond the one that it was reckoned with may bring a rate of operations."""


def _why_too_much(premise: Premise, peak: Decimal) -> str:
    if premise.quantity.unit.dimension.startswith("bytes"):
        return "The bytes were counted wrong, or they came from a cache."
    if premise.quantity.base <= peak * _ABOVE:
        return (
            "A peak is reckoned with the stated boost clock, which a GPU may exceed; else the operations or the time"
            " were counted wrong."
        )
    return "The operations or the time were counted wrong, such as those of a causal mask twice."


def _best_first(specs: list[Spec], premise: Premise) -> list[Spec]:
    dense = [s for s in specs if s.qualifier in ("", "dense", premise.qualifier)]
    return dense or specs


def _is_rate(premise: Premise) -> bool:
    return premise.quantity.unit.dimension.endswith("per second")


def _limits(knowledge: Knowledge) -> set[str]:
    """Metrics that say how much a kernel may use, and of which it may use less."""
    vocabulary = knowledge.vocabulary
    named = {id for id in vocabulary.metrics if id.startswith("max_")}
    return named | set(vocabulary.metric_groups[PER_SM_LIMITS].metrics)


_OWN = re.compile(r"\b(?:kernel|my|our|i|we|block|cta|grid|tile|program|launch\w*|uses?|using)\b", re.IGNORECASE)
_KERNEL = re.compile(r"\b(?:kernel|program)\b", re.IGNORECASE)
"""What reaches a rate, and has none by its data sheet."""
_HAS = re.compile(r"\b(?:has|have|having|with|is|of)(?: (?:a|an|the|only|just))?\s*$", re.IGNORECASE)


def _of_the_board(premise: Premise, question: Question) -> bool:
    """Whether a number is said of a GPU ("an H100 with 100 KB of shared memory per SM"), not of a kernel's use."""
    before = question.read[: question.read.find(premise.text)]
    return bool(_HAS.search(before)) and not _OWN.search(before)


def _states(premise: Premise, text: str) -> bool:
    """Whether the question says that the hardware has this number: "an H100 with 2 TB/s", "does it have 40 MB"."""
    before = text[: text.find(premise.text)].lower().split()[-3:]
    return any(word.strip(",") in ("has", "have", "having", "with", "is", "of") for word in before)
