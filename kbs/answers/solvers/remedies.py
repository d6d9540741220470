"""What to try against the bottleneck, symptom or operation of a question, and what others measured with it."""

from __future__ import annotations

from kbs.answers.calculation import MEASURED, TO_TRY, measurement, runs_on
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Claim, ClaimKind
from kbs.answers.solvers.part import Part, parts
from kbs.answers.solvers.tools import THRESHOLDS, threshold_claim
from kbs.evidence.table_rows import AdviceRow, MeasuredRow, ThresholdRow
from kbs.questions.forms import Form
from kbs.questions.question import Question

REMEDIES = 6


def remedies(question: Question, knowledge: Knowledge) -> Part | None:
    """Techniques against the named cause: a symptom first; else the bottleneck, for the operation if one is named."""
    claims = against_symptoms(question, knowledge) or of_operation(question, knowledge)
    if not claims:
        return None
    uses = ("operation", "symptom", "bottleneck", "product", "dtype")
    return Part(tuple(claims[:1]), uses, (), parts({TO_TRY: claims[1:]}))


def against_symptoms(question: Question, knowledge: Knowledge) -> list[Claim]:
    """What the techniques do whose pages name a symptom of the question, or that its own page names."""
    leads = [knowledge.lead(page) for symptom in question.symptoms for page in knowledge.techniques_against(symptom)]
    advised = [] if leads else [row for symptom in question.symptoms for row in knowledge.advice_against(symptom)]
    rows = [_advice(row, knowledge) for row in advised if _fits(row, question, knowledge)]
    return list(dict.fromkeys([*(lead for lead in leads if lead is not None), *rows]))[:REMEDIES]


def of_operation(question: Question, knowledge: Knowledge) -> list[Claim]:
    """Techniques of the operation's own page, best first; those against the bottleneck that the question names, where
    it names one; without an operation, those of the page of the bottleneck."""
    rows: list[AdviceRow] = []
    if question.operation:
        rows += knowledge.store.rows("advice", page_id=knowledge.vocabulary.operations[question.operation].page)
    else:
        for bottleneck in question.bottlenecks:
            rows += knowledge.store.rows("advice", bottleneck, page_id=f"bottleneck/{bottleneck}")
    wanted = [row for row in rows if row.bottleneck in question.bottlenecks] or rows
    claims: dict[str, Claim] = {}
    for row in wanted:
        if _fits(row, question, knowledge):
            claims.setdefault(row.technique, _advice(row, knowledge))
    return list(claims.values())[:REMEDIES]


def _advice(row: AdviceRow, knowledge: Knowledge) -> Claim:
    name = knowledge.vocabulary.techniques[row.technique].name
    note = f"against {row.bottleneck}"
    return Claim(f"{name}: {row.because}", ClaimKind.RECORD, (row.citation,), subject=row.technique, note=note)


def _fits(row: AdviceRow, question: Question, knowledge: Knowledge) -> bool:
    """Whether the technique exists on the GPUs of the question, and is not of other operations alone."""
    if not runs_on(row.technique, question, knowledge):
        return False
    of = knowledge.of_techniques.get(row.technique, {}).get("operation", ())
    return not (question.operation and of) or question.operation in of


def thresholds(question: Question, knowledge: Knowledge) -> list[Claim]:
    """From which value of a profile's metric on the symptoms of the question are named, by every source."""
    rows: list[ThresholdRow] = [
        row for symptom in question.symptoms for row in knowledge.store.rows("threshold", symptom)
    ]
    by_test = {(row.metric, row.test, row.value, row.source.split()[0]): row for row in reversed(rows)}
    return [threshold_claim(row, knowledge) for row in reversed(by_test.values())][:THRESHOLDS]


def measured(question: Question, knowledge: Knowledge) -> Part | None:
    """Published measurements of the operation or the techniques of a question, those on its GPUs first."""
    rows: list[MeasuredRow] = []
    if question.operation:
        rows += knowledge.store.rows("measured", question.operation)
    for technique in question.techniques:
        rows += knowledge.store.rows("measured", page_id=f"technique/{technique}")
    names = {knowledge.name(product) for product in question.products}
    here = [row for row in rows if row.gpu in names]
    unique = {(row.gpu, row.dtype, row.shape, row.metric, row.value, row.what): row for row in reversed(here or rows)}
    claims = [measurement(row) for row in reversed(unique.values())][: 2 * MEASURED]
    if not claims or (names and not here):
        return None
    uses = ("operation", "technique", "product", "dtype", "measured", "number", "language", "metric")
    forms = (Form.VALUE, Form.TOPIC, Form.YES_NO, Form.DEFINITION) if question.measured else ()  # "what do others get"
    return Part(tuple(claims), uses, forms)
