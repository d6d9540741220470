"""Defines a term by a sentence of a page of terms, or by a row of a glossary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kbs.answers.knowledge import Knowledge, sentences
from kbs.answers.model import Claim
from kbs.evidence.vocabulary import words
from kbs.questions.forms import Form
from kbs.questions.question import Question

TAG = "terms"
"""Of pages whose sentences define terms: "A warp is ...", "PTX (Parallel Thread Execution) is ..."."""
_ASKED = re.compile(
    r"(?:what (?:exactly )?(?:is|are|does|do)|what['’]s|define|explain) (?:the (?:meaning|definition) of )?"
    r"(?:(?:an?|the) )?(?P<term>.{1,80}?)(?: mean| stand for| do)?"
    r"(?: (?:in|on|of|for) (?:an? |the )?(?:nvidia |modern )?(?:cuda|gpus?|gpu programming))? ?[?.!]*",
    re.IGNORECASE,
)
_DEFINES = re.compile(
    r"(?:An? |The )?(?P<name>[^.,;:()|]{1,60}?)(?: \((?P<also>[^()]{1,80})\))? (?:is|are|means) ", re.IGNORECASE
)
_LONGEST = 200
"""Characters of a first cell that can be a name."""
_FIELD = ("cuda", "gpu", "nvidia")
"""Words before a term that only say where it is used, as in "a CUDA kernel"; "a CUDA core" is a term as it is."""


def definition(question: Question, knowledge: Knowledge) -> Claim | None:
    """What the question asks the meaning of; None if it asks something else, or nothing defines it."""
    return _sentence(question, knowledge) or _row(question, knowledge)


def term_of(text: str) -> str:
    """The term whose meaning a question asks for, `warp` of "What is a warp?"; empty if it asks something else."""
    asked = _ASKED.fullmatch(" ".join(text.split()))
    return asked["term"] if asked else ""


def names_of(sentence: str) -> list[str]:
    """The names that a sentence defines: its subject, and what is in brackets behind it; none if it does not."""
    found = _DEFINES.match(sentence)
    if found is None:
        return []
    also = found["also"] or ""
    return [name for name in (found["name"], also, *also.split(", ")) if name]


def _sentence(question: Question, knowledge: Knowledge) -> Claim | None:
    term = _key(term_of(question.read))
    if not term:
        return None
    terms = [term, term[1:]] if term[0] in _FIELD and len(term) > 1 else [term]
    claims = list(_claims(knowledge, knowledge.store.page_ids("tag", TAG)))
    return next((c for asked in terms for c in claims if asked in map(_key, names_of(c.text))), None)


def _row(question: Question, knowledge: Knowledge) -> Claim | None:
    """The row of a glossary that says what the symptom of the question means: its first cell is wholly that name."""
    for symptom in question.symptoms if question.form is Form.DEFINITION else ():
        for claim in _claims(knowledge, knowledge.store.page_ids("symptom", symptom), "|"):
            cells = claim.citations[0].quote.strip().strip("|").split("|")
            if len(cells) < 2 or len(cells[0]) > _LONGEST:
                continue
            name = words(cells[0].strip(" `"))
            whole = (
                m.id == symptom and m.end - m.start == len(name)
                for m in knowledge.vocabulary.find(" ".join(name), "symptom")
            )
            if any(whole):
                return claim
    return None


def _claims(knowledge: Knowledge, pages: list[str], having: str = "") -> Iterator[Claim]:
    """Every sentence and row of some pages, of passages that have some characters."""
    for page in pages:
        for passage in knowledge.store.passages(knowledge.store.passage_ids(page_id=page)).values():
            if (
                passage.cited is not None and having in passage.text
            ):  # records of the log name symptoms too, and define none
                yield from sentences(passage)


def _key(name: str) -> tuple[str, ...]:
    """A name's words, for comparing: `Warps` is `warp`, `SFUs` is `SFU`."""
    return tuple(w[:-1] if len(w) > 2 and w.endswith("s") and not w.endswith("ss") else w for w in words(name))
