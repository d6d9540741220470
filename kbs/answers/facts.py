"""Answers about hardware values: one value, a comparison, or a correction of a number in the question."""

from __future__ import annotations

import re
from decimal import Decimal

from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Answer, Claim, ClaimKind, Step
from kbs.evidence.spec import Spec
from kbs.evidence.units import binary_unit, format_number, says_the_same
from kbs.evidence.vocabulary import PEAK_RATES, PER_SM_LIMITS, SPEC_SHEET
from kbs.questions.question import Premise, Question


def answer_spec(question: Question, knowledge: Knowledge, answer: Answer) -> None:
    """Specs by lookup, each with its line; unpublished and unknown ones are said to be so."""
    metrics = question.metrics or (knowledge.vocabulary.metric_groups[SPEC_SHEET].metrics if question.products else ())
    products = question.products or tuple(knowledge.documented)
    said: list[Claim] = []
    others: list[Claim] = []
    silent: list[Spec] = []
    read_off: list[Claim] = []
    for product in products:
        for metric in metrics:
            found = _qualified(knowledge.of(product, metric), question)
            withheld = any(not spec.published and not spec.qualifier for spec in found)
            # What a device reports is shown, but is not what its vendor publishes.
            (read_off if withheld else said).extend(knowledge.spec_claim(spec) for spec in found if spec.published)
            others += [knowledge.spec_claim(spec) for spec in knowledge.others(product, metric) if spec.published]
            silent += [spec for spec in found if not spec.published]
            if not found and question.metrics:
                name = knowledge.vocabulary.metrics[metric].name
                answer.gaps.append(f"{knowledge.name(product)} {name}: UNKNOWN (gpu-wiki not found)")
    for spec in silent:
        name = knowledge.vocabulary.metrics[spec.metric].name
        qualifier = f" ({spec.qualifier})" if spec.qualifier else ""
        answer.gaps.append(f"{knowledge.name(spec.product)} {name}{qualifier}: its vendor publishes no value.")
    unpublished = [
        Claim(spec.statement(knowledge.vocabulary), ClaimKind.SPEC, (spec.citation,), subject=spec.product)
        for spec in silent
    ]
    if not said:
        answer.abstained = True
        answer.reason = "unpublished" if silent else "not_in_wiki"
        what = join([knowledge.vocabulary.metrics[metric].name for metric in metrics]) or "what is asked"
        why = "its vendor publishes no value" if silent else "the wiki has no such value"
        direct = f"Not known: {what} of {knowledge.names(products)}; {why}."
        answer.add("", [Claim(direct, ClaimKind.ABSENCE, tuple(spec.citation for spec in silent))])
        answer.add("What the wiki says", unpublished)
        answer.add("What is known instead", [*read_off, *others])
        return
    answer.add("", said)
    answer.add("Read off a device, where the vendor publishes nothing", read_off)
    answer.add("Where sources disagree", others)
    answer.add("Not published", unpublished)


def _qualified(specs: list[Spec], question: Question) -> list[Spec]:
    """The specs of the qualifiers that the question names, where one has them; else all."""
    return [spec for spec in specs if spec.qualifier in question.qualifiers] or specs


def answer_comparison(question: Question, knowledge: Knowledge, answer: Answer) -> None:
    """Values of two or more products beside each other, and their ratio."""
    metrics = question.metrics or tuple(
        metric for bottleneck in question.bottlenecks for metric in knowledge.vocabulary.bottlenecks[bottleneck].metrics
    )
    metrics = metrics or knowledge.vocabulary.metric_groups[SPEC_SHEET].metrics
    asked = bool(question.metrics or question.bottlenecks)
    rows: list[Claim] = []
    ratios: list[tuple[Decimal, Claim]] = []
    for metric in metrics:
        pairs: dict[str, list[Spec]] = {}
        for product in question.products:
            for spec in _qualified(knowledge.of(product, metric), question):
                rows.append(knowledge.spec_claim(spec))
                if spec.base(knowledge.vocabulary) is not None:
                    pairs.setdefault(spec.qualifier, []).append(spec)
        for specs in pairs.values():
            ratio = _ratio(specs, question, knowledge)
            if ratio is not None:
                ratios.append(ratio)
    if not rows:
        answer_spec(question, knowledge, answer)
        return
    if ratios:
        # Metrics that were asked for are in the question's order; an overview begins with the largest difference.
        best = ratios if asked else sorted(ratios, key=lambda pair: -pair[0])[:1]
        answer.add("", [claim for _, claim in best])
        answer.add("Values", rows)
    else:
        answer.add("", rows)


def _ratio(specs: list[Spec], question: Question, knowledge: Knowledge) -> tuple[Decimal, Claim] | None:
    """The largest against the smallest of specs of one metric; None if all are of one name of the question."""
    owners = [{spec.product for spec in specs}.intersection(group) for group in question.named]
    if len([1 for owner in owners if owner]) < 2 or len({spec.product for spec in specs}) < 2:
        return None

    def size(spec: Spec) -> Decimal:
        return spec.base(knowledge.vocabulary) or Decimal(0)

    small, large = min(specs, key=size), max(specs, key=size)
    if small is large:
        small = specs[-1]
    low, high = small.base(knowledge.vocabulary), large.base(knowledge.vocabulary)
    if not low or not high:
        return None
    ratio = high / low
    figure = format_number(ratio)
    metric = knowledge.vocabulary.metrics[large.metric]
    qualifier = f" ({large.qualifier})" if large.qualifier else ""
    # K, M and G of a capacity are binary, which a sum says: 50 MB / 40960 KB would be another number.
    units = [binary_unit(spec.unit) if metric.capacity else spec.unit for spec in (large, small)]
    expression = f"{large.value} {units[0]} / {small.value} {units[1]}"
    step = Step("ratio", expression, ratio, "x", f"{expression} = {figure}")
    if high == low:
        text = f"{metric.name}{qualifier} is the same: {large.value} {large.unit}."
    else:
        text = (
            f"{knowledge.name(large.product)} has {figure} times the {metric.name}{qualifier} of"
            f" {knowledge.name(small.product)}: {large.value} {large.unit} against {small.value} {small.unit}."
        )
    names = (knowledge.name(large.product), knowledge.name(small.product))
    return ratio, Claim(text, ClaimKind.DERIVED, (large.citation, small.citation), (step,), note=" / ".join(names))


def wrong_premise(question: Question, knowledge: Knowledge, answer: Answer) -> bool:
    """Whether the question takes a hardware number for granted that is wrong; then the answer says what is right."""
    corrected: list[Claim] = []
    lines: list[str] = []
    for premise in question.premises:
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
    metrics = {premise.metric} if premise.metric else set(vocabulary.metric_groups[PEAK_RATES].metrics)
    about = [s for s in knowledge.specs if s.metric in metrics and s.quantity(vocabulary) is not None]
    mine = [s for s in about if s.product in question.products]
    if not mine:
        return None
    same = [s for s in about if (q := s.quantity(vocabulary)) and says_the_same(q, premise.quantity)]
    if any(s in mine and (not premise.qualifier or s.qualifier == premise.qualifier) for s in same):
        return None
    order = {product: position for position, product in enumerate(question.products)}
    mine = sorted((s for s in mine if s.recommended), key=lambda s: order[s.product])
    peak = max((s.base(vocabulary) or Decimal(0) for s in mine), default=Decimal(0))
    elsewhere = [s for s in same if s.recommended]
    impossible = premise.quantity.base > peak * Decimal("1.005")
    stated = _states(premise, question.text)
    if premise.measured and not impossible:
        return None
    if not impossible and premise.metric in _limits(knowledge) and not _of_the_board(premise, question):
        return None
    if not (impossible or elsewhere or stated):
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
        line = (
            f"{premise.text} is more than the peak: {values}. The bytes were counted wrong, or they came from a cache."
        )
    owner = next((s for s in elsewhere if s in mine), elsewhere[0] if elsewhere else None)
    if owner is not None:
        right.append(knowledge.spec_claim(owner))
        qualifier = f" ({owner.qualifier})" if owner.qualifier else ""
        metric = vocabulary.metrics[owner.metric].name
        line += f" {owner.value} {owner.unit} is the {metric}{qualifier} of {knowledge.name(owner.product)}."
    return line, right


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
_HAS = re.compile(r"\b(?:has|have|having|with|is|of)(?: (?:a|an|the|only|just))?\s*$", re.IGNORECASE)


def _of_the_board(premise: Premise, question: Question) -> bool:
    """Whether a number is said of a GPU ("an H100 with 100 KB of shared memory per SM"), not of a kernel's use."""
    before = question.text[: question.text.find(premise.text)]
    return bool(_HAS.search(before)) and not _OWN.search(before)


def _states(premise: Premise, text: str) -> bool:
    """Whether the question says that the hardware has this number: "an H100 with 2 TB/s", "does it have 40 MB"."""
    before = text[: text.find(premise.text)].lower().split()[-3:]
    return any(word.strip(",") in ("has", "have", "having", "with", "is", "of") for word in before)
