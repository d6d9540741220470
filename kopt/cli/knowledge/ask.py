"""`kopt ask` and `kopt search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.analysis.profile import LaunchOption
from kopt.cli.options import (
    DimsOption,
    EntryOption,
    InputsOption,
    NeededBytesOption,
    NeededOperationsOption,
    OutputsOption,
    PeakOption,
    PtrSizeOption,
)
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from evaluator.request import Request
    from kbs.index.search import SearchResult
    from kbs.index.store import Store


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know, in quotation marks.")],
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", help="A GPU that the question is about; may be repeated.")
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="Element type, such as fp32 or bf16.")] = "",
    dims: DimsOption = None,
    profile: Annotated[
        Path | None,
        typer.Option("--profile", help="Your kernel's profile: .ncu-rep, CSV, folder of `kopt profile`, or a receipt."),
    ] = None,
    kernel: Annotated[Path | None, typer.Option("--kernel", help="Your kernel: a .py or .cu file.")] = None,
    ref: Annotated[
        Path | None, typer.Option("--ref", help="Its reference, whose bytes and operations are counted at --dims.")
    ] = None,
    launch: LaunchOption = "",
    inputs: InputsOption = None,
    entry: EntryOption = None,
    outputs: OutputsOption = "",
    ptr_size: PtrSizeOption = None,
    bytes: NeededBytesOption = "",
    operations: NeededOperationsOption = "",
    peak: PeakOption = "",
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only pages of this kind; may be repeated.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, max=100, help="How many passages to look at.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show how the question was read, and every score.")
    ] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Answer a question about GPUs and kernels; every claim cites a line that was checked.

    The answer is composed from the wiki, with no language model. Exit code 3 means that the evidence does not answer
    the question, or that the question takes something wrong for granted.

    With --profile, --kernel or --ref, each alone or all together, it is about that very kernel: class, symptoms,
    stalls, achieved bandwidth and headroom from the profile, compulsory bytes and operations from the reference, beside
    the wiki's facts. Figures cite profile/HASH#METRIC[LAUNCH], which `kopt cite --profile FILE` checks. A profile of
    another kernel or GPU is an error. What of a reference cannot be counted is said with --bytes and --operations.

    kopt ask "why is it slow" --profile report.csv --kernel softmax.py --ref ref.py --dims M=4096,N=8192
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode, UsageError
        from kopt.cli.knowledge.render import answer_text, score_stages
        from kopt.cli.support import engine
        from kopt.services.arguments import read_dims
        from kopt.services.results.answers import AskData

        if not question.strip():
            raise UsageError(
                "the question is empty",
                code="empty_question",
                hint='Ask, for example, kopt ask "what is a bank conflict".',
            )
        sizes = read_dims(dims)
        with engine(results=k) as eng:
            if kind:
                eng.with_store(lambda store: require_known({"kind": kind}, store), vectors=False)
            chosen = next((m.id for m in eng.terms.find(dtype, "dtype")), "")
            if dtype and not chosen:
                names = ", ".join(eng.terms.dtypes)
                raise UsageError(f"{dtype!r} is no element type", code="dtype_unknown", hint=f"Known ones are {names}.")
            own = None
            of_reference = {
                "--inputs": inputs,
                "--outputs": outputs,
                "--ptr-size": ptr_size,
                "--bytes": bytes,
                "--operations": operations,
                "--peak": peak,
            }
            _check_owners(profile, kernel, ref, {"--launch": launch, "--entry": entry}, of_reference)
            if profile is not None or kernel is not None or ref is not None:
                from kopt.cli.analysis.roofline import rate_metric
                from kopt.services.user_kernel.analysis import Given, own_kernel

                request = None
                if ref is not None:
                    request = _request(kernel, ref, inputs, dims, entry, outputs, ptr_size or [], bytes, operations)
                rate = rate_metric(eng, peak) if peak else None
                given = Given(kernel, ref, profile, launch, entry, request, sizes, rate)
                own = own_kernel(eng, question, tuple(gpu or ()), given)
                sizes = {} if ref is not None else sizes  # they are the reference's, not those of the wiki's operation
            understood, answer = eng.ask(
                question,
                gpus=tuple(gpu or ()),
                dtype=chosen,
                dims=sizes,
                kinds=tuple(kind or ()),
                count=eng.settings.values.results,
                own=own,
            )
            if sizes and understood.operation:
                dimensions = list(eng.terms.operations[understood.operation].dims)
                unknown = [name for name in sizes if name not in dimensions]
                if unknown:
                    raise UsageError(
                        f"{understood.operation} has no dimension {', '.join(unknown)}",
                        code="dims_invalid",
                        hint=f"Its dimensions are {', '.join(dimensions)}.",
                    )
            warnings = [*eng.warnings, *answer.warnings]
        text = answer_text(answer)

        def show(console: Console) -> None:
            console.print(text, markup=False)
            if explain:
                console.print("\nHow it was read", markup=False)
                for name, value in understood.__dict__.items():
                    if value and name != "text":
                        console.print(f"  {name}: {value}", markup=False)
                for hit in answer.hits:
                    stages = score_stages(hit)
                    console.print(f"  {hit.score:.3f} {hit.passage.citation.reference} ({stages})", markup=False)

        code = ExitCode.ABSTAINED if answer.abstained else ExitCode.OK
        return Reply(AskData.of(answer, text, own), show, code, warnings)

    deliver("ask", json, debug, work)


def _check_owners(
    profile: Path | None,
    kernel: Path | None,
    ref: Path | None,
    of_kernel: Mapping[str, object],
    of_reference: Mapping[str, object],
) -> None:
    """Raises `UsageError` for options that say more of a file which was not given."""
    from kbs.common.errors import UsageError

    for given, options, what, hint in (
        (profile or kernel or ref, {**of_kernel, **of_reference}, "kernel", "Give --profile, --kernel or --ref."),
        (ref, of_reference, "reference", "Give it with --ref FILE."),
    ):
        stray = [name for name, value in options.items() if value]
        if given is None and stray:
            raise UsageError(
                f"{' and '.join(stray)} {'say' if len(stray) > 1 else 'says'} more of a {what}, and none was given",
                code=f"no_{what}",
                hint=hint,
            )


def _request(
    kernel: Path | None,
    ref: Path,
    inputs: Path | None,
    dims: str | None,
    entry: str | None,
    outputs: str,
    ptr_size: list[str],
    bytes: str,
    operations: str,
) -> Request:
    """How the reference is called and counted."""
    from kopt.cli.analysis.roofline import request_to_count
    from kopt.services.arguments import read_names, read_ptr_sizes

    return request_to_count(
        candidate=kernel or ref,
        role="kernel" if kernel is not None else "reference",
        ref=ref if kernel is not None else None,
        inputs=inputs,
        dims=dims,
        entry=entry,
        outputs=read_names(outputs),
        ptr_sizes=read_ptr_sizes(ptr_size),
        bytes=bytes,
        operations=operations,
        python=None,
        env=(),
        call_seconds=60.0,
        memory=None,
    )


def search(
    query: Annotated[str, typer.Argument(help="Words, identifiers, or a question.")],
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Kind of page: hardware, technique, kernel …")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag")] = None,
    language: Annotated[list[str] | None, typer.Option("--language")] = None,
    arch: Annotated[list[str] | None, typer.Option("--arch", help="Architecture, such as hopper.")] = None,
    vendor: Annotated[list[str] | None, typer.Option("--vendor")] = None,
    symptom: Annotated[list[str] | None, typer.Option("--symptom")] = None,
    confidence: Annotated[list[str] | None, typer.Option("--confidence")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, max=100, help="How many passages.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the score of each stage.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Find passages of the wikis by words and meaning. Filters may be repeated; different filters must all fit."""

    def work() -> Reply:
        from kbs.common.errors import ExitCode, UsageError
        from kopt.cli.knowledge.render import score_stages
        from kopt.cli.support import engine
        from kopt.services.results.answers import PassageData, SearchData

        if not query.strip():
            raise UsageError(
                "there is nothing to look for",
                code="empty_query",
                hint='Give words, for example, kopt search "bank conflict".',
            )
        filters = {
            "kind": kind or [],
            "tag": tag or [],
            "language": language or [],
            "arch": arch or [],
            "vendor": vendor or [],
            "symptom": symptom or [],
            "confidence": confidence or [],
        }
        with engine(results=k) as eng:
            count = eng.settings.values.results

            def look(store: Store) -> SearchResult:
                require_known(filters, store)
                return eng.search(store, query, filters, count)

            found = eng.with_store(look, vectors=True)
            warnings = [*eng.warnings, *(f"degraded: {reason}" for reason in found.degraded)]

        def show(console: Console) -> None:
            if not found.hits:
                console.print("nothing found", markup=False)
            for hit in found.hits:
                trail = " > ".join([hit.passage.title, *hit.passage.trail])
                console.print(f"{hit.passage.citation.reference}  {hit.score:.3f}  {trail}", markup=False)
                if explain:
                    stages = score_stages(hit)
                    console.print(f"    {stages}", markup=False)
                for line in [line for line in hit.passage.text.split("\n") if line.strip()][:2]:
                    console.print(f"    {line[:160]}", markup=False)

        data = SearchData(query=query, terms=found.terms, passages=[PassageData.of(hit) for hit in found.hits])
        return Reply(data, show, ExitCode.OK if found.hits else ExitCode.ABSTAINED, warnings)

    deliver("search", json, debug, work)


def require_known(filters: Mapping[str, Sequence[str]], store: Store) -> None:
    """Raises `UsageError` for a value that no page has: nothing could be found then, whatever the words."""
    from kbs.common.errors import UsageError

    for name, values in filters.items():
        known = store.values_of(name)
        for value in values:
            if value not in known:
                raise UsageError(
                    f"no page has the {name} {value!r}", code="filter_unknown", hint=f"Pages have {', '.join(known)}."
                )
