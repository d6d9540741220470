"""Turns a question into a checked answer without a language model, or says that it cannot.

Every solver that has what it needs says its part. The answer leads with the part that accounts for most of the
question's words in the form that was asked, or with the section of a page that answers just that question; the others
follow as reasons. What nothing accounts for is said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kbs.answers.calculation import TO_TRY
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import FINAL, Answer, Claim, ClaimKind, KernelPart, Section
from kbs.answers.premises import wrong_premise
from kbs.answers.sections import (
    HIGH,
    MIDDLE,
    PARTIAL,
    PREFERRED,
    VERDICT,
    certainty,
    fitting,
    is_note,
    offer,
    plainly,
    said_by,
    section_answers,
    stand_beside,
)
from kbs.answers.solvers import comparison, memory, occupancy, remedies, roofline, specs, sums, tools
from kbs.answers.solvers.definition import definition
from kbs.answers.solvers.part import Part, fit
from kbs.answers.verify import verify
from kbs.evidence.checking import Library
from kbs.evidence.file_evidence import EvidenceCheck, FileEvidence, NoEvidence
from kbs.index.sections import SectionHit, SectionResult
from kbs.questions.forms import Form, wants_account
from kbs.questions.question import Question
from kbs.questions.spelling import is_talk

if TYPE_CHECKING:
    from kbs.experience.log_evidence import LogEvidence

Solver = Callable[[Question, Knowledge], Part | None]
SOLVERS: tuple[Solver, ...] = (
    occupancy.filling,
    memory.bytes_in_flight,
    memory.latency,
    sums.named_limit,
    sums.total_time,
    sums.tensor_bytes,
    comparison.comparison,
    roofline.ridge,
    roofline.achieved,
    sums.rate,
    roofline.roofline,
    tools.meaning,
    specs.specs,
    remedies.measured,
    remedies.remedies,
)
"""In the order of preference where two account for as much."""
_REPEATED = 300
"""Characters."""
LEADS = 0.75
"""A part that accounts for at least this share of the question leads the answer."""
STANDS = 0.5
"""A part that accounts for at least this share leads where no section answers, and else stands beside it."""
NOTED = 0.45
"""From this score on a section of notes is shown beside what the wiki says: it has no asks to be found by."""
SURE = 0.97
"""A part that accounts for all leads even where a section would be the natural form."""
NOT_IN_WIKI = "not_in_wiki"
"""The reason where no line was found; a section may still say it."""
MOST_TO_TRY = 9
"""Techniques listed for a kernel, those against its own symptoms first."""
BY_WIKI = "What the wiki says"
BY_NOTES = "What your notes say"
COMPUTED = "What can be computed"
OF_THE_KNOWN = "What is known of those beside it"
TALK = 0.25
"""What an ordinary word weighs of what a word of the field does."""
_LITERAL = re.compile(r"0x[0-9a-f]+|\d[\d.,x_]*[a-z%]{0,6}(?:_s)?")
_FILLER = re.compile(r"(?:do|does|did|is|are|was|were|could|would|should|has|have|had)n|wonder\w*|inquire\w*")
_VALUES = (Form.VALUE, Form.YES_NO, Form.COMPARISON, Form.CALCULATION)
_EXPLAINED = (Form.REASON, Form.REMEDY, Form.HOW_TO)
"""Forms that no value answers: what is wrong about one, or not known of a GPU, is no reason to stop."""


def compose(
    question: Question,
    knowledge: Knowledge,
    library: Library,
    overrides: Sequence[str] = (),
    *,
    kernel: KernelPart | None = None,
    evidence: EvidenceCheck | None = None,
    past: LogEvidence | None = None,
) -> Answer:
    """Answer a question from the evidence; every claim was checked against its cited lines when this returns.

    `kernel` is what the user's own files, `evidence`, say of their kernel: it comes first. `past` is the experience log
    where it has records.
    """
    answer = Answer(question.text, question.form.value)
    answer.warnings += overrides
    answer.read += [f"read “{typed}” as “{read}”" for typed, read in question.corrections]
    _answer(question, knowledge, answer, past)
    if kernel is not None:
        _put_first(kernel, answer)
    if past is not None and question.form is not Form.EXPERIENCE and not answer.abstained:
        from kbs.answers.solvers.experience import (
            similar_outcomes,  # only where there is a log: a question starts sooner
        )

        similar_outcomes(question, past, answer)
    _say_once(answer)
    verify(answer, library, knowledge.vocabulary, _Evidence(evidence or NoEvidence(), past))
    return answer


def _say_once(answer: Answer) -> None:
    """Leave out what was said before."""
    said: set[tuple[str, tuple[object, ...]]] = set()
    kept: list[Section] = []
    for section in answer.sections:
        claims = []
        for claim in section.claims:
            key = (claim.text, claim.citations)
            if key not in said or not claim.citations:
                claims.append(claim)
            said.add(key)
        if claims:
            kept.append(Section(section.title, tuple(claims)))
    answer.sections = kept


@dataclass(frozen=True)
class _Evidence:
    """The user's own files, and the experience log."""

    files: EvidenceCheck
    past: LogEvidence | None

    def why_not(self, item: FileEvidence) -> str:
        """Why the evidence does not state what the item says; "" where it does."""
        if item.kind not in ("log", "tally"):
            return self.files.why_not(item)
        return self.past.why_not(item) if self.past is not None else "there is no experience log"


def _put_first(kernel: KernelPart, answer: Answer) -> None:
    """What is said of the kernel, then what the wiki says; sections of one name become one.

    Where the wiki has no answer and the kernel's files have one, that is the answer.
    """
    answer.gaps = [*kernel.gaps, *answer.gaps]
    answer.taken += kernel.taken
    if answer.abstained and (answer.reason in FINAL or not kernel.direct):
        answer.sections += kernel.sections
        return
    if answer.abstained:
        answer.gaps += [claim.text for claim in answer.sections[0].claims]
        answer.sections = answer.sections[1:]
        answer.abstained, answer.reason = False, ""
    own = [*([Section("", kernel.direct)] if kernel.direct else []), *kernel.sections]
    by = BY_NOTES if is_note([claim for s in answer.sections[:1] for claim in s.claims]) else BY_WIKI
    general = [Section(s.title or (by if kernel.direct else ""), s.claims) for s in answer.sections]
    if not kernel.direct and general:
        own, general = [general[0], *own], general[1:]
    merged: dict[str, dict[str, Claim]] = {}
    for section in (*own, *general):
        kept = merged.setdefault(section.title, {})
        for claim in section.claims:
            kept.setdefault(_key(section.title, claim), claim)
    answer.sections = [
        Section(title, tuple(claims.values())[: MOST_TO_TRY if title == TO_TRY else None])
        for title, claims in merged.items()
    ]


def _key(title: str, claim: Claim) -> str:
    """What is said once only: a technique by its id or page, anything else by its words."""
    technique = claim.subject.rpartition("/")[2] if title == TO_TRY else ""
    return technique or claim.text


def _answer(question: Question, knowledge: Knowledge, answer: Answer, past: LogEvidence | None) -> None:
    weights = _weights(question, knowledge)
    alone = question.unknown_products and not (question.products or question.architectures)
    explains = question.form in _EXPLAINED
    of_it = not explains and _of_hardware(question) and not _asks_more(question, weights)
    if alone and (of_it or not question.left()):
        _unknown(question, knowledge, answer)
        return
    if question.unknown_products and question.form is Form.COMPARISON and not _asks_more(question, weights):
        _unknown(question, knowledge, answer)  # nothing can be held against it
        if question.metrics and (values := specs.specs(question, knowledge)) is not None and not values.refusal:
            answer.add(OF_THE_KNOWN, values.direct)
        return
    for name in question.unknown_products:
        answer.read.append(f"no GPU named {name} is known")
        answer.gaps.append(f"kopt knows no GPU named {name}: nothing here is about it.{_nearest(name, knowledge)}")
    if question.form is Form.EXPERIENCE:
        from kbs.answers.solvers.experience import answer_from_experience  # as above

        answer_from_experience(question, knowledge, past, answer)
        return
    if question.products and wrong_premise(
        question, knowledge, answer, measured=explains or wants_account(question.read)
    ):
        values = specs.specs(question, knowledge) if len(question.metrics) > 1 else None
        if values is not None and not values.refusal:  # the other values that it asks for
            answer.sections.insert(1, Section("", values.direct))
        if explains or _asks_more(question, weights):
            hits = fitting(knowledge.searcher(question).pages, question, knowledge, weights)
            if certainty(hits) >= HIGH:
                direct, rest = said_by(hits[0], question, knowledge, weights)
                answer.sections.insert(1, Section(hits[0].section.heading, (*direct, *rest)))
        return
    made = [part for solver in SOLVERS if (part := solver(question, knowledge)) is not None]
    if (defined := definition(question, knowledge)) is not None:
        made.insert(0, Part((defined,), (), (Form.DEFINITION, Form.VALUE), whole=True))
    scored = sorted(((fit(part, question, weights), part) for part in made), key=lambda pair: -pair[0])
    best, lead = scored[0] if scored else (0.0, None)
    undocumented = [product for product in question.products if product not in knowledge.documented]
    if undocumented and (lead is None or lead.refusal) and _of_hardware(question) and not _asks_more(question, weights):
        _no_page(undocumented, knowledge, answer)
        return
    if lead is not None and best >= LEADS and _is_value(lead, question):
        _lead_with(lead, answer)  # no search is needed for a value
        return
    found = knowledge.searcher(question)
    answer.hits = found.passages.hits
    answer.asked += found.asked
    answer.warnings += [f"degraded: {reason}" for reason in found.degraded]
    hits = fitting(found.pages, question, knowledge, weights)
    score, certain = (hits[0].score if hits else 0.0), certainty(hits) >= HIGH
    for product in undocumented:
        capability, target = knowledge.capability(product), knowledge.target(product)
        beside = f"what {knowledge.name(target)} has, its target" if target else "what holds beside it"
        beside = f"what {knowledge.name(capability)} has, its compute capability" if capability else beside
        answer.gaps.append(f"No page is about {knowledge.name(product)}: this is {beside}.")
    prefers = (
        question.form in (*PREFERRED, Form.COMPARISON) and best < SURE and not (lead and specs.SUPPORT in lead.uses)
    )
    if lead is not None and best >= LEADS and not lead.refusal and not (prefers and certain):
        _lead_with(lead, answer)
        if certain:
            stand_beside(question, knowledge, hits[0], weights, answer)
    elif certain and not (lead is not None and best >= LEADS and lead.refusal not in ("", NOT_IN_WIKI)):
        section_answers(question, knowledge, hits, weights, answer)
    elif lead is not None and best >= _least(lead, question):
        _lead_with(lead, answer)
        _say_left(question, lead, weights, answer)
    elif score >= MIDDLE and not all(_strange(question, knowledge, found)):
        offer(question, knowledge, hits, weights, answer)
    elif lead is not None and best >= STANDS and not lead.refusal:
        _lead_with(lead, answer)
        _say_left(question, lead, weights, answer)
    else:
        _refuse(question, knowledge, lead if best >= STANDS else None, found, hits, answer)
    if answer.abstained:
        _from_notes(question, knowledge, answer)
    if answer.abstained and answer.reason != PARTIAL:
        return
    _add_others(question, knowledge, scored, answer)
    noted = knowledge.notes(question)
    for hit in noted.pages[:1]:
        if hit.score >= NOTED:
            direct, rest = said_by(hit, question, knowledge, weights)
            answer.add(BY_NOTES, [*direct, *rest])


def _of_hardware(question: Question) -> bool:
    """Whether the answer depends on the GPU that is asked about."""
    return bool(question.form in _VALUES or question.metrics or question.dtype or not question.left())


def _is_value(part: Part, question: Question) -> bool:
    """Whether a part states a value that was asked for, and no reason, and needs nothing beside it. Where two GPUs are
    named and no metric, it is an overview, and a section may say better what sets them apart."""
    asked = question.form in (Form.VALUE, Form.YES_NO, Form.TOPIC, Form.COMPARISON)
    overview = question.form is Form.COMPARISON and not (question.metrics or question.dtype or question.bottlenecks)
    return asked and not (part.refusal or question.operation or overview) and set(specs.USES).issuperset(part.uses)


def _least(part: Part, question: Question) -> float:
    """What a part must account for where a section could be shown in its place, and none answers for certain: a value
    that was asked for or that decides about a number of the question half, a "no" nearly all."""
    looked_up = question.form in (Form.VALUE, Form.COMPARISON, Form.TOPIC) and _is_value(part, question)
    decided = question.form is Form.YES_NO and question.premises and VERDICT.match(part.direct[0].text)
    return STANDS if looked_up or decided else LEADS


def _asks_more(question: Question, weights: Mapping[str, float]) -> bool:
    """Whether most of what is asked is no value of a GPU."""
    every = sum(weights.get(word, 0.0) for word in question.left())
    left = sum(weights.get(word, 0.0) for word in question.left(*specs.USES, specs.SUPPORT))
    return left > STANDS * every


def _lead_with(part: Part, answer: Answer) -> None:
    answer.abstained, answer.reason = bool(part.refusal), part.refusal
    answer.add("", part.direct)
    answer.sections += part.sections
    answer.gaps += part.gaps


def _say_left(question: Question, part: Part, weights: Mapping[str, float], answer: Answer) -> None:
    """What a part leaves of the question, said to the user."""
    left = [word for word in dict.fromkeys(question.left(*part.uses)) if weights.get(word)]
    if left and not part.whole:
        answer.gaps.append(f"Not looked at in this answer: {', '.join(left)}.")


def _refuse(
    question: Question,
    knowledge: Knowledge,
    part: Part | None,
    found: SectionResult,
    hits: Sequence[SectionHit],
    answer: Answer,
) -> None:
    """Nothing answers: the words that are not known, or what was looked for and not found."""
    if part is not None and part.refusal:
        _lead_with(part, answer)
        return
    answer.abstained = True
    terms = _subject(found, knowledge)
    unknown, strange = _strange(question, knowledge, found)
    if strange:
        answer.reason = "not_understood"
        said = f" I do not know {_some(', '.join(unknown))}." if unknown else ""
        text = f"Not understood.{said} Ask about GPUs and their kernels, such as “why is my transpose memory-bound”."
        answer.add("", [Claim(text, ClaimKind.ABSENCE)])
    else:
        answer.reason = "not_in_wiki"
        what = _some(", ".join(unknown or terms) or "this")
        answer.add("", [Claim(f"Not known: I found no line about {what}.", ClaimKind.ABSENCE)])
        if hits:
            nearest = dict.fromkeys(hit.section.title for hit in hits[:3])
            answer.gaps.append(f"The nearest pages are {', '.join(nearest)}.")
    answer.gaps.append(f"Looked for: {_some(', '.join(terms) or question.text)}.")


def _some(text: str) -> str:
    """Words of the question as an answer repeats them: not all of a page that was pasted."""
    return text if len(text) <= _REPEATED else f"{text[:_REPEATED]} …"


def _strange(question: Question, knowledge: Knowledge, found: SectionResult) -> tuple[list[str], bool]:
    """(words of the question that no page has; whether they are half of it or more, and no slot is filled)."""
    terms = [term for term in found.terms if len(term) > 1]
    named = _subject(found, knowledge)
    unknown = [term for term in named if not knowledge.store.word_frequency(term, knowledge.reviewed)]
    slots = any((question.products, question.operation, question.metrics, question.symptoms, question.techniques))
    return unknown, not slots and (len(unknown) * 2 >= len(terms) or not named)


def _subject(found: SectionResult, knowledge: Knowledge) -> list[str]:
    """The words that were looked for, without filler and the asker's own numbers and literals, and without ordinary
    words where others are left."""
    said = [term for term in found.terms if len(term) > 1 and not (_LITERAL.fullmatch(term) or _FILLER.fullmatch(term))]
    return [term for term in said if not is_talk(term, knowledge.vocabulary)] or said


def _from_notes(question: Question, knowledge: Knowledge, answer: Answer) -> None:
    """An answer of notes where the wiki has none, which is said too. Notes answer no question for a hardware value."""
    if answer.reason not in (PARTIAL, "not_in_wiki", "not_understood") or question.metrics:
        return
    hits = [hit for hit in knowledge.notes(question).pages if hit.score >= MIDDLE]
    if not hits:
        return
    why = answer.direct
    answer.abstained, answer.reason, answer.sections = False, "", []
    direct, rest = said_by(hits[0], question, knowledge, _weights(question, knowledge))
    answer.add("", direct)
    answer.add(BY_NOTES, rest)
    answer.gaps.append(f"Only notes answer this. {why}")


def _add_others(question: Question, knowledge: Knowledge, scored: Sequence[tuple[float, Part]], answer: Answer) -> None:
    """What else bears on the question: sums and values that account for half of it, thresholds, and what to try."""
    said = {claim.text for claim in answer.claims}

    def fresh(claims: Sequence[Claim]) -> list[Claim]:
        kept = [claim for claim in claims if claim.text not in said]
        said.update(claim.text for claim in kept)
        return kept

    have = {section.title for section in answer.sections}
    for score, part in scored:
        if score >= STANDS and not part.refusal and set(part.direct).isdisjoint(answer.claims):
            if not part.forms:
                continue  # advice has a section of its own
            answer.add(COMPUTED, fresh(plainly(part.direct)))  # a yes or no is the answer to the whole, or none
    if question.form in (Form.REASON, Form.REMEDY, Form.DEFINITION, Form.TOPIC):
        answer.add("Thresholds", fresh(remedies.thresholds(question, knowledge)))
    if question.form in (Form.REASON, Form.REMEDY, Form.HOW_TO) and TO_TRY not in have:
        advice = remedies.remedies(question, knowledge)
        if advice is not None:
            answer.add(TO_TRY, fresh([*advice.direct, *(claim for one in advice.sections for claim in one.claims)]))


def _weights(question: Question, knowledge: Knowledge) -> dict[str, float]:
    """Weight of each word of the question: rare words say more, and ordinary ones that name nothing of GPUs little. A
    word that no passage has weighs most."""
    rare = knowledge.reviewed
    total = max(knowledge.store.passage_count(rare if rare.filtered else None), 1)
    return {
        word: math.log((total + 1) / (knowledge.store.word_frequency(word, rare) + 0.5))
        * (TALK if is_talk(word, knowledge.vocabulary) else 1)
        for word in dict.fromkeys(question.left(everywhere=True))
    }


def _unknown(question: Question, knowledge: Knowledge, answer: Answer) -> None:
    answer.abstained, answer.reason = True, "unknown_product"
    for name in question.unknown_products:
        claim = Claim(f"Not known: kopt knows no GPU named {name}.{_nearest(name, knowledge)}", ClaimKind.ABSENCE)
        answer.add("", [claim])
        answer.gaps.append(f"unknown product: {name}")


def _nearest(name: str, knowledge: Knowledge) -> str:
    near = knowledge.vocabulary.nearest_products(name, knowledge.documented)
    return f" The nearest known ones are {knowledge.names(near)}." if near else ""


def _no_page(products: Sequence[str], knowledge: Knowledge, answer: Answer) -> None:
    answer.abstained, answer.reason = True, "not_in_wiki"
    terms = knowledge.vocabulary
    text = f"Not known: the wiki has no page about {knowledge.names(list(products))}."
    for architecture in dict.fromkeys(terms.products[product].architecture for product in products):
        akin = [p for p in knowledge.documented if architecture and terms.products[p].architecture == architecture]
        if akin:
            text += f" Of its architecture, {terms.architectures[architecture].name}, it has {knowledge.names(akin)}."
    answer.add("", [Claim(text, ClaimKind.ABSENCE)])
    answer.gaps += [f"no page: hardware/{product}" for product in products]
