"""`kopt ask` and `kopt search`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.analysis.options import LaunchOption, ProblemOptions
from kopt.cli.command import command
from kopt.cli.knowledge.ask_options import AnswerOptions, QuestionOptions
from kopt.cli.output import JsonFlag, Reply, tell
from kopt.cli.terminal.completion import gpus

if TYPE_CHECKING:
    from rich.console import Console

    from kopt.services.user_kernel.analysis import KernelFiles


_PIPED = 1_000_000
"""Bytes that are read of a question from a pipe: many times as many as a question may have."""


@command("ask", reads_wikis=True, paged=True)
def ask(
    question: Annotated[
        list[str],
        typer.Argument(help="What you want to know, without quotation marks; - reads it from standard input."),
    ],
    about: QuestionOptions,
    problem: ProblemOptions,
    how: AnswerOptions,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="Your kernel's profile: .ncu-rep, CSV, folder of `kopt profile`, or a receipt."),
    ] = None,
    launch: LaunchOption = "",
    json: JsonFlag = False,
) -> Reply:
    """Answer a question about GPUs and kernels; every claim cites a line that was checked.

    The answer is composed from the wiki, without a language model: the answer first, then at most twelve lines of
    reasons; --long prints all. Exit code 3 if the evidence does not answer the question, or not for certain, or the
    question assumes something false. With --model, a language model puts the claims into order; each of its sentences
    is compared with the claims that it names, and left out if it says anything else.

    With --profile, --kernel or --ref, the answer is about that kernel: the profile gives class, symptoms, stalls,
    achieved bandwidth and headroom; the reference gives the bytes and operations that the problem needs. Figures cite
    profile/HASH#METRIC[LAUNCH], which `kopt cite --profile FILE` checks. A profile of another kernel or GPU is an
    error. Declare what cannot be counted with --bytes and --operations.

    kopt ask why is it slow --profile report.csv --kernel softmax.py --ref ref.py --dims M=4096,N=8192

    --continue makes it a follow-up ("and on A100?") to the question asked before in this folder.

    --evidence prints what the answer is made of, for a coding agent: claims with ids, citation lines that `kopt cite`
    checks, the quoted lines, and the passages found.
    """
    from kbs.common.errors import ConfigurationError, ExitCode
    from kopt.cli.knowledge.ask_model import in_words
    from kopt.cli.support import engine
    from kopt.services.arguments import read_dims
    from kopt.services.knowledge.answer_text import answer_text, inherited_lines, score_stages
    from kopt.services.knowledge.answers import Asked, remember
    from kopt.services.knowledge.answers import ask as find_answer
    from kopt.services.knowledge.evidence_text import evidence_text
    from kopt.services.results.answering.answers import AskData
    from kopt.services.results.answering.evidence import EvidenceData
    from kopt.services.results.answering.wording import WordingData

    dims, files = read_dims(problem.dims), _files(problem, profile, launch)
    with engine(results=about.k) as eng:
        gpus, kinds = tuple(about.gpu or ()), tuple(about.kind or ())
        model = how.asked_model(eng)
        asked = Asked(_asked(question), gpus, about.dtype, dims, kinds, files, about.before(eng))
        found = find_answer(eng, asked)
        answer = found.answer
        eng.warn([*answer.warnings, *remember(eng, asked, found)])
        worded = in_words(eng, answer, model, long=how.long, quiet=json) if model else None
        warnings = list(eng.warnings)
    text, pack = worded.text if worded else answer_text(answer, long=how.long), None
    if how.evidence:
        pack = EvidenceData.of(found.question, answer, eng.terms, warnings)
        text = evidence_text(answer, pack.not_understood, warnings, long=how.long)
    below = inherited_lines(found.inherited)
    code, errors = ExitCode.ABSTAINED if answer.abstained else ExitCode.OK, []
    if worded and isinstance(refused := worded.error, ConfigurationError):
        code = refused.exit_code
        errors = [{"code": refused.code, "message": refused.message, "hint": refused.hint}]
    elif worded and worded.error:
        warnings.append(worded.error.message)

    def show(console: Console) -> None:
        for line, heading in _headed([*([] if worded else text.split("\n")), *below]):
            console.print(line, markup=False, style="bold" if heading else None)
        for error in errors:
            tell(f"error: {error['message']}\n{error['hint']}\n")
        if how.explain:
            console.print("\nHow the question was read", markup=False)
            for name, value in vars(found.question).items():
                if value and name != "text":
                    console.print(f"  {name}: {value}", markup=False)
            for line in answer.asked:
                console.print(f"  {line}", markup=False)
            for hit in answer.hits:
                stages = score_stages(hit)
                console.print(f"  {hit.score:.3f} {hit.passage.reference} ({stages})", markup=False)

    data = AskData.of(
        answer,
        "\n".join([text, *below]),
        found.kernel,
        inherited=found.inherited,
        evidence=pack,
        wording=WordingData.of(worded) if worded else None,
    )
    return Reply(data, show, code, warnings, errors)


def _asked(words: Sequence[str]) -> str:
    """The question; a lone `-` stands for standard input."""
    return sys.stdin.buffer.read(_PIPED).decode("utf-8", "replace") if list(words) == ["-"] else " ".join(words)


def _headed(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is a heading: it stands after an empty line and before one that is set in."""
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        yield line, not before and not line.startswith(" ") and after.startswith("  ")


def _files(problem: ProblemOptions, profile: Path | None, launch: str) -> KernelFiles | None:
    """The user's own files, if there are any. Raises `UsageError` for options that need a file which is not given."""
    from kbs.common.errors import UsageError

    of_reference = {
        "--inputs": problem.inputs,
        "--outputs": problem.outputs,
        "--ptr-size": problem.ptr_size,
        "--bytes": problem.bytes,
        "--operations": problem.operations,
        "--peak": problem.peak,
    }
    of_kernel = {"--launch": launch, "--entry": problem.entry, **of_reference}
    given = profile or problem.kernel or problem.ref
    for file, options, what, hint in (
        (given, of_kernel, "kernel", "Give --profile, --kernel or --ref."),
        (problem.ref, of_reference, "reference", "Give it with --ref FILE."),
    ):
        stray = [name for name, value in options.items() if value]
        if file is None and stray:
            raise UsageError(
                f"{' and '.join(stray)} {'need' if len(stray) > 1 else 'needs'} a {what}, and none is given",
                code=f"no_{what}",
                hint=hint,
            )
    if given is None:
        return None
    from kopt.services.user_kernel.analysis import KernelFiles

    return KernelFiles(problem.files(), profile, launch, problem.peak)


@command("search", reads_wikis=True, paged=True)
def search(
    query: Annotated[list[str], typer.Argument(help="Words, identifiers, or a question.")],
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Kind of page: hardware, technique, kernel, ...")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag of a page.")] = None,
    language: Annotated[list[str] | None, typer.Option("--language", help="Language, such as triton.")] = None,
    arch: Annotated[list[str] | None, typer.Option("--arch", help="Architecture, such as hopper.")] = None,
    vendor: Annotated[list[str] | None, typer.Option("--vendor", help="Vendor, such as nvidia.")] = None,
    symptom: Annotated[list[str] | None, typer.Option("--symptom", help="Symptom that a page is about.")] = None,
    confidence: Annotated[
        list[str] | None, typer.Option("--confidence", help="verified, source-reported or inferred.")
    ] = None,
    wiki: Annotated[list[str] | None, typer.Option("--wiki", help="Name of a wiki, or log.")] = None,
    operation: Annotated[list[str] | None, typer.Option("--operation", help="Operation, such as softmax.")] = None,
    product: Annotated[
        list[str] | None, typer.Option("--product", "--gpu", autocompletion=gpus, help="GPU, such as h100-sxm.")
    ] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", help="Element type of past experiments.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", help="Method of past experiments.")] = None,
    outcome: Annotated[
        list[str] | None, typer.Option("--outcome", help="Outcome of past experiments: success, ...")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, max=100, help="Number of passages to show.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the score of each stage.")] = False,
) -> Reply:
    """Find passages of the wikis and past experiments, by words and meaning.

    Filters may be repeated; different filters must all fit. A past experiment is of the kind `experiment`.
    """
    from kopt.cli.support import engine
    from kopt.services.knowledge.answer_text import score_stages
    from kopt.services.knowledge.answers import search as find_passages
    from kopt.services.results.answering.answers import PassageData, SearchData

    filters = {
        "kind": kind or [],
        "tag": tag or [],
        "language": language or [],
        "arch": arch or [],
        "vendor": vendor or [],
        "symptom": symptom or [],
        "confidence": confidence or [],
        "wiki": wiki or [],
        "operation": operation or [],
        "product": product or [],
        "dtype": dtype or [],
        "method": method or [],
        "outcome": outcome or [],
    }
    with engine(results=k) as eng:
        found = find_passages(eng, " ".join(query), filters)
        warnings = [*eng.warnings, *(f"degraded: {reason}" for reason in found.degraded)]

    def show(console: Console) -> None:
        if not found.hits:
            console.print("No passage was found.", markup=False)
        for line in found.asked if explain else ():
            console.print(line, markup=False)
        for hit in found.hits:
            trail = " > ".join([hit.passage.title, *hit.passage.trail])
            console.print(f"{hit.passage.reference}  {hit.score:.3f}  {trail}", markup=False)
            if explain:
                stages = score_stages(hit)
                console.print(f"    {stages}", markup=False)
            for line in [line for line in hit.passage.text.split("\n") if line.strip()][:2]:
                console.print(f"    {line[:160]}", markup=False)

    data = SearchData(
        query=" ".join(query),
        terms=found.terms,
        asked=found.asked,
        passages=[PassageData.of(hit) for hit in found.hits],
    )
    return Reply(data, show, warnings=warnings)
