"""Tools that answer from the wikis: ask, search, show, spec, cite."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbs.common.errors import ExitCode, UsageError
from kbs.common.visible_text import visible, visible_lines
from kopt.mcp.problem import NO_DIMS, Bytes, Dims, Entry, File, Inputs, Launch, Operations, Peak, problem_files
from kopt.mcp.tool import Call, Done, tool

Words = Annotated[tuple[str, ...], Field(max_length=20)]


@tool("ask", "answering.answers.AskData")
def ask(
    call: Call,
    question: Annotated[str, Field(description="What you want to know, as one would ask it.", max_length=4000)],
    gpu: Annotated[Words, Field(description="GPUs that it is about, where its words leave that open: h100-sxm.")] = (),
    dtype: Annotated[str, Field(description="Element type: fp32, bf16.")] = "",
    evidence: Annotated[
        bool, Field(description="Claims with ids, citation lines to copy, and quoted lines, in place of prose.")
    ] = False,
    long: Annotated[bool, Field(description="All lines and all sources.")] = False,
    profile: Annotated[File, Field(description="Profile of the user's kernel: .ncu-rep, CSV, or a receipt.")] = "",
    kernel: Annotated[File, Field(description="The user's kernel, for a question about it.")] = "",
    ref: Annotated[File, Field(description="Its reference in PyTorch, whose bytes and operations are counted.")] = "",
    inputs: Inputs = "",
    dims: Dims = NO_DIMS,
    launch: Launch = "",
    entry: Entry = "",
    bytes: Bytes = "",
    operations: Operations = "",
    peak: Peak = "",
) -> Done:
    """Answer a question about GPUs and kernels from the wiki; code has checked the cited line of every claim.

    Status `abstained`: the evidence does not answer it, or the question assumes something false; say so to the user
    rather than guess. With profile, kernel or ref the answer is about that kernel. No language model is asked.
    """
    from kopt.services.knowledge.answer_text import answer_text
    from kopt.services.knowledge.answers import Asked
    from kopt.services.knowledge.answers import ask as find_answer
    from kopt.services.knowledge.evidence_text import evidence_text
    from kopt.services.results.answering.answers import AskData
    from kopt.services.results.answering.evidence import EvidenceData
    from kopt.services.user_kernel.analysis import KernelFiles

    files = None
    if profile or kernel or ref:
        problem = problem_files(call, kernel, ref, dims, entry, bytes, operations, inputs)
        files = KernelFiles(problem, call.roots.file(profile) if profile else None, launch, peak)
    engine = call.engine()
    found = find_answer(engine, Asked(question, tuple(gpu), dtype, dims, (), files))
    answer = found.answer
    engine.warn(answer.warnings)
    pack, text = None, answer_text(answer, long=long)
    if evidence:
        pack = EvidenceData.of(found.question, answer, engine.terms, engine.warnings)
        text = evidence_text(answer, pack.not_understood, engine.warnings, long=long)
    data = AskData.of(answer, text, found.kernel, inherited=found.inherited, evidence=pack, wording=None)
    return Done(data, text, ExitCode.ABSTAINED if answer.abstained else ExitCode.OK, engine.warnings)


@tool("search", "answering.answers.SearchData")
def search(
    call: Call,
    query: Annotated[str, Field(description="Words, identifiers, or a question.", max_length=4000)],
    kind: Annotated[Words, Field(description="Kinds of page: hardware, technique, kernel, experiment.")] = (),
    arch: Annotated[Words, Field(description="Architectures: hopper.")] = (),
    language: Annotated[Words, Field(description="Languages: triton, cuda.")] = (),
    operation: Annotated[Words, Field(description="Operations: softmax.")] = (),
    product: Annotated[Words, Field(description="GPUs: h100-sxm.")] = (),
    k: Annotated[int, Field(description="How many passages.", ge=1, le=100)] = 8,
) -> Done:
    """Find passages of the wikis and past experiments, by words and meaning. Filters must all fit."""
    from kopt.services.knowledge.answers import search as find_passages
    from kopt.services.results.answering.answers import PassageData, SearchData

    filters = {"kind": kind, "arch": arch, "language": language, "operation": operation, "product": product}
    engine = call.engine(results=k)
    found = find_passages(engine, query, filters)
    warnings = [*engine.warnings, *(f"degraded: {reason}" for reason in found.degraded)]
    data = SearchData(
        query=query, terms=found.terms, asked=found.asked, passages=[PassageData.of(hit) for hit in found.hits]
    )
    told = [
        f"{visible(' > '.join([one.reference, hit.passage.title, *one.headings]))}\n{visible_lines(one.text)}\n"
        for one, hit in zip(data.passages, found.hits, strict=True)
    ]
    return Done(data, "\n".join(told) or "No passage was found.", warnings=warnings)


@tool("show", "answering.citations.ShowData", "experiments.LogShowData")
def show(
    call: Call,
    reference: Annotated[
        str,
        Field(
            description="A citation such as gpu-wiki/kernel/softmax.md:L34, log/ID, or a page's id: kernel/softmax.",
            max_length=1000,
        ),
    ],
    context: Annotated[int, Field(description="Lines before and after.", ge=0, le=1000)] = 0,
) -> Done:
    """Read cited lines with their numbers, a whole page, or a record of the experience log."""
    from kbs.evidence.citation import EvidenceKind, parse_reference
    from kopt.services.experience.log import entry_of
    from kopt.services.knowledge.citations import read_lines
    from kopt.services.results.answering.citations import ShowData
    from kopt.services.results.experiments import EntryData, LogShowData
    from kopt.services.results.telling.experiments import entry_lines

    named = parse_reference(reference)
    if named is not None and named.kind is EvidenceKind.LOG:
        entry = entry_of(named.target)
        return Done(LogShowData(entry=EntryData.from_domain(entry)), "\n".join(entry_lines(entry)))
    engine = call.engine()
    data = ShowData.of(read_lines(engine.library, reference, context))
    text = "\n".join(f"{number:>5}  {line}" for number, line in data.lines)
    return Done(data, f"{data.reference}\n{text}", warnings=engine.warnings)


@tool("spec", "answering.citations.SpecData")
def spec(
    call: Call,
    gpu: Annotated[Words, Field(description="A GPU, or several to compare: h100-sxm. Empty: list all GPUs.")] = (),
    metric: Annotated[str, Field(description="Such as hbm_bandwidth; empty: all.", max_length=200)] = "",
    qualifier: Annotated[str, Field(description="Such as dense.", max_length=100)] = "",
    others: Annotated[bool, Field(description="Also values that the page does not recommend.")] = False,
) -> Done:
    """Look up hardware values, each with the line that states it. A missing one is in `gaps`, and never a guess."""
    from kopt.services.knowledge.specs import ask_specs, documented
    from kopt.services.results.answering.citations import SpecData

    engine = call.engine()
    if not gpu and (metric or qualifier):
        hint = "Name it, or several, as `gpu`; with no argument at all every GPU is listed."
        raise UsageError("no GPU is named", code="gpu_missing", hint=hint)
    if not gpu:
        listed = SpecData.of_gpus(documented(engine), engine.terms)
        told = "\n".join(f"{one.gpu}  {one.name}  {one.page}" for one in listed.gpus)
        return Done(listed, told, warnings=engine.warnings)
    found, answered = ask_specs(engine, gpu, metric, qualifier, others=others, compare=len(gpu) > 1)
    data = SpecData.of(found, engine.terms)
    lines = [*(row.citation_line for row in data.specs), *data.gaps]
    return Done(data, "\n".join(lines), ExitCode.OK if answered else ExitCode.ABSTAINED, engine.warnings)


@tool("cite", "answering.citations.CiteData")
def cite(
    call: Call,
    text: Annotated[
        str, Field(description="A text with citation lines, or JSON that kopt gave.", max_length=2_000_000)
    ],
    profile: Annotated[
        tuple[File, ...], Field(description="Profiles or receipts that the text cites.", max_length=10)
    ] = (),
) -> Done:
    """Check every citation of a text against what the cited lines say now. Status `rejected` if any fails, and
    `abstained` if there is none."""
    from kopt.services.knowledge.citations import check, checked_lines
    from kopt.services.results.answering.citations import CiteData

    engine = call.engine()
    checked = check(engine, text, [call.roots.file(one) for one in profile])
    data = CiteData.of(checked)
    warnings = list(engine.warnings)
    if not data.citations:
        warnings.append("no citation was found in the text")
        return Done(data, "No citation was found.", ExitCode.ABSTAINED, warnings)
    told = "\n".join(map(visible, checked_lines(checked)))
    return Done(data, told, ExitCode.REJECTED if data.failed else ExitCode.OK, warnings)
