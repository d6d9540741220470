"""What a name means that a tool wrote: a metric of a profile, a stall, a function, an instruction."""

from __future__ import annotations

import re

from kbs.answers.knowledge import Knowledge, sentences
from kbs.answers.model import Claim, ClaimKind
from kbs.answers.solvers.part import Part, parts
from kbs.evidence.table_rows import ThresholdRow
from kbs.index.tokens import identifiers as compounds
from kbs.index.tokens import index_words
from kbs.questions.forms import Form
from kbs.questions.question import Question

MOST = 6
"""Lines about a name."""
THRESHOLDS = 4
_LOOKED_AT = 40
_FORMS = (Form.DEFINITION, Form.VALUE, Form.TOPIC, Form.YES_NO)


def meaning(question: Question, knowledge: Knowledge) -> Part | None:
    """The lines that have a name of the question: whole, then with a suffix of its own, then without the last parts."""
    if not question.identifiers:
        return None
    said: list[Claim] = []
    absent: list[str] = []
    for name in question.identifiers:
        found = _lines(name, knowledge)
        said += found[:MOST]
        if not found:
            absent.append(name)
    rows = [row for name in question.identifiers for row in _thresholds(name, knowledge)]
    uses = ("identifier", "product", "language", "symptom")
    gaps = tuple(f"I found no line about {name}." for name in absent)
    if said:
        return Part(tuple(said[:1]), uses, _FORMS, parts({"Lines that have it": said[1:], "Thresholds": rows}), gaps)
    text = f"Not known: I found no line about {' or '.join(absent)}, whole or in part."
    return Part((Claim(text, ClaimKind.ABSENCE),), uses, _FORMS, gaps=gaps, refusal="not_in_wiki")


def _lines(name: str, knowledge: Knowledge) -> list[Claim]:
    """Lines that have the name, those first that begin with it or are a row for it."""
    for wanted in _forms(name):
        form = re.compile(rf"(?<![\w]){re.escape(wanted)}(?!\w)", re.IGNORECASE)
        # With a suffix it is another word of the index, which has the parts of this one.
        for terms, every in ((compounds(wanted) or [wanted.lower()], False), (index_words(wanted).split()[1:], True)):
            matches = knowledge.store.match_words(terms, _LOOKED_AT, knowledge.reviewed, every=every)
            found = [
                claim
                for passage in knowledge.store.passages(id for id, _ in matches).values()
                if passage.cited is not None
                for claim in sentences(passage)
                if form.search(claim.citations[0].quote)
            ]
            if found:
                return sorted(found, key=lambda claim: _distance(claim, form))
    return []


def _forms(name: str) -> list[str]:
    """The name whole, and shorter by each of its last parts: `sm__cycles_active.max.pct` is also looked for as
    `sm__cycles_active`. What is left must still have a joint."""
    forms = [name.rstrip(":")]
    while "." in forms[-1]:
        forms.append(forms[-1].rpartition(".")[0])
    return [form for form in forms if len(form) > 3]


def _distance(claim: Claim, form: re.Pattern[str]) -> tuple[bool, int]:
    """A sentence or row that begins with the name is most about it; a sentence says more than a row."""
    text = claim.text.lstrip("`| ")
    match = form.search(text)
    return claim.citations[0].quote.lstrip().startswith("|"), match.start() if match else len(text)


def _thresholds(name: str, knowledge: Knowledge) -> list[Claim]:
    """From which value on the name speaks for a symptom, by every source."""
    stem = _forms(name)[-1].lower()
    rows: list[ThresholdRow] = knowledge.store.rows("threshold")
    return [threshold_claim(row, knowledge) for row in rows if stem in row.metric.lower()][:THRESHOLDS]


def threshold_claim(row: ThresholdRow, knowledge: Knowledge) -> Claim:
    """What a row says of a metric and the symptom that it is read from."""
    symptom = knowledge.vocabulary.symptoms[row.symptom].name
    text = f"{symptom}: {row.metric} · {row.test} · {row.value} {row.unit}".rstrip()
    return Claim(text, ClaimKind.RECORD, (row.citation,), note=f"by {row.source}")
