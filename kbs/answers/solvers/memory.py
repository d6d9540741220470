"""Sums about the memory system: latencies level by level, and Little's law with the question's GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.specs import USES
from kbs.evidence.spec import Spec
from kbs.evidence.units import Quantity, format_number
from kbs.hardware.roofline import usable
from kbs.questions.forms import Form
from kbs.questions.numbers import latency_given
from kbs.questions.question import Question

LATENCY, CLOCK = "measured_latency", "boost_clock"
_LATENCY = re.compile(r"\blatenc(?:y|ies)\b|\bhow many (?:cycles|clocks|nanoseconds|ns)\b", re.IGNORECASE)
_IN_FLIGHT = re.compile(
    r"\bin[- ]flight\b|\blittle'?s law\b|\boutstanding (?:\w+ )?(?:loads?|bytes|requests?|memory)\b"
    r"|\bmemory[- ]level parallelism\b"
    r"|\bbytes\b.{0,30}\bsaturate\b|\bsaturate\b.{0,40}\bbytes\b",
    re.IGNORECASE,
)
_ANY = (Form.VALUE, Form.COMPARISON, Form.DIFFERENCE, Form.DEFINITION, Form.CALCULATION, Form.TOPIC, Form.YES_NO)


def latency(question: Question, knowledge: Knowledge) -> Part | None:
    """The latency of each level that a question names; of all where it names none."""
    if not _LATENCY.search(question.read) or not question.products:
        return None
    if not question.levels and question.left(*USES) != ("latency",):
        return None
    said: list[Claim] = []
    gaps: list[str] = []
    for product in question.products:
        found = {spec.qualifier: spec for spec in knowledge.stated(product, LATENCY) if spec.published}
        wanted = question.levels or tuple(found)
        said += [knowledge.spec_claim(found[level]) for level in wanted if level in found]
        if missing := [level for level in wanted if level not in found]:
            gaps.append(f"{knowledge.name(product)}: I found no latency of {_levels(missing)}.")
    uses = (*USES, "measured")
    if not said:
        of = f"{_levels(question.levels)} of " if question.levels else ""
        text = f"Not known: I found no latency of {of}{knowledge.names(question.products)}."
        return Part((Claim(text, ClaimKind.ABSENCE),), uses, _ANY, gaps=tuple(gaps), refusal="not_in_wiki", whole=True)
    return Part(tuple(said), uses, _ANY, gaps=tuple(gaps), whole=True)


def _levels(levels: Sequence[str]) -> str:
    return join(["shared memory" if level == "shared" else level for level in levels])


def bytes_in_flight(question: Question, knowledge: Knowledge) -> Part | None:
    """Little's law: the bytes that must be on their way to saturate the memory are its bandwidth times its latency."""
    if not _IN_FLIGHT.search(question.read) or not question.products:
        return None
    said: list[Claim] = []
    facts: list[Claim] = []
    gaps: list[str] = []
    for product in question.products:
        made = _in_flight(product, knowledge, latency_given(question.read))
        if isinstance(made, str):
            gaps.append(made)
            continue
        claim, used = made
        said.append(claim)
        facts += [knowledge.spec_claim(spec) for spec in used]
    forms = (*_ANY, Form.HOW_TO, Form.REMEDY)
    if not said:
        direct = tuple(Claim(f"Not known: {gap}", ClaimKind.ABSENCE) for gap in gaps)
        return Part(direct, USES, forms, refusal="not_in_wiki", whole=True)
    return Part(tuple(said), USES, forms, parts({"Hardware facts": facts}), tuple(gaps), whole=True)


def _in_flight(
    product: str, knowledge: Knowledge, given: tuple[str, Quantity] | None
) -> tuple[Claim, list[Spec]] | str:
    """The sum for one GPU with the rows that it rests on, by the latency that the question gives or else the measured
    one; or what is missing for it."""
    terms, name = knowledge.vocabulary, knowledge.name(product)
    bandwidth = usable(knowledge.about(product), product, "hbm_bandwidth", terms)
    cycles = next((s for s in knowledge.of(product, LATENCY) if s.qualifier == "DRAM" and s.published), None)
    clocks = [s for s in knowledge.of(product, CLOCK) if s.published and s.base(terms)]
    sms = usable(knowledge.about(product), product, "sm_count", terms)
    needed = [("hbm_bandwidth", bandwidth)]
    if given is None:
        needed.append((LATENCY, cycles))
    if given is None or given[1].unit.dimension == "cycles":
        needed.append((CLOCK, clocks[0] if clocks else None))
    missing = [terms.metrics[metric].name for metric, found in needed if found is None]
    if bandwidth is None or missing:
        return f"{name}: its bytes in flight need its {join(missing)}, of which I found no line."
    used = [bandwidth]
    rate, total = bandwidth.base(terms) or Decimal(0), Decimal(0)
    expression = f"{bandwidth.value} {bandwidth.unit}"
    if given is not None:
        expression += f" × {given[0]}"
        total = rate * given[1].base
    elif cycles is not None:
        expression += f" × {cycles.value} {cycles.unit}"
        total = rate * (cycles.base(terms) or Decimal(0))
        used.append(cycles)
    if given is None or given[1].unit.dimension == "cycles":
        clock = max(clocks, key=lambda spec: spec.base(terms) or Decimal(0))
        expression += f" / {clock.value} {clock.unit}"
        total /= clock.base(terms) or Decimal(1)
        used.append(clock)
    shown = f"{expression} = {format_number(total / 1000)} kB"
    steps = [Step("bytes in flight", expression, total, "B", shown)]
    needed_bytes = f"{format_number(total / 1000)} kB"
    text = f"{name} needs {needed_bytes} in flight to reach its bandwidth, by bandwidth × latency: {shown}"
    if sms is not None and (count := sms.base(terms)):
        each = f"{expression} / {sms.value} SMs"  # not of the rounded sum, which would make another figure of it
        share = f"{each} = {format_number(total / 1000 / count)} kB"
        steps.append(Step("bytes in flight of each SM", each, total / count, "B", share))
        text += f"; {share} of each SM"
        used.append(sms)
    return Claim(f"{text}.", ClaimKind.DERIVED, tuple(s.citation for s in used), tuple(steps), subject=product), used
