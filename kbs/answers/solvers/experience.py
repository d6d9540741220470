"""Answers from the experience log: what was tried on such kernels, the results, and the lessons.

Each line rests on records that it cites as `log/<id>`, or counts records by a command that counts the same ones again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Answer, Claim, ClaimKind
from kbs.common.visible_text import visible
from kbs.evidence.vocabulary import Vocabulary, is_capability, words
from kbs.experience.entry import Entry
from kbs.experience.experiment import Outcome
from kbs.experience.filters import Filter
from kbs.experience.log_evidence import LogEvidence, Row, Scope, first_by, quote_evidence, record_evidence
from kbs.experience.ranking.recommend import FAILURES, SIMILAR
from kbs.experience.ranking.similarity import Situation
from kbs.questions.question import Question

SIMILAR_PAST = "Similar past outcomes"
WORKED, FAILED, LESSONS = "What worked", "What did not work", "What was noted"
METHODS = 5
"""Methods listed of those that worked, and of those that did not."""
NOTES = 5
SIMILAR_SHOWN = 3
FITTING = 0.5
"""Least cosine of a question and a record that its words found: below it they speak of other things."""
CITED = 2
"""Records that a line about several cites."""
SAME_BOTTLENECK = 0.2
"""Least similarity of a record of any operation, where the question names none."""
_LISTED = 6
_LOOKED_AT = 500
"""Records that are looked through for words of the question."""


def answer_from_experience(question: Question, knowledge: Knowledge, past: LogEvidence | None, answer: Answer) -> None:
    """What the log says of the kernels, GPUs and methods that the question names; abstains where it says nothing."""
    if past is None or not past.count():
        _nothing("no past experiment is recorded here", answer)
        answer.gaps.append("Runs write records of their own; `kopt log add` and `kopt log import` add others.")
        return
    scope, subject = _scope(question, knowledge, past)
    rows = past.rows(scope)
    if not rows:
        _nothing(f"no past experiment is recorded of {subject}", answer)
        _what_there_is(scope.wanted, past, answer)
        return
    cited = [*first_by(rows, [Outcome.SUCCESS])[:CITED], *first_by(rows, FAILURES)[:1]] or [rows[-1].id]
    answer.add("", [_counted(scope, subject, subject, cited, past, answer)])
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    answer.add(WORKED, _told(by_method, scope, [Outcome.SUCCESS], past, answer))
    answer.add(FAILED, _told(by_method, scope, FAILURES, past, answer))
    answer.add(LESSONS, _notes(rows, past, answer))


def similar_outcomes(question: Question, past: LogEvidence, answer: Answer) -> None:
    """Records of the most similar circumstances, where the question is about a kernel or a bottleneck; then those that
    the search found for its words."""
    asked = Situation(
        op=question.operation,
        gpu=question.products[0] if len(question.products) == 1 else "",
        bottleneck=question.bottlenecks[0] if len(question.bottlenecks) == 1 else "",
        dims=dict(question.dims),
        dtype=question.dtype,
    )
    found: dict[str, tuple[Entry, str]] = {}
    if asked.op or asked.bottleneck:
        least = SIMILAR if asked.op else SAME_BOTTLENECK
        for entry, similarity in past.similar(asked, SIMILAR_SHOWN, least):
            found[entry.experiment.id] = entry, f"similarity {similarity:.2f}"
    for hit in answer.hits:
        id = hit.passage.page_id.removeprefix("log/")
        known = past.get(id) if hit.passage.cited is None and hit.cosine >= FITTING else None
        if known is not None and len(found) < SIMILAR_SHOWN:
            found.setdefault(known.experiment.id, (known, f"found for the question's words, cosine {hit.cosine:.2f}"))
    claims = []
    for entry, note in found.values():
        item = record_evidence(entry.experiment)
        answer.experiments.append(entry)
        text = f"{item.name}: {item.states}"
        note = ", ".join(filter(None, (note, past.origin([entry.experiment.id]))))
        claims.append(Claim(text, ClaimKind.EXPERIENCE, note=note, evidence=(item,)))
    answer.add(SIMILAR_PAST, claims)


def _nothing(why: str, answer: Answer) -> None:
    answer.abstained, answer.reason = True, "no_experience"
    answer.add("", [Claim(f"Not known: {why}.", ClaimKind.ABSENCE)])


def _what_there_is(wanted: Filter, past: LogEvidence, answer: Answer) -> None:
    """What the log has of the operation elsewhere, or of which operations it has any."""
    if wanted.op:
        where = Counter({row.id: row.gpu or "no GPU" for row in past.rows(Scope(Filter(op=wanted.op)))}.values())
        if where:
            said = ", ".join(f"{count} on {visible(gpu)}" for gpu, count in where.most_common(_LISTED))
            answer.gaps.append(f"Of {wanted.op} the log has {said}.")
            return
    ops = Counter({row.id: row.op or "no known operation" for row in past.rows(Scope(Filter()))}.values())
    said = ", ".join(f"{count} of {visible(op)}" for op, count in ops.most_common(_LISTED))
    answer.gaps.append(f"The log has {said}.")


# --- what is meant ----------------------------------------------------------------------------------------------------


def _scope(question: Question, knowledge: Knowledge, past: LogEvidence) -> tuple[Scope, str]:
    """(the records that are meant, what they are about in words)"""
    terms = knowledge.vocabulary
    wanted = Filter(
        op=question.operation,
        backend=question.languages[0] if len(question.languages) == 1 and not question.techniques else "",
        **_gpus(question, terms),
        bottleneck=question.bottlenecks[0] if len(question.bottlenecks) == 1 else "",
        dtype=question.dtype,
    )
    scope = Scope(wanted)
    named, sought = _named(question.text, terms, {row.method for row in past.rows(scope)})
    if named:
        scope = replace(scope, methods=named)
    where = [terms.operations[wanted.op].name if wanted.op else "all kernels"]
    boards, architectures = _boards(question, terms)
    gpus = knowledge.names(boards)
    if not gpus and (wanted.gpu or wanted.gpus):
        gpus = " and ".join(terms.architectures[id].name for id in architectures)
    where += [f"on {gpus}" if gpus else "", wanted.dtype, wanted.bottleneck, wanted.backend]
    about = f"{' and '.join(named)} on " if named else ""
    subject = about + ", ".join(part for part in (" ".join(part for part in where[:2] if part), *where[2:]) if part)
    if not sought:
        return scope, subject
    first = tuple(forms[0] for forms in sought)
    ids = _having(sought, wanted, past)
    subject += f", “{' '.join(first)}”"
    return replace(scope, ids=ids, words=first), subject


def _boards(question: Question, terms: Vocabulary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(the boards that are named, the architectures that are meant); no experiment ran on a compute capability."""
    boards = tuple(product for product in question.products if not is_capability(product))
    capabilities = (terms.products[product].architecture for product in question.products if is_capability(product))
    return boards, tuple(dict.fromkeys((*question.architectures, *capabilities)))


def _gpus(question: Question, terms: Vocabulary) -> dict[str, Any]:
    """The one product, the family that has just these products, or all of them, as the filter has them; those of an
    architecture where only that is named."""
    named, meant = _boards(question, terms)
    products = named or tuple(id for id, product in terms.products.items() if product.architecture in meant)
    if len(products) < 2:
        return {"gpu": "".join(products)}
    families = sorted({family for product in products for family in terms.products[product].families})
    inside = [family for family in families if set(terms.family_members(family)) <= set(products)]
    if len(inside) == 1 and set(terms.family_members(inside[0])) == set(products):
        return {"gpu": inside[0]}
    return {"gpus": (*products, *inside)}


def _named(text: str, terms: Vocabulary, methods: set[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """(methods of the log that the text names, what else it names: each in all its forms)"""
    tokens = words(text)
    covered: set[int] = set()
    unsaid = terms.question_words | terms.past_words
    found = []
    for method in sorted(methods - {""}, key=lambda name: (-len(words(name)), name)):
        name = words(method)
        spans = [range(at, at + len(name)) for at in range(len(tokens)) if tokens[at : at + len(name)] == name]
        if spans and covered.isdisjoint(spans[0]) and unsaid.isdisjoint(name[:1] if len(name) == 1 else ()):
            found.append(method)
            covered.update(*spans)
    sought: list[tuple[str, ...]] = []
    for mention in terms.find(text):
        span = range(mention.start, mention.end)
        if mention.kind == "technique" and not covered.intersection(span):
            term = terms.techniques[mention.id]
            forms = (" ".join(tokens[mention.start : mention.end]), term.name, *term.aliases)
            sought.append(tuple(dict.fromkeys(" ".join(words(form)) for form in forms)))
        covered.update(span)
    for place, token in enumerate(tokens):
        if place not in covered and token not in unsaid:
            sought.append((token,))
    return tuple(sorted(found)), sought


def _having(sought: list[tuple[str, ...]], wanted: Filter, past: LogEvidence) -> frozenset[str]:
    """Ids of records that have a form of each of these, of the 500 that fit them best."""
    candidates: dict[str, str] = {}
    for form in dict.fromkeys(form for forms in sought for form in forms):
        for entry in past.search(form, wanted, _LOOKED_AT):
            one = entry.experiment
            said = (one.kernel, one.run, *one.methods, one.optimization, one.hypothesis, one.observed, one.lesson)
            candidates[one.id] = f" {' '.join(words(' '.join(said).replace('.', ' ')))} "
    return frozenset(
        id for id, text in candidates.items() if all(any(f" {form} " in text for form in forms) for forms in sought)
    )


# --- what is reported -------------------------------------------------------------------------------------------------


def _counted(scope: Scope, name: str, subject: str, ids: list[str], past: LogEvidence, answer: Answer) -> Claim:
    """What the records of a scope come to, with some of them."""
    tally = past.tally(scope, name)
    evidence = [tally]
    for entry in (past.get(id) for id in ids):
        if entry is not None:
            evidence.append(record_evidence(entry.experiment))
            answer.experiments.append(entry)
    note = past.origin(row.id for row in past.rows(scope))
    return Claim(f"{subject}: {tally.states}", ClaimKind.EXPERIENCE, note=note, evidence=tuple(evidence))


def _told(
    by_method: dict[str, list[Row]],
    scope: Scope,
    outcomes: list[Outcome] | tuple[Outcome, ...],
    past: LogEvidence,
    answer: Answer,
) -> list[Claim]:
    """Methods with such outcomes, those first that brought most, or failed most often."""
    found: list[tuple[float, str, list[str]]] = []
    for method, rows in by_method.items():
        ids = first_by(rows, outcomes)
        if Outcome.SUCCESS in outcomes:
            best = max((row.median or 1.0 for row in rows if row.outcome is Outcome.SUCCESS), default=0.0)
        else:
            best = float(len(ids))
        if ids:
            found.append((-best, method, ids))
    return [
        _counted(replace(scope, methods=(method,)), method or "no method", method or "no method named", ids[:CITED],
                 past, answer)
        for _, method, ids in sorted(found)[:METHODS]
    ]  # fmt: skip


def _notes(rows: list[Row], past: LogEvidence, answer: Answer) -> list[Claim]:
    """Lessons, and what was observed where none was drawn from a failure; the newest first."""
    claims: dict[str, Claim] = {}
    for id in list(dict.fromkeys(row.id for row in reversed(rows)))[:_LOOKED_AT]:
        entry = past.get(id)
        if entry is None or len(claims) == NOTES:
            continue
        one = entry.experiment
        said = one.lesson or (one.observed if one.outcome in FAILURES else "")
        quoted = quote_evidence(one, said) if len(words(said)) > 2 else None
        if quoted is not None and quoted.states not in claims:
            text = f"“{quoted.states}” ({record_evidence(one).states})"
            evidence = (quoted, record_evidence(one))
            claims[quoted.states] = Claim(text, ClaimKind.EXPERIENCE, evidence=evidence)
            answer.experiments.append(entry)
    return list(claims.values())
