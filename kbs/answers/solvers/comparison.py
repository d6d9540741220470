"""Two or more GPUs that a question names, beside each other: each as it was named, with all its variants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.specs import USES, dtype_rates, qualified
from kbs.answers.unit_counts import is_of_units, unit_count
from kbs.evidence.spec import Spec
from kbs.evidence.units import binary_unit, format_number
from kbs.evidence.vocabulary import SPEC_SHEET
from kbs.questions.forms import Form
from kbs.questions.question import Question

_FORMS = (Form.COMPARISON, Form.DIFFERENCE, Form.VALUE, Form.YES_NO, Form.TOPIC)
_POLAR = re.compile(r"^(?:so |and |but )?(?:is|are|does|do|will|would|can|has|have|should)\b", re.IGNORECASE)
_LESS = re.compile(r"\b(?:slower|less|lower|fewer|smaller|worse)\b", re.IGNORECASE)
OVERVIEW = 6
"""Metrics of an overview that the values differ most in."""


@dataclass(frozen=True)
class _Side:
    """A GPU as the question names it, and what its variants have of a metric."""

    name: str
    specs: tuple[Spec, ...]

    def values(self, knowledge: Knowledge) -> list[Decimal]:
        return sorted(base for spec in self.specs if (base := spec.base(knowledge.vocabulary)) is not None)

    def shown(self, knowledge: Knowledge) -> str:
        """The value, or from the least to the greatest of its variants."""
        ordered = sorted(self.specs, key=lambda spec: spec.base(knowledge.vocabulary) or Decimal(0))
        low, high = ordered[0], ordered[-1]
        if low.base(knowledge.vocabulary) == high.base(knowledge.vocabulary):
            return f"{high.value} {high.unit}"
        least = f"{low.value} {low.unit} ({knowledge.name(low.product)})"
        return f"{least} to {high.value} {high.unit} ({knowledge.name(high.product)})"


def comparison(question: Question, knowledge: Knowledge) -> Part | None:
    """The metrics that were asked for, or those that an overview begins with, of each GPU and their ratio."""
    if len(question.named) < 2:
        return None
    terms = knowledge.vocabulary
    of_dtype = question.spans.get("dtype", frozenset()) & question.spans.get("asking", frozenset())
    asked = question.metrics or (dtype_rates(question, knowledge) if of_dtype else ())
    asked = asked or tuple(m for bottleneck in question.bottlenecks for m in terms.bottlenecks[bottleneck].metrics)
    rows: list[Claim] = []
    known = False
    ratios: list[tuple[Decimal, Claim]] = []
    gaps: list[str] = []
    for metric in asked or terms.metric_groups[SPEC_SHEET].metrics:
        if is_of_units(metric, terms):
            counted = _counts_beside(metric, question, knowledge)
            ratios += [(ratio, claim) for ratio, claim, _ in counted]
            rows += [one for _, _, own in counted for one in own]
            known = known or bool(counted)
            continue
        by_qualifier: dict[str, list[_Side]] = {}
        for group in question.named:
            having: dict[str, list[Spec]] = {}
            for product in group:
                found = qualified(knowledge.stated(product, metric), question)
                rows += [knowledge.spec_claim(spec) for spec in found]
                known = known or any(spec.published for spec in found)
                if not found and asked:
                    gaps.append(f"{knowledge.name(product)} {terms.metrics[metric].name}: I found no line.")
                plain = [spec for spec in found if spec.qualifier in ("", "dense")] or (
                    found if question.qualifiers else []
                )
                for spec in plain:
                    if spec.base(terms) is not None:
                        having.setdefault(spec.qualifier, []).append(spec)
            for qualifier, specs in having.items():
                by_qualifier.setdefault(qualifier, []).append(_Side(_name(group, knowledge), tuple(specs)))
        made = (_beside(sides, metric, question, knowledge) for sides in by_qualifier.values() if len(sides) > 1)
        ratios += [one for one in made if one is not None]
    if not known:
        return None
    # A number that is no premise ("48 KB") is asked about, and an overview does not answer it.
    uses = (*USES, "bottleneck") if asked else ("product", "architecture")
    if not ratios:
        return Part(tuple(rows), uses, _FORMS, gaps=tuple(gaps))
    best = ratios if asked else sorted(ratios, key=lambda pair: -pair[0])[:OVERVIEW]
    direct = [claim for _, claim in best]
    return Part(tuple(direct), uses, _FORMS, parts({"Values": rows}), tuple(gaps))


def _name(group: Sequence[str], knowledge: Knowledge) -> str:
    """The name of a group of products: that of their family where it is the whole of it."""
    for family, term in knowledge.vocabulary.families.items():
        if len(group) > 1 and set(knowledge.vocabulary.family_members(family)) == set(group):
            return term.name
    return knowledge.names(list(group))


def _beside(
    sides: Sequence[_Side], metric: str, question: Question, knowledge: Knowledge
) -> tuple[Decimal, Claim] | None:
    """How the first side stands to the others in a metric, as (ratio of the extremes, claim)."""
    terms = knowledge.vocabulary.metrics[metric]
    first, others = sides[0], sides[1:]
    mine = first.values(knowledge)
    theirs = sorted(value for side in others for value in side.values(knowledge))
    if not (mine and theirs) or not mine[0] or not theirs[0]:
        return None
    spec = first.specs[0]
    name = f"{terms.name}{f' ({spec.qualifier})' if spec.qualifier else ''}"
    citations = tuple(spec.citation for side in sides for spec in side.specs)
    ratio = max(mine[-1] / theirs[0], theirs[-1] / mine[0])
    verdict = _verdict(mine, theirs, question)
    single = all(len(set(side.values(knowledge))) == 1 for side in sides) and len(sides) == 2
    if not single:
        said = "; ".join(f"{side.name} {side.shown(knowledge)}" for side in sides)
        return ratio, Claim(f"{verdict}{name}: {said}.", ClaimKind.DERIVED, citations)
    [other] = others
    large, small = (first, other) if mine[0] >= theirs[0] else (other, first)
    top, low = large.specs[0], small.specs[0]
    if mine[0] == theirs[0]:
        return Decimal(1), Claim(f"{verdict}{name} is the same: {top.value} {top.unit}.", ClaimKind.DERIVED, citations)
    figure = format_number(ratio)
    # K, M and G of a capacity are binary, which a sum says: 50 MB / 40960 KB would be another number.
    units = [binary_unit(one.unit) if terms.capacity else one.unit for one in (top, low)]
    expression = f"{top.value} {units[0]} / {low.value} {units[1]}"
    step = Step("ratio", expression, ratio, "x", f"{expression} = {figure}")
    text = (
        f"{verdict}{large.name} has {figure} times the {name} of {small.name}:"
        f" {top.value} {top.unit} against {low.value} {low.unit}."
    )
    return ratio, Claim(text, ClaimKind.DERIVED, citations, (step,), note=f"{large.name} / {small.name}")


def _counts_beside(metric: str, question: Question, knowledge: Knowledge) -> list[tuple[Decimal, Claim, list[Claim]]]:
    """How the first GPU stands to each other in a number of units, as (ratio, claim, the counts)."""
    counts = [unit_count(group[0], metric, knowledge) for group in question.named if group]
    first, *others = counts
    if first is None:
        return []
    out = []
    for other in others:
        if other is None or not first.value or not other.value:
            continue
        large, small = (first, other) if first.value >= other.value else (other, first)
        ratio = large.value / small.value
        names = [knowledge.name(count.product) for count in (large, small)]
        figures = [f"{count.value.normalize():,f}" for count in (large, small)]
        expression = " / ".join(figures)
        step = Step("ratio", expression, ratio, "x", f"{expression} = {format_number(ratio)}")
        whose = large.called if large.called == small.called else f"{large.called} of its own to the {small.called}"
        text = f"{names[0]} has {format_number(ratio)} times the {whose} of {names[1]}: {' against '.join(figures)}."
        if ratio == 1:
            text = f"{names[0]} and {names[1]} have as many: {figures[0]} {large.called}."
        both = [count.claim for count in (large, small)]
        cited = tuple(dict.fromkeys(citation for claim in both for citation in claim.citations))
        steps = (*(step for claim in both for step in claim.derivation), step)
        out.append(
            (
                ratio,
                Claim(_verdict([first.value], [other.value], question) + text, ClaimKind.DERIVED, cited, steps),
                both,
            )
        )
    return out


def _verdict(mine: Sequence[Decimal], theirs: Sequence[Decimal], question: Question) -> str:
    """Yes, no, or that the variant decides, where the question says that the first has more, or less."""
    if not _POLAR.match(question.read.strip()):
        return ""
    less = bool(_LESS.search(question.read))
    ahead, behind = mine[0] > theirs[-1], mine[-1] <= theirs[0]
    if less:
        ahead, behind = mine[-1] < theirs[0], mine[0] >= theirs[-1]
    return "Yes: " if ahead else "No: " if behind else "It depends on the variant: "
