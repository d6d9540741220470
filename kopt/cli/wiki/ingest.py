"""`kopt ingest`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console


def ingest(
    path: Annotated[
        Path | None, typer.Argument(help="Folder of a wiki to add; without it all known wikis are read.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the added wiki; by default its folder's.")] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Read every page again, and build the vector index anew.")
    ] = False,
    forget: Annotated[
        str | None, typer.Option("--forget", metavar="NAME", help="Forget an added wiki; its folder stays.")
    ] = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Bring the index up to date with the wikis. What did not change is not read or embedded again.

    A wiki given by PATH is remembered, and from then on read together with the bundled one.
    """

    def work() -> Reply:
        from ingest.update import problem_count
        from kbs.common.errors import UsageError
        from kopt.cli.support import engine
        from kopt.services.results.wiki import IngestData, ProblemData
        from wiki.library import open_wiki

        started = time.monotonic()
        with engine() as eng:
            if forget is not None and not eng.forget(forget):
                known = ", ".join(eng.registered()) or "none"
                raise UsageError(
                    f"no wiki named {forget} was added", code="wiki_unknown", hint=f"Added wikis: {known}."
                )
            if path is not None:
                eng.register(open_wiki(path, name))
            elif name is not None:
                raise UsageError(
                    "--name needs the PATH of a wiki", code="name_without_path", hint="kopt ingest PATH --name NAME"
                )
            result = eng.update(rebuild=rebuild)
            wikis = [{"name": wiki.name, "root": str(wiki.root)} for wiki in eng.wikis]
            with eng.index.open() as store:
                counts = store.counts()
            warnings = list(eng.warnings)
        problems = [
            ProblemData(wiki=key.split("/", 1)[0], **vars(problem))
            for key, found in sorted(result.problems.items())
            for problem in found
        ]
        errors, _ = problem_count(result.problems)
        if errors:
            warnings.append(f"{errors} problems in pages; `kopt wiki lint` lists all")
        seconds = time.monotonic() - started

        def show(console: Console) -> None:
            for problem in problems[:50]:
                console.print(
                    f"{problem.wiki}/{problem.path}:{problem.line}: {problem.rule}: {problem.message}", markup=False
                )
            done = (
                f"{result.pages_read} pages read, {result.pages_removed} removed, {result.embedded} passages embedded"
            )
            carried = f" ({result.carried} vectors came with kopt)" if result.carried else ""
            console.print(f"{done}{carried}, {seconds:.1f} s", markup=False)
            total = f"{counts['pages']} pages, {counts['passages']} passages, {counts['specs']} specs"
            console.print(f"the index holds {total} of {', '.join(w['name'] for w in wikis)}", markup=False)

        data = IngestData(
            wikis=wikis,
            pages_read=result.pages_read,
            pages_removed=result.pages_removed,
            pages=counts["pages"],
            passages=counts["passages"],
            specs=counts["specs"],
            embedded=result.embedded,
            carried=result.carried,
            generation=result.generation,
            seconds=round(seconds, 3),
            problems=problems,
        )
        return Reply(data, show, warnings=warnings)

    deliver("ingest", json, debug, work)
