"""Several questions in one text: each answered by itself, the answers put together."""

from __future__ import annotations

from collections.abc import Sequence

from kbs.answers.model import FINAL, Answer, Section
from kbs.questions.question import Question


def stands_alone(question: Question) -> bool:
    """Whether a further question of a text asks for something of its own; "how can I fix it?" belongs to the one
    before."""
    asks = (question.metrics, question.symptoms, question.techniques, question.bottlenecks, question.identifiers)
    return any(asks) or (bool(question.products or question.operation) and len(question.left()) > 1)


def together(asked: Question, questions: Sequence[Question], answers: Sequence[Answer]) -> Answer:
    """One answer: that of the first question which has one leads, else the first that is sure; each other stands under
    its question."""
    # What is known to be unanswerable says more than sections that may be near.
    order = sorted(range(len(answers)), key=lambda at: (answers[at].abstained, answers[at].reason not in FINAL))
    lead = answers[order[0]]
    made = Answer(asked.text, lead.form, abstained=lead.abstained, reason=lead.reason, hits=lead.hits, asked=lead.asked)
    made.sections = list(lead.sections)
    for place in order[1:]:
        other = answers[place]
        for section in other.sections:
            made.sections.append(Section(section.title or questions[place].text, section.claims))
    # What two questions are answered with is said once.
    said = {claim.text for section in lead.sections for claim in section.claims if claim.citations}
    made.sections[len(lead.sections) :] = [
        Section(section.title, kept)
        for section in made.sections[len(lead.sections) :]
        if (kept := tuple(claim for claim in section.claims if claim.text not in said))
    ]
    # The answer to each question stands before the reasons of any.
    titles = {question.text for question in questions}
    own = [section for section in made.sections[1:] if section.title in titles]
    made.sections = [*made.sections[:1], *own, *(s for s in made.sections[1:] if s.title not in titles)]
    for answer in answers:
        made.gaps += [gap for gap in answer.gaps if gap not in made.gaps]
        made.warnings += [warning for warning in answer.warnings if warning not in made.warnings]
        made.read += [read for read in answer.read if read not in made.read]
        made.dropped += answer.dropped
    for place in order:
        made.experiments += [one for one in answers[place].experiments if one not in made.experiments]
    return made
