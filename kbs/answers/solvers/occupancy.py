"""How a kernel's registers, threads and shared memory fill an SM: the sums of `kopt occupancy`, for a question."""

from __future__ import annotations

import re
from decimal import Decimal

from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.specs import USES
from kbs.hardware.occupancy import SmLimits, Usage, excesses, occupancy, sm_limits
from kbs.questions.forms import Form
from kbs.questions.numbers import used
from kbs.questions.question import Question

_ABOUT = re.compile(
    r"\boccupan\w+|\bresident\b|\bactive (?:warps|blocks)|\b(?:blocks|warps|ctas)\b.{0,40}\b(?:fit|per sm|on an? sm)\b"
    r"|\bfit\b.{0,30}\b(?:sm|multiprocessor)\b",
    re.IGNORECASE,
)
THREADS = 256
"""Threads of a block, where the question gives none."""
_FORMS = (Form.VALUE, Form.CALCULATION, Form.REASON, Form.YES_NO, Form.TOPIC, Form.DEFINITION, Form.REMEDY)


def filling(question: Question, knowledge: Knowledge) -> Part | None:
    """Blocks and warps of an SM, and which resource limits them, for what the question says that a kernel uses."""
    if not (question.given and question.products):
        return None
    if not (_ABOUT.search(question.read) or "occupancy-bound" in question.bottlenecks):
        return None
    usage = Usage(
        question.given.get("threads", THREADS), question.given.get("registers", 0), question.given.get("shared", 0)
    )
    said: list[Claim] = []
    facts: dict[str, Claim] = {}
    gaps: list[str] = []
    for capability in dict.fromkeys(knowledge.capability(product) or product for product in question.products):
        limits = sm_limits(knowledge.about(capability), capability, knowledge.vocabulary)
        if isinstance(limits, list):
            gaps.append(f"{knowledge.name(capability)}: I found no line about what an SM of it can hold.")
            continue
        name = knowledge.name(capability)
        if beyond := excesses(usage, limits):
            one = beyond[0]
            text = f"{name} cannot launch such a block: {one.value:,} {one.what}, and its limit is {one.limit:,}."
            step = Step(
                "limit", used(question.given), Decimal(one.limit), one.what, f"{one.value:,} against {one.limit:,}"
            )
            said.append(Claim(text, ClaimKind.DERIVED, (limits.specs[one.metric].citation,), (step,)))
            continue
        said.append(_claim(name, usage, limits, question))
        for limit in occupancy(usage, limits).limits:
            for metric in limit.metrics if limit.limiting else ():
                facts.setdefault(metric, knowledge.spec_claim(limits.specs[metric]))
    if not said:
        return None
    if "threads" not in question.given:
        gaps.append(f"The question does not say how many threads a block has, so {THREADS} were taken.")
    uses = (*USES, "symptom", "bottleneck", "identifier")
    return Part(
        tuple(said), uses, _FORMS, parts({"Limits of the hardware": list(facts.values())}), tuple(gaps), whole=True
    )


def _claim(name: str, usage: Usage, limits: SmLimits, question: Question) -> Claim:
    found = occupancy(usage, limits)
    limiting = [limit for limit in found.limits if limit.limiting]
    share = Decimal(100 * found.warps) / found.max_warps
    expression = f"{found.blocks} × {found.warps_per_block} / {found.max_warps} × 100"
    steps = [Step("occupancy", expression, share / 100, "%", f"{expression} = {_percent(share)}")]
    # What is rounded is no equation that can be checked as one; the calculator's own tests hold it.
    rounded = "; ".join(limit.arithmetic.replace(" = ", " is ") for limit in limiting)
    said = used({"threads": usage.threads, **question.given})
    steps.append(Step("limit", said, Decimal(found.blocks), "blocks", f"{said}: {rounded}"))
    text = (
        f"{_percent(share)} % occupancy on {name}: with {said}, {found.blocks} blocks fit an SM,"
        f" {found.warps} of {found.max_warps} warps ({steps[0].shown}), limited by"
        f" {join([limit.resource for limit in limiting])}: {rounded}."
    )
    steps.append(Step("warps", "", Decimal(found.warps), "warps", f"{found.warps} warps"))
    metrics = {metric for limit in limiting for metric in limit.metrics} | {"max_warps_per_sm", "warp_size"}
    needs = [f"one block more fits with at most {n.at_most:,} {n.what}" for n in found.needs if n.at_most is not None]
    citations = tuple(limits.specs[metric].citation for metric in sorted(metrics))
    return Claim(text, ClaimKind.DERIVED, citations, tuple(steps), note="; ".join(needs))


def _percent(share: Decimal) -> str:
    """To two places, without zeros at the end: 93.75, 50."""
    return f"{share.quantize(Decimal('0.01')).normalize():f}"
