"""Tools of what was learned: log recommend, log search, wiki propose."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbs.common.errors import ExitCode, UsageError
from kbs.common.visible_text import visible_lines
from kopt.mcp.problem import NO_DIMS, Dims, File
from kopt.mcp.tool import Call, Done, tool

Name = Annotated[str, Field(max_length=200)]


@tool("log recommend", "experiments.RecommendData")
def log_recommend(
    _: Call,
    kernel: Annotated[str, Field(description="Kernel name, or the operation that it computes.", max_length=500)],
    backend: Annotated[Name, Field(description="triton or cuda.")] = "",
    gpu: Annotated[Name, Field(description="A product, or a family: h200, hopper.")] = "",
    bottleneck: Annotated[Name, Field(description="Class before the change: memory, compute, latency.")] = "",
    dims: Dims = NO_DIMS,
    dtype: Annotated[Name, Field(description="Element type: fp32, bf16.")] = "",
    limit: Annotated[int, Field(description="Number of methods.", ge=1, le=100)] = 5,
) -> Done:
    """Recommend methods that helped in similar experiments. Status `abstained` if nothing is similar."""
    from kopt.services.experience.log import recommended
    from kopt.services.results.experiments import RecommendData
    from kopt.services.results.telling.experiments import recommend_lines

    asked, advice = recommended(kernel, backend, gpu, bottleneck, dict(dims), dtype, limit)
    data = RecommendData(asked=asked, **vars(advice))
    told = "\n".join(recommend_lines(advice, explain=False))
    return Done(data, told, ExitCode.OK if data.recommended else ExitCode.ABSTAINED)


@tool("log search", "experiments.LogListData")
def log_search(
    call: Call,
    words: Annotated[str, Field(description="Words, or a sentence.", max_length=4000)],
    op: Annotated[Name, Field(description="Operation: softmax.")] = "",
    gpu: Annotated[Name, Field(description="A product, or a family.")] = "",
    method: Annotated[Name, Field(description="Method that was applied.")] = "",
    outcome: Annotated[
        tuple[Name, ...],
        Field(description="success, neutral, regression, incorrect, rejected, failed, unmeasured.", max_length=10),
    ] = (),
    limit: Annotated[int, Field(description="Number of experiments.", ge=1, le=1000)] = 10,
) -> Done:
    """Search experiments of the log, best match first: what was tried on which kernel, and what came of it."""
    from kopt.services.experience.filters import read_filter
    from kopt.services.experience.log import open_log, shipped_of
    from kopt.services.knowledge.log_search import search_log
    from kopt.services.results.experiments import LogListData
    from kopt.services.results.telling.experiments import entry_lines

    empty = dict.fromkeys(("kernel", "backend", "bottleneck", "dtype", "provenance", "run", "since", "until"), "")
    wanted = read_filter({**empty, "op": op, "chip": gpu, "method": method, "outcome": outcome})
    engine = call.engine()
    found = open_log(engine.settings)
    with found.index() as index:
        total, shipped = index.count(wanted), shipped_of(index, wanted)
    entries, result = search_log(engine, found, words, wanted, limit) if total else ([], None)
    data = LogListData.of(found, entries, total, shipped)
    degraded = [f"degraded: {why}" for why in (result.degraded if result else ())]
    told = "\n\n".join("\n".join(entry_lines(one)) for one in entries) or "No experiment was found."
    return Done(data, told, warnings=[*engine.warnings, *degraded, *map(str, found.problems())])


@tool("wiki propose", "wiki.ProposeData", writes=True)
def wiki_propose(
    call: Call,
    from_run: Annotated[str, Field(description="A finished run: name, id or folder.", max_length=4096)] = "",
    page: Annotated[File, Field(description="The file of a page, in place of a run.")] = "",
    wiki: Annotated[
        str,
        Field(description="Put it on a branch of this wiki's repository, by name or folder.", max_length=4096),
    ] = "",
    evidence: Annotated[
        tuple[str, ...], Field(description="What it rests on: receipt/HASH, an address.", max_length=50)
    ] = (),
) -> Done:
    """Propose a wiki page: one in a file, or what a run learned. It is for review, and nothing is accepted.

    With wiki (or a page alone, where there is one wiki of the user's own) it is put on the branch propose/KIND-SLUG of
    the wiki's git repository; the work tree stays as it is. Otherwise the page of the run is returned.
    """
    import datetime

    from kopt.services.curation.proposals import chosen_wiki, read_page_file
    from kopt.services.curation.proposals import propose as put
    from kopt.services.curation.repository import open_repository
    from kopt.services.results.wiki import ProposeData
    from kopt.services.runs.service import look
    from kopt.services.runs.wiki_proposal import propose as propose_page

    if bool(from_run) == bool(page):
        raise UsageError("give either page or from_run", code="propose_what", hint="A run's name, or a page's file.")
    into = call.roots.wiki(wiki) if wiki else None
    today, engine, rests_on = datetime.date.today(), call.engine(), list(evidence)
    if page:
        id, text = read_page_file(call.roots.file(page))
        data = ProposeData.model_validate({"id": id, "text": text, "problems": []})
    else:
        engine, view = look(call.roots.run(from_run))
        made = propose_page(view, engine.settings.home, engine.terms, today)
        data = ProposeData.from_domain(made)
        rests_on = [f"run {made.run}", *(f"receipt/{one}" for one in made.receipts), *evidence]
    if page or into is not None:
        target = chosen_wiki(engine, into)
        placed = put(open_repository(target, None), data.page, data.markdown, rests_on, engine.terms, today)
        data = data.on_branch(target.name, placed.branch, placed.commit, placed.problems)
    place = f"{data.page}: on branch {data.branch} of {data.wiki}, commit {data.commit[:12]}\n\n" if data.branch else ""
    problems = [f"{one.rule}, line {one.line}: {one.message}" for one in data.problems]
    told = place + visible_lines(data.markdown)
    return Done(data, told, warnings=[*engine.warnings, *data.left_out, *problems])
