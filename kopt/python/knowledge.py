"""`kopt.ask`, `kopt.search`, `kopt.spec` and `kopt.cite`: what the wikis and the experience log know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbs.common.errors import UsageError
from kopt.python.session import File, check_texts, file, files, opened, public, settings, sizes, within, words

if TYPE_CHECKING:
    from ingest.progress import Progress
    from kopt.python.results.knowledge import Answer, Citations, Passages, Specs
    from kopt.services.user_kernel.analysis import KernelFiles

FILTERS = (
    *("kind", "tag", "language", "arch", "vendor", "symptom", "confidence"),
    *("wiki", "operation", "product", "dtype", "method", "outcome"),
)
"""What `search` can be narrowed by, as `kopt search --help` describes it."""


@public
def ask(
    question: str,
    *,
    gpu: str | Sequence[str] = (),
    dtype: str = "",
    dims: Mapping[str, int] | str | None = None,
    kind: str | Sequence[str] = (),
    k: int | None = None,
    profile: File | None = None,
    kernel: File | None = None,
    ref: File | None = None,
    inputs: File | None = None,
    launch: str = "",
    entry: str | None = None,
    bytes: str = "",
    operations: str = "",
    peak: str = "",
    evidence: bool = False,
    long: bool = False,
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Answer a question about GPUs and kernels. Every claim cites a line that code has checked.

    `gpu`, `dtype`, `dims` say what the question leaves open. With `profile`, `kernel` or `ref` the answer is about
    that kernel; `ref` runs in the sandbox, to count bytes and operations. `evidence` gives claims with ids and citation
    lines, `long` all lines. No language model is asked.

    An answer that the evidence does not give has the status `abstained`. Raises `UsageError`, `ConfigurationError`,
    `IndexBusyError`.
    """
    from kopt.python.results.knowledge import Answer
    from kopt.services.knowledge.answer_text import answer_text
    from kopt.services.knowledge.answers import Asked
    from kopt.services.knowledge.answers import ask as find_answer
    from kopt.services.knowledge.evidence_text import evidence_text
    from kopt.services.results.answering.answers import AskData
    from kopt.services.results.answering.evidence import EvidenceData

    _check_k(k)
    check_texts(question=question, dtype=dtype, launch=launch, bytes=bytes, operations=operations, peak=peak)
    of_problem = {"inputs": inputs, "bytes": bytes, "operations": operations, "peak": peak}
    of_kernel = {"launch": launch, "entry": entry, **of_problem}
    read = sizes(dims)
    own = _files(profile, kernel, ref, read, of_kernel, of_problem)
    with opened(settings(home, wikis, workspace, results=k), progress) as engine:
        found = find_answer(engine, Asked(question, words("gpu", gpu), dtype, read, words("kind", kind), own))
        answer = found.answer
        engine.warn(answer.warnings)
        text, pack = answer_text(answer, long=long), None
        if evidence:
            pack = EvidenceData.of(found.question, answer, engine.terms, engine.warnings)
            text = evidence_text(answer, pack.not_understood, engine.warnings, long=long)
        data = AskData.of(answer, text, found.kernel, evidence=pack)
        return Answer.made(data, "abstained" if answer.abstained else "ok", engine.warnings)


@public
def search(
    query: str,
    *,
    k: int | None = None,
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
    **filters: str | Sequence[str],
) -> Passages:
    """Find passages of the wikis and past experiments, by words and meaning.

    `filters`: kind, tag, language, arch, vendor, symptom, confidence, wiki, operation, product, dtype, method, outcome;
    each a word or several, and all must fit. Where nothing is found, the status is `abstained`. Raises `UsageError`,
    `ConfigurationError`, `IndexBusyError`.
    """
    from kopt.python.results.knowledge import Passages
    from kopt.services.knowledge.answers import search as find_passages
    from kopt.services.results.answering.answers import PassageData, SearchData

    _check_k(k)
    check_texts(query=query)
    if stray := sorted(filters.keys() - set(FILTERS)):
        raise UsageError(f"no filter {stray[0]!r}", code="filter_unknown", hint=f"Filters are {', '.join(FILTERS)}.")
    with opened(settings(home, wikis, workspace, results=k), progress) as engine:
        found = find_passages(engine, query, {name: words(name, filters.get(name, ())) for name in FILTERS})
        told = [*engine.warnings, *(f"degraded: {reason}" for reason in found.degraded)]
        passages = [PassageData.of(hit) for hit in found.hits]
        data = SearchData(query=query, terms=found.terms, asked=found.asked, passages=passages)
        return Passages.made(data, "ok" if passages else "abstained", told)


@public
def spec(
    gpu: str | Sequence[str] = (),
    metric: str = "",
    *,
    qualifier: str = "",
    others: bool = False,
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
) -> Specs:
    """Look up hardware values, each with the line that states it. Without `gpu`: the GPUs that have a page.

    A value that no page states is in `gaps`, never a guess; where none was found the status is `abstained`. `others`:
    also values that the page does not recommend. Raises `UsageError`, `ConfigurationError`, `IndexBusyError`.
    """
    from kopt.python.results.knowledge import Specs
    from kopt.services.knowledge.specs import ask_specs, documented
    from kopt.services.results.answering.citations import SpecData

    check_texts(metric=metric, qualifier=qualifier)
    gpus = words("gpu", gpu)
    with opened(settings(home, wikis, workspace), progress) as engine:
        if not gpus:
            return Specs.made(SpecData.of_gpus(documented(engine), engine.terms), "ok", engine.warnings)
        found, answered = ask_specs(engine, gpus, metric, qualifier, others=others, compare=len(gpus) > 1)
        data = SpecData.of(found, engine.terms)
        return Specs.made(data, "ok" if answered else "abstained", engine.warnings)


@public
def cite(
    text: str,
    *,
    profile: File | Sequence[File] = (),
    home: File | None = None,
    wikis: File | Sequence[File] | None = None,
    workspace: File | None = None,
    progress: Progress | None = None,
) -> Citations:
    """Check every citation of a text against what the cited lines say now. `text` is never taken for a file's name.

    `profile`: profiles and receipts that the text cites. The status is `rejected` where any citation fails, and
    `abstained` where there is none. Raises `UsageError`, `ConfigurationError`, `IndexBusyError`.
    """
    from kopt.python.results.knowledge import Citations
    from kopt.services.knowledge.citations import check
    from kopt.services.results.answering.citations import CiteData

    check_texts(text=text)
    profiles = files("profile", profile)
    with opened(settings(home, wikis, workspace), progress) as engine:
        data = CiteData.of(check(engine, text, profiles))
        if not data.citations:
            return Citations.made(data, "abstained", engine.warnings)
        return Citations.made(data, "rejected" if data.failed else "ok", engine.warnings)


def _check_k(k: int | None) -> None:
    if k is not None:
        within("k", k, 1, 100)


def _files(
    profile: File | None,
    kernel: File | None,
    ref: File | None,
    dims: Mapping[str, int],
    of_kernel: Mapping[str, Any],
    of_problem: Mapping[str, Any],
) -> KernelFiles | None:
    given = [one for one in (profile, kernel, ref) if one is not None]
    for there, options, what in (
        (bool(given), of_kernel, "profile, kernel or ref"),
        (ref is not None, of_problem, "ref"),
    ):
        stray = [name for name, value in options.items() if value]
        if stray and not there:
            raise UsageError(f"{stray[0]} is of no use without {what}", code="no_kernel", hint=f"Give {what}.")
    if not given:
        return None
    from kopt.services.bench.request import read_inputs
    from kopt.services.user_kernel.analysis import KernelFiles
    from kopt.services.work_counts import ProblemFiles

    made = file("inputs", of_kernel["inputs"])
    problem = ProblemFiles(
        kernel=file("kernel", kernel),
        reference=file("ref", ref),
        inputs=None if made is None else read_inputs(made),
        dims=dims,
        entry=of_kernel["entry"],
        bytes=of_kernel["bytes"],
        operations=of_kernel["operations"],
    )
    return KernelFiles(problem, file("profile", profile), of_kernel["launch"], of_kernel["peak"])
