"""Answers by sections: whole sections of pages in their order, or the nearest ones offered by their headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kbs.answers.knowledge import NOTE, Knowledge, is_read_by_row, sentences
from kbs.answers.model import Answer, Claim, ClaimKind, Section
from kbs.evidence.passage import Section as PageSection
from kbs.index.sections import SECTION_WORDS, SectionHit
from kbs.questions.forms import Form
from kbs.questions.question import Question

HIGH = 0.8
"""From this certainty on a section answers. Measured: docs/decisions/0047-sections-first.md."""
MIDDLE = 0.45
"""From this score on the nearest sections are offered; below it, nothing is near."""
NAMED = 0.05
"""For each operation, symptom, technique, bottleneck, language or product of the question that the page is about."""
ROWS = 0.1
WORDLESS = 0.3
"""What the words of a section lack of a score where there are no vectors: half of all there could be then answer."""
MISSING = 0.5
_STEM = 6
"""Letters in which two forms of a word agree."""
OFFERED = 3
"""Sections that are shown where none answers for certain."""
_POINTS = re.compile(
    r"\b(?:stands?|is|are) (?:told )?on (?:the page of )?\[[^\]]*\]\([^)]*\.md|\b[Ss]ee \[[^\]]*\]\([^)]*\.md"
)
"""A sentence that only says on which page something stands."""
CLEARLY = 0.3
"""How much more of the weight of a question's words a later sentence of a section has that leads in place of the first.
From 0.2 to 0.35 it makes no difference on the development questions (52.0 % right of 415; without it 50.8 %)."""
VERDICT = re.compile(r"^(?:Yes|No)[:,] ")
"""How a sentence begins that answers with yes or no."""
SAME = 0.85
"""From this cosine on, a question asks what the heading or an ask of a section does."""
LONGEST = 12
"""Sentences of a section that are quoted."""
CLOSE = 0.15
"""A second section that scores so little less is shown too."""
TIED = 0.05
"""Two sections whose scores differ by so little are as likely to be the one that is asked for."""
PARTIAL = "partial"
"""The reason of an answer that only shows what is near."""
LEADING = 3
"""Sentences of a section that may stand before all others: of 289 development questions for which a section was shown,
159 had all that they wanted, at its place, with three, and 144 with one."""


def fitting(
    hits: Sequence[SectionHit], question: Question, knowledge: Knowledge, weights: Mapping[str, float]
) -> list[SectionHit]:
    """The sections that are of no other product, operation or cause than the question is, best first: one that is about
    what the question names goes before one that is not. `weights`: of the words of the question."""
    kept = [
        replace(
            hit,
            score=hit.score
            + _about(hit.section, question)
            - _data(hit.section)
            - _missing(hit, question, knowledge, weights),
        )
        for hit in hits
    ]
    if not any(hit.dense for hit in hits):  # no vectors: the words alone have to say it
        kept = [replace(hit, score=hit.score - SECTION_WORDS * hit.words + WORDLESS + hit.words) for hit in kept]
    return sorted((hit for hit in kept if _fits(hit.section, question, knowledge)), key=lambda hit: -hit.score)


def _about(section: PageSection, question: Question) -> float:
    return NAMED * sum(bool(set(ids) & set(section.about.get(facet, ()))) for facet, ids in question.names.items())


def _data(section: PageSection) -> float:
    """What a section loses whose rows are read one by one: solvers answer from these."""
    lines = [line for passage in section.passages for line in passage.text.split("\n")]
    return ROWS if any(is_read_by_row(line) for line in lines) else 0.0


def _missing(hit: SectionHit, question: Question, knowledge: Knowledge, weights: Mapping[str, float]) -> float:
    """What a section loses that has little of what is asked beside the name of a GPU: as much as it lacks, if it is of
    a GPU's page, all of whose sections have the name, or if the question names a value and no more; else only if it has
    no word of a question for a value."""
    wanted = {word: weight for word in question.left("product") if (weight := weights.get(word))}
    text = " ".join([hit.section.heading, *hit.section.asks, *(one.text for one in hit.section.passages)])
    if not wanted:
        return 0.0
    lacks = 1 - _share(wanted, text)
    value_named = question.form is Form.TOPIC and question.products and question.metrics
    if value_named or hit.section.about.get("kind", ("",))[0] == "hardware":
        return MISSING * lacks
    if question.form is not Form.VALUE or not question.products:
        return 0.0
    other = any(ids for facet, ids in question.names.items() if facet != "product")
    if not (other or question.metrics or question.identifiers):
        # What a GPU has: only what is said of it answers.
        return MISSING * (
            1 - _share(wanted, " ".join(one.text for one in claims_of(hit.section) if _names(one, question, knowledge)))
        )
    return MISSING if lacks == 1 else 0.0


def _names(claim: Claim, question: Question, knowledge: Knowledge) -> bool:
    """Whether a sentence names a GPU of the question, or its architecture."""
    found = knowledge.vocabulary.find(claim.text)
    architectures = {knowledge.vocabulary.products[product].architecture for product in question.products}
    return any(
        (mention.kind == "architecture" and mention.id in architectures)
        or (mention.kind == "product" and mention.id in question.products)
        or (mention.kind == "family" and set(knowledge.vocabulary.family_members(mention.id)) & set(question.products))
        for mention in found
    )


def _fits(section: PageSection, question: Question, knowledge: Knowledge) -> bool:
    about = section.about
    kind = about.get("kind", ("",))[0]
    if of_others(section.heading, question, knowledge) or _of_other_vendor(section, question, knowledge):
        return False
    operations = about.get("operation", ())
    if kind == "kernel" and question.operation and operations and question.operation not in operations:
        return False
    if all(_is_row(claim) or of_others(claim.text, question, knowledge) for claim in claims_of(section)):
        return False
    if kind == "hardware":
        return bool(section.asks) and _of_these_products(section, question, knowledge)
    return True


def _of_other_vendor(section: PageSection, question: Question, knowledge: Knowledge) -> bool:
    """Whether a page is about GPUs of another vendor than those of the question, which GPUs or words of a vendor alone
    tell. Pages for the vendor of most GPUs say what holds for the others too, as far as they name no GPU and none of
    its tools."""
    terms = knowledge.vocabulary
    [(usual, _)] = Counter(product.vendor for product in terms.products.values()).most_common(1)
    mine = {terms.products[product].vendor for product in question.products} or terms.vendors_in(question.read)
    mine -= {usual} if len(mine) > 1 else set()  # who names both moves from the usual one
    here = set(section.about.get("vendor", ()))
    if not mine or not mine.isdisjoint(here):
        return False
    said = " ".join([section.heading, *(one.text for one in section.passages)])
    return bool(here - {usual}) or (
        usual not in mine and usual in (named := terms.vendors_in(said)) and mine.isdisjoint(named)
    )


def of_others(text: str, question: Question, knowledge: Knowledge) -> bool:
    """Whether a text names GPUs, and none of those that the question names; a question that names none is about all."""
    if not (question.products or question.unknown_products):
        return False
    terms = knowledge.vocabulary
    named = {
        product
        for mention in terms.find(text, "product")
        for product in ([mention.id] if mention.kind == "product" else terms.family_members(mention.id))
    }
    mine = knowledge.stands_for(question.products)
    return bool(named) and not named & mine


def _of_these_products(section: PageSection, question: Question, knowledge: Knowledge) -> bool:
    """Whether a page of a GPU is one of those of the question, or of their compute capability. A question that names
    none is answered by no page of one."""
    mine = knowledge.stands_for(question.products)
    here = set(section.about.get("product", ()))
    return bool(here & mine) or (
        not question.products and bool(set(section.about.get("arch", ())) & set(question.architectures))
    )


def claims_of(section: PageSection) -> Iterator[Claim]:
    """What a section says, sentence by sentence."""
    for passage in section.passages:
        if passage.cited is not None:
            yield from (claim for claim in sentences(passage) if not _POINTS.search(claim.citations[0].quote))


def certainty(hits: Sequence[SectionHit]) -> float:
    """How certain it is that the first of some sections answers: its score, and how far the next one lies behind; no
    farther than to `MIDDLE`, below which nothing competes."""
    if len(hits) < 2:
        return hits[0].score if hits else 0.0
    return 2 * hits[0].score - max(hits[1].score, MIDDLE)


def answer_of(
    section: PageSection, question: Question, knowledge: Knowledge, weights: Mapping[str, float]
) -> tuple[list[Claim], list[Claim]]:
    """(up to `LEADING` sentences that answer, the rest in their order), without what is said of other GPUs than those
    of the question. The first sentence answers, unless another has clearly more of what is asked; after it come those
    that have most of the words of the whole text. `weights`: of these words.
    """
    said = [claim for claim in claims_of(section) if not of_others(claim.text, question, knowledge)][:LONGEST]
    places = [place for place, claim in enumerate(said) if not _is_row(claim)] or list(range(len(said)))[:1]
    asked = {word: weight for word in question.left("product") if (weight := weights.get(word))}
    every = {word: weight for word in question.left("product", everywhere=True) if (weight := weights.get(word))}
    share = {place: _share(asked, said[place].text) for place in places}
    best = max(places, key=lambda place: share[place], default=0)
    lead = best if places and share[best] > share[places[0]] + CLEARLY else next(iter(places), 0)
    others = sorted((place for place in places if place != lead), key=lambda at: -_share(every, said[at].text))
    leading = [lead, *others[: LEADING - 1]] if places else []
    return [said[place] for place in leading], [claim for place, claim in enumerate(said) if place not in leading]


def _share(wanted: Mapping[str, float], text: str) -> float:
    """What part of the weight of some words a text has."""
    has = sum(weight for word, weight in wanted.items() if re.search(rf"\b{re.escape(word[:_STEM])}", text.lower()))
    return has / sum(wanted.values()) if wanted else 0.0


def plainly(claims: Sequence[Claim]) -> list[Claim]:
    """Claims without the "Yes:" or "No:" with which they answer the heading of their section: the question is
    another."""
    return [replace(one, text=text[:1].upper() + text[1:]) if (text := VERDICT.sub("", one.text)) != one.text else one
            for one in claims]  # fmt: skip


def _is_row(claim: Claim) -> bool:
    return claim.citations[0].quote.lstrip().startswith("|")


def by_heading(hits: Sequence[SectionHit]) -> list[Claim]:
    """The nearest sections by their headings, each with the command that shows it."""
    return [
        Claim(
            f"{hit.section.heading} ({hit.section.title}): kopt show {hit.section.reference}",
            ClaimKind.ABSENCE,
            (hit.section.citation,) if hit.section.cited else (),
        )
        for hit in hits
    ]


def said_by(
    hit: SectionHit, question: Question, knowledge: Knowledge, weights: Mapping[str, float]
) -> tuple[list[Claim], list[Claim]]:
    """(the sentences of a section that answer, the rest)."""
    direct, rest = answer_of(hit.section, question, knowledge, weights)
    asks_it = question.form is Form.YES_NO and hit.asked >= SAME
    return direct if asks_it else plainly(direct), rest


def section_answers(
    question: Question,
    knowledge: Knowledge,
    hits: Sequence[SectionHit],
    weights: Mapping[str, float],
    answer: Answer,
) -> None:
    """The best section answers. The next one is shown too if it scores nearly as well, and stands in the lead with it
    if the two can hardly be told apart."""
    near = [hit for hit in hits[1:2] if hit.score >= max(MIDDLE, hits[0].score - CLOSE)]
    _show(question, knowledge, [hits[0], *near], weights, answer, together=hits[0].score - TIED)


def _show(
    question: Question,
    knowledge: Knowledge,
    hits: Sequence[SectionHit],
    weights: Mapping[str, float],
    answer: Answer,
    *,
    together: float = 0.0,
    before: Sequence[Claim] = (),
) -> None:
    """What sections say: the sentence that answers of each that scores `together` or more, then what else the first
    says to it, then the rest of each under its heading."""
    said = [said_by(hit, question, knowledge, weights) for hit in hits]
    lead = [direct[:1] if hit.score >= together else [] for hit, (direct, _) in zip(hits, said, strict=True)]
    first = [claim for claims in lead for claim in claims]
    first += said[0][0][1 : 1 + max(0, LEADING - len(first))]
    answer.add("", [*before, *first])
    for hit, (direct, rest) in zip(hits, said, strict=True):
        answer.add(hit.section.heading, [claim for claim in (*direct, *rest) if claim not in first])


def stand_beside(
    question: Question, knowledge: Knowledge, hit: SectionHit, weights: Mapping[str, float], answer: Answer
) -> None:
    """A section that answers too, beside what was computed."""
    said = {claim.citations for claim in answer.claims}
    direct, rest = said_by(hit, question, knowledge, weights)
    answer.sections.insert(
        2, Section(hit.section.heading, tuple(c for c in [*direct, *rest] if c.citations not in said))
    )


def offer(
    question: Question,
    knowledge: Knowledge,
    hits: Sequence[SectionHit],
    weights: Mapping[str, float],
    answer: Answer,
) -> None:
    """No answer is claimed: what the nearest sections say is shown as that, and the next ones by their headings."""
    answer.abstained, answer.reason = True, PARTIAL
    before = [Claim("Not certain that this is what you ask; the nearest sections say:", ClaimKind.ABSENCE)]
    _show(question, knowledge, hits[:OFFERED], weights, answer, before=before)
    answer.add("Also near", by_heading(hits[OFFERED : OFFERED + 1]))


def is_note(claims: Sequence[Claim]) -> bool:
    """Whether what is said stands in notes, which nobody has reviewed."""
    return any(claim.note == NOTE for claim in claims)


PREFERRED = (Form.REASON, Form.REMEDY, Form.HOW_TO, Form.DIFFERENCE, Form.DEFINITION, Form.TOPIC, Form.YES_NO)
"""Forms of question that a section answers rather than a sum or a value."""
