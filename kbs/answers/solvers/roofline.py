"""What bounds an operation on a GPU, its least time, ridge points, and what share of a peak was reached."""

from __future__ import annotations

import re

from kbs.answers.calculation import answer_operation, answer_ridge, share_of_peak
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Answer, Claim
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.specs import USES
from kbs.questions.forms import Form
from kbs.questions.question import Question

_RIDGE = re.compile(r"\b(?:ridge|roofline|intensity|machine balance)\b", re.IGNORECASE)
_HOW_GOOD = re.compile(
    r"\bgood\b|\bbad\b|\bpercent(?:age)?\b|%|\bhow (?:close|far)\b|\bpeak\b|\befficien\w+|\broom\b|\bnormal\b"
    r"|\bok(?:ay)?\b|\bonly\b",
    re.IGNORECASE,
)
_MESSAGE = re.compile(r"\b\w*(?:Error|Exception)\b:?|\berrors?:|\bnot supported\b|\bonly supports?\b")
"""What a tool refuses is no matter of what bounds the operation."""
_BOUNDS = re.compile(r"\b(?:\w+[- ])?bound\b|\blimit(?:s|ed)?\b|\bbottleneck\b", re.IGNORECASE)


def roofline(question: Question, knowledge: Knowledge) -> Part | None:
    """What bounds the operation of the question by what every kernel of it must move and compute."""
    if not question.operation or _MESSAGE.search(question.read):
        return None
    timed = question.form is Form.CALCULATION or (len(question.named) > 1 and question.form is Form.COMPARISON)
    made = Answer(question.text)
    if not answer_operation(question, knowledge, made, with_time=timed or bool(question.dims)):
        return None
    uses = (*USES, "operation", "bottleneck", "number")
    forms = {Form.REASON, Form.CALCULATION, Form.TOPIC, Form.COMPARISON}
    if _BOUNDS.search(question.read) or question.bottlenecks:
        forms |= {Form.YES_NO, Form.VALUE}
    return Part(made.sections[0].claims, uses, forms, tuple(made.sections[1:]), tuple(made.gaps))


def ridge(question: Question, knowledge: Knowledge) -> Part | None:
    """The ridge point of GPUs, with no operation named."""
    if question.operation or not question.products or not _RIDGE.search(question.read):
        return None
    made = Answer(question.text)
    if not answer_ridge(question, knowledge, made):
        return None
    forms = (Form.CALCULATION, Form.VALUE, Form.TOPIC, Form.DEFINITION, Form.COMPARISON)
    return Part(made.sections[0].claims, USES, forms, tuple(made.sections[1:]), tuple(made.gaps), whole=True)


def achieved(question: Question, knowledge: Knowledge) -> Part | None:
    """What share of the peak, and of what was measured elsewhere, a rate is that the question says was reached."""
    given = [premise for premise in question.premises if premise.measured or _HOW_GOOD.search(question.read)]
    if not given or not question.products or question.form in (Form.REMEDY, Form.HOW_TO):
        return None
    claims: list[Claim] = []
    facts: list[Claim] = []
    for product in question.products:
        for premise in given:
            made = share_of_peak(premise, product, knowledge)
            if made is not None and made[0].derivation[0].value != 100:  # that is the peak itself
                claim, specs = made
                claims.append(claim)
                facts += [knowledge.spec_claim(spec) for spec in specs]
    if not claims:
        return None
    forms = (Form.YES_NO, Form.VALUE, Form.CALCULATION, Form.TOPIC)
    return Part(tuple(claims), (*USES, "operation", "measured"), forms, parts({"Hardware facts": facts}))
