"""`kopt ingest`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import engine, print_lines

if TYPE_CHECKING:
    from kopt.services.results.wiki import IngestData

_SHOWN = 50
"""Problems that are printed; `kopt wiki lint` lists all."""


@command("ingest", reads_wikis=True)
def ingest(
    place: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME] PATH", help="Folder of a wiki to add (default: update all wikis)."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="Name of the added wiki (default: its folder's).")] = None,
    kind: Annotated[
        str, typer.Option("--as", help="What PATH is: wiki, or notes for text that is searched and quoted.")
    ] = "wiki",
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every page again, and rebuild all indexes.")] = False,
    forget: Annotated[
        str | None, typer.Option("--forget", metavar="NAME", help="Forget an added wiki, or notes; the folder stays.")
    ] = None,
) -> Reply:
    """Bring the index up to date with the wikis. Only what changed is read and embedded.

    A wiki given by PATH is remembered, and from then on read together with the bundled one.

    With --as notes, PATH is a folder of Markdown or text without front matter: notes on papers, an old wiki. They are
    searched, quoted by `kopt ask` after the wiki, and cited as note/NAME/FILE:L3. A note is never the source of a
    hardware value.
    """
    from ingest.update import problem_count
    from kbs.common.errors import UsageError
    from kopt.services.results.wiki import IngestData, ProblemData
    from kopt.services.wikis import ingest_wikis

    if kind not in ("wiki", "notes"):
        raise UsageError(
            f"PATH cannot be added as {kind!r}", code="kind_unknown", hint="Give --as wiki, or --as notes."
        )
    if place and (len(place) > 2 or (len(place) == 2 and name is not None)):
        raise UsageError("give one PATH, and one NAME", code="too_many_paths", hint="kopt ingest --as notes NAME PATH")
    if place and len(place) == 2:
        name = place[0]
    path = Path(place[-1]) if place else None
    started = time.monotonic()
    with engine() as eng:
        result = ingest_wikis(eng, path, name, notes=kind == "notes", rebuild=rebuild, forget=forget)
        wikis = [{"name": wiki.name, "root": str(wiki.root)} for wiki in eng.wikis]
        with eng.index.open() as store:
            counts, records = store.counts(), store.record_count()
    errors, _ = problem_count(result.problems)
    if errors:
        eng.warnings.append(f"{errors} problems in pages; `kopt wiki lint` lists all")
    data = IngestData(
        wikis=wikis,
        pages_read=result.pages_read,
        pages_removed=result.pages_removed,
        pages=counts["pages"],
        passages=counts["passages"],
        records=records,
        specs=counts["specs"],
        embedded=result.embedded,
        carried=result.carried,
        generation=result.generation,
        seconds=round(time.monotonic() - started, 3),
        problems=[
            ProblemData(wiki=key.removesuffix(f"/{problem.path}"), **vars(problem))
            for key, found in sorted(result.problems.items())
            for problem in found
        ],
    )
    return Reply(data, print_lines(_lines(data)), warnings=eng.warnings)


def _lines(data: IngestData) -> Iterator[str]:
    for one in data.problems[:_SHOWN]:
        yield f"{one.wiki}/{one.path}:{one.line}: {one.rule}: {one.message}"
    done = f"{data.pages_read} pages read, {data.pages_removed} removed, {data.embedded} texts embedded"
    carried = f" ({data.carried} vectors came with kopt)" if data.carried else ""
    yield f"{done}{carried}, {data.seconds:.1f} s"
    total = f"{data.pages} pages, {data.passages} passages, {data.specs} specs"
    log = f", and {data.records} records of the experience log" if data.records else ""
    yield f"the index holds {total} of {', '.join(wiki['name'] for wiki in data.wikis)}{log}"
