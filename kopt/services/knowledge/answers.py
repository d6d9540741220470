"""Answers to questions and searches, from the wikis, the experience log and the user's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kbs.answers.compose import compose
from kbs.answers.knowledge import Knowledge, Searcher
from kbs.answers.model import Answer
from kbs.answers.several import stands_alone, together
from kbs.common.errors import KoptError, UsageError
from kbs.evidence.citation import EvidenceKind
from kbs.evidence.passage import EXPERIMENT, LOG
from kbs.index.overrides import cost_notes, named_unknown, override_notes
from kbs.index.passages import Chosen
from kbs.index.search import Query, SearchResult, records_with
from kbs.index.store import Store
from kbs.questions.inherit import inherit
from kbs.questions.question import Question
from kbs.questions.split import questions_of
from kopt.services.engine import Engine
from kopt.services.experience.evidence import past_log
from kopt.services.knowledge import follow_up
from kopt.services.knowledge.follow_up import Earlier

if TYPE_CHECKING:
    from kbs.evidence.vocabulary import Vocabulary
    from kopt.services.user_kernel.analysis import KernelFiles, UserKernel

RECORDS = 3
"""Past outcomes that a question is given beside the passages of pages."""
SECTIONS = 12
"""Sections of pages that are looked at, so many that some of other products may be left out."""


@dataclass(frozen=True)
class Asked:
    """A question with its options."""

    text: str
    gpus: tuple[str, ...] = ()
    dtype: str = ""
    dims: Mapping[str, int] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    """Only pages of these kinds are searched."""
    files: KernelFiles | None = None
    """The user's own files; the answer is about their kernel."""
    before: tuple[Earlier, ...] = ()
    """What it is a follow-up to."""


@dataclass(frozen=True)
class Answered:
    """An answer and how it came about."""

    question: Question
    answer: Answer
    kernel: UserKernel | None = None
    inherited: Sequence[str] = ()
    """What was taken from the question before."""


def ask(engine: Engine, asked: Asked) -> Answered:
    """Answer a question. What an abstention could not find is logged for the wiki.

    Raises `UsageError`: `empty_question`, `dtype_unknown`, `filter_unknown`, `dims_invalid`, and what
    `user_kernel.analysis.gather` raises.
    """
    if not asked.text.strip():
        raise UsageError(
            "the question is empty",
            code="empty_question",
            hint='Ask, for example, kopt ask "what is a bank conflict".',
        )
    if asked.kinds:
        kinds = engine.with_store(lambda store: read_filters(engine.terms, store, {"kind": asked.kinds}), vectors=False)
        asked = replace(asked, kinds=tuple(kinds["kind"]))
    dtype = _dtype(engine, asked.dtype)
    kernel, dims = None, asked.dims
    if asked.files is not None:
        from kopt.services.user_kernel.analysis import gather

        kernel = gather(engine, asked.text, asked.gpus, asked.files)
        if asked.files.problem.reference is not None:
            dims = {}  # they are the reference's sizes, not those of an operation of the wiki

    def answer(store: Store) -> tuple[Question, list[str], Answer]:
        told = kernel.told if kernel else None

        def understood(text: str, before: Sequence[Earlier]) -> tuple[Question, list[str]]:
            known = engine.known_words(store)
            return follow_up.read(
                text, engine.terms, before, gpus=asked.gpus, dtype=dtype, dims=dims, told=told, known=known
            )

        question, taken = understood(asked.text, asked.before)
        several: list[Question] = []
        for text in questions_of(asked.text) if kernel is None and not asked.before else []:
            one, _ = understood(text, ())
            if several and stands_alone(one):
                several.append(inherit(one, several[-1])[0])
            elif several:
                several[-1], _ = understood(f"{several[-1].text} {text}", ())
            else:
                several.append(one)
        made = [_compose(engine, store, one, asked.kinds, None) for one in several] if len(several) > 1 else []
        if not all(one.abstained for one in made):
            return question, taken, together(question, several, made)
        # Parts that say too little by themselves may say enough together.
        whole = _compose(engine, store, question, asked.kinds, kernel)
        return question, taken, together(question, several, made) if made and whole.abstained else whole

    question, inherited, made = engine.with_store(answer, vectors=True)
    if made.abstained:
        engine.log_gap(
            " → ".join([*(one.text for one in asked.before), asked.text]), made.reason, made.gaps or [made.direct]
        )
    _check_dims(engine, question, dims)
    return Answered(question, made, kernel, inherited)


def remember(engine: Engine, asked: Asked, found: Answered) -> list[str]:
    """Keep the question for follow-ups; what to tell a user who may have meant one, or more by it."""
    home, workspace = engine.settings.home, engine.settings.workspace
    hint: list[str] = []
    if asked.before:
        if asked.before[-1].files and asked.files is None:
            hint = ["the files of the question before are not taken: give --profile, --kernel or --ref again"]
    else:
        last = follow_up.recall(home, workspace)
        hint = follow_up.hint(found.question, engine.terms, last, abstained=found.answer.abstained)
    with suppress(ValueError):  # too long, or no Unicode: no follow-up to it can be read
        files = asked.files is not None
        kept = Earlier(
            text=asked.text, gpus=asked.gpus, dtype=asked.dtype, dims=dict(asked.dims), kinds=asked.kinds, files=files
        )
        follow_up.remember(home, workspace, asked.before, kept)
    return hint


def search(engine: Engine, query: str, filters: Mapping[str, Sequence[str]]) -> SearchResult:
    """Find passages of the wikis and records of the log. Raises `UsageError`: `empty_query`, `filter_unknown`."""
    if not query.strip():
        raise UsageError(
            "the query is empty", code="empty_query", hint='Give words, for example, kopt search "bank conflict".'
        )

    def look(store: Store) -> SearchResult:
        wanted = read_filters(engine.terms, store, filters)
        return engine.search(store, query, Query(filters=wanted, count=engine.settings.values.results))

    return engine.with_store(look, vectors=True)


_ALWAYS = {"kind": (EXPERIMENT, EvidenceKind.NOTE), "wiki": (LOG,)}
"""Values of filters that are right where nothing has them yet."""
_SPACES = {"product": "product", "arch": "architecture", "operation": "operation", "dtype": "dtype"}
"""Filter → what its values are names of in the vocabulary."""


def read_filters(terms: Vocabulary, store: Store, filters: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The filters by the names that pages have: `H100` is each product of that name, `Hopper` is `hopper`.

    Raises `UsageError` (`filter_unknown`) for a value that no page has: it would exclude every page.
    """
    found: dict[str, list[str]] = {}
    for name, values in filters.items():
        known = sorted({*store.values_of(name), *_ALWAYS.get(name, ())}) if values else []
        found[name] = []
        for value in values:
            meant = [value] if name not in _SPACES else [value, *terms.resolve(_SPACES[name], value)]
            fitting = [one for one in dict.fromkeys((*meant, value.strip().lower())) if one in known]
            if not fitting:
                near = get_close_matches(value.lower(), known, n=5)
                hint = f"Pages have {', '.join(known)}." if known else "No page and no past experiment has one yet."
                hint = f"Did you mean {', '.join(near)}?" if near else hint
                raise UsageError(f"no page has the {name} {value!r}", code="filter_unknown", hint=hint)
            found[name] += fitting
    return found


_IN_C = {"half": "fp16", "single": "fp32", "float": "fp32", "double": "fp64", "int": "int32", "long": "int64"}
"""Element types as C and CUDA name them: words that a question may mean otherwise."""


def _dtype(engine: Engine, text: str) -> str:
    if not text:
        return ""
    found = _IN_C.get(text.strip().lower()) or next((one.id for one in engine.terms.find(text, "dtype")), "")
    if not found:
        raise UsageError(
            f"{text!r} is not an element type",
            code="dtype_unknown",
            hint=f"Known types are {', '.join(engine.terms.dtypes)}.",
        )
    return found


def _compose(
    engine: Engine, store: Store, question: Question, kinds: Sequence[str], kernel: UserKernel | None
) -> Answer:
    wanted = Query(filters={"kind": kinds}, count=engine.settings.values.results, records=RECORDS)
    noted = [wiki.name for wiki in engine.wikis if wiki.notes]
    known = [name for name, *_ in store.wikis() if name not in noted]

    def of(names: Sequence[str]) -> Searcher:
        query = replace(wanted, filters={"kind": kinds, "wiki": names})
        return lambda asked: engine.find_sections(store, asked, query, SECTIONS)

    knowledge = Knowledge(store, engine.terms, of(known if noted else ()))
    if noted:
        knowledge.notes, knowledge.reviewed = of(noted), Chosen({"wiki": known})
    warnings: list[str] = []
    with ExitStack() as stack:
        try:
            past = stack.enter_context(past_log(engine.settings, lambda text, most: records_with(store, text, most)))
        except KoptError as error:
            past = None
            warnings.append(f"the experience log could not be read: {error.message}")
        part, evidence = (kernel.part, kernel.evidence) if kernel else (None, None)
        made = compose(question, knowledge, engine.library, warnings, kernel=part, evidence=evidence, past=past)
    made.warnings += _overrides(store, engine.terms, question, made)
    return made


def _overrides(store: Store, terms: Vocabulary, question: Question, made: Answer) -> list[str]:
    """What the answer's values and pages take the place of, and what earlier wikis state of what it does not know."""
    cited = [citation for claim in made.claims for citation in claim.citations]
    cited += [row.citation for claim in made.claims for judgement in claim.judgements for row in judgement.rows]
    unknown = [*made.gaps, *([made.direct] if made.abstained else [])]
    asked = {(product, metric) for product in question.products for metric in question.metrics}
    notes = override_notes(store, terms, cited, named_unknown(unknown, question.products, terms) | asked)
    return [*notes, *cost_notes(store, question.operation or "")]


def _check_dims(engine: Engine, question: Question, dims: Mapping[str, int]) -> None:
    """Raises `UsageError` (`dims_invalid`) for a size that the operation of the question does not have."""
    if not (dims and question.operation):
        return
    known = engine.terms.operations[question.operation].dims
    unknown = [name for name in dims if name not in known]
    if unknown:
        raise UsageError(
            f"{question.operation} has no dimension {', '.join(unknown)}",
            code="dims_invalid",
            hint=f"Its dimensions are {', '.join(known)}.",
        )
