"""`kopt log merge`, `sync`, `export` and `import`: records that come from elsewhere, or go there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import grouped
from kopt.cli.log.options import AllOption, FilterWords
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 20


def merge(json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Join records that are of one experiment: same receipt, or same run and iteration. All ids go on to name it."""

    def work() -> Reply:
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import JoinData, MergeData

        found = open_log()
        joins = found.merge()

        def show(console: Console) -> None:
            for join in joins:
                console.print(f"{', '.join(join.joined)}: {join.why}", markup=False)
            console.print(f"{len(joins)} groups of records joined", markup=False)

        data = MergeData(joined=[JoinData(ids=list(join.joined), why=join.why) for join in joins])
        return Reply(data, show, warnings=list(found.files.notes))

    deliver("log merge", json, debug, work)


def sync(json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Commit the log's files, pull, join duplicates, push: for a folder in a git repository."""

    def work() -> Reply:
        from dataclasses import asdict

        from kbs.experience.filters import Filter
        from kbs.experience.repository import sync as with_git
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import SyncData

        found = open_log()
        done = with_git(found)
        with found.index() as index:
            experiments = index.count(Filter(masked=None))
        problems = [str(problem) for problem in found.problems()]

        def show(console: Console) -> None:
            where = done.remote or "no remote: nothing was pulled or pushed"
            console.print(f"{done.repository}, branch {done.branch}, {where}", markup=False)
            console.print(
                f"{done.committed} commits made, {done.pulled} pulled, {done.pushed} pushed, "
                f"{done.joined} groups joined; {experiments} experiments",
                markup=False,
            )

        data = SyncData(**asdict(done), experiments=experiments, problems=problems)
        return Reply(data, show, warnings=[*found.files.notes, *problems])

    deliver("log sync", json, debug, work)


@grouped
def export(
    format: Annotated[str, typer.Option("--format", help="json or csv.")] = "json",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; without it, standard output.")] = None,
    *,
    words: FilterWords,
    everything: AllOption = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Write experiments as JSON or as a table (CSV). `kopt log import` reads both.

    A file that is there is overwritten only if it is an export of the same form.
    """

    def work() -> Reply:
        import sys

        from kbs.common.errors import UsageError
        from kbs.common.files import write_whole
        from kbs.experience.transfer.import_export import to_csv, to_json
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import ExportData

        writers = {"json": to_json, "csv": to_csv}
        if format not in writers:
            raise UsageError(f"--format {format[:40]!r} is not known", code="format_unknown", hint="It is json or csv.")
        if json and output is None:
            raise UsageError(
                "--json prints one object, and the export would be a second one",
                code="no_output",
                hint="Name a file with --output.",
            )
        wanted = words.read(None if everything else False)
        found = open_log()
        with found.index() as index:
            entries = list(index.entries(wanted))
        text = writers[format](entries)
        if output is not None:
            _check_free(output, format)
            write_whole(output, text.encode())

        def show(console: Console) -> None:
            if output is None:
                sys.stdout.write(text)
            else:
                console.print(f"{len(entries)} experiments written to {output}", markup=False)

        data = ExportData(file=str(output or ""), format=format, experiments=len(entries))
        return Reply(data, show, warnings=[str(problem) for problem in found.problems()])

    deliver("log export", json, debug, work)


def _check_free(path: Path, format: str) -> None:
    """Raises `UsageError` (`output_exists`) for a file that is no export of this form, `KoptError` for an unreadable
    one."""
    from kbs.common.errors import UsageError
    from kbs.common.files import may_overwrite
    from kbs.experience.transfer.import_export import begins

    if not may_overwrite(path, begins(format)):
        raise UsageError(
            f"{path} is there and no export of kopt as {format}: it is not overwritten",
            code="output_exists",
            hint="Choose another file with --output, or move that one away.",
        )


def import_(
    source: Annotated[Path, typer.Argument(help="An export, a log in the public form (JSON), or the folder of a run.")],
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Take experiments from a file or a run's folder. Exit code 4 where nothing of it could be read."""

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kbs.experience.transfer.import_export import read
        from kopt.services.experience_log import open_log, receipt_problem
        from kopt.services.results.experiments import ImportData
        from kopt.services.settings import load_settings

        loaded = load_settings()
        found = open_log(loaded)
        taken = read(source, lambda data: receipt_problem(data, loaded.home))
        result = found.take(taken)

        def show(console: Console) -> None:
            for problem in taken.problems[:_SHOWN]:
                console.print(problem, markup=False)
            if len(taken.problems) > _SHOWN:
                console.print(f"… {len(taken.problems) - _SHOWN} more lines; --json has all", markup=False)
            console.print(
                f"{len(result.added)} experiments added, {len(result.there)} were there already, "
                f"{len(taken.problems)} things could not be read",
                markup=False,
            )

        data = ImportData(
            added=[one.id for one in result.added],
            there=[entry.experiment.id for _, entry in result.there],
            problems=list(taken.problems),
        )
        code = ExitCode.REJECTED if taken.problems and not taken.experiments else ExitCode.OK
        return Reply(data, show, code, warnings=list(found.files.notes))

    deliver("log import", json, debug, work)
