"""`kopt run status`, `list`, `show`, `report`: looking at runs. Nothing is written, and no lock is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.cli.run.drive import RunOption


def status(run: RunOption = None, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Say how a run stands, and what is next."""

    def work() -> Reply:
        from kopt.cli.run.text import print_lines, run_lines
        from kopt.services.results.runs import RunData
        from kopt.services.runs.service import look

        engine, view = look(run)
        data = RunData.of(view.folder, view.record, view.state)
        torn = ["the journal's last line is torn: `kopt run resume` sets it aside"] if view.torn else []
        return Reply(data, lambda console: print_lines(console, run_lines(data)), warnings=[*engine.warnings, *torn])

    deliver("run status", json, debug, work)


def list_(
    folder: Annotated[Path, typer.Argument(help="A workspace: the runs below its runs/ are listed.")] = Path(),
    all_: Annotated[bool, typer.Option("--all", help="All runs that were begun with this KOPT_HOME.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """List runs, finished and unfinished. Exit code 3 where there is none."""

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kopt.cli.run.text import list_lines, print_lines
        from kopt.services.results.runs import RunListData, RunListItem
        from kopt.services.runs.lookup import runs_below, runs_of_home
        from kopt.services.settings import load_settings

        found = runs_of_home(load_settings().home) if all_ else runs_below(folder.absolute())
        data = RunListData(runs=[RunListItem.of(one) for one in found])
        code = ExitCode.OK if data.runs else ExitCode.ABSTAINED
        return Reply(data, lambda console: print_lines(console, list_lines(data)), code)

    deliver("run list", json, debug, work)


def show(
    version: Annotated[str | None, typer.Argument(help="v3; without it what is fixed for the run.")] = None,
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Show what is fixed for a run, its files and its journal; or all of one version."""

    def work() -> Reply:
        from kbs.common.errors import UsageError
        from kopt.cli.run.text import print_lines, show_lines
        from kopt.services.arguments import read_version
        from kopt.services.results.runs import RunShowData, VersionData, journal_lines
        from kopt.services.runs.service import look

        engine, view = look(run)
        number = None if version is None else read_version(version)
        if number is not None and number >= len(view.state.versions):
            last = f"the last one is v{len(view.state.versions) - 1}" if view.state.versions else "it has none yet"
            raise UsageError(
                f"the run {view.record.id} has no v{number}: {last}",
                code="version_unknown",
                hint="See `kopt run status`.",
            )
        prefix = "" if number is None else f"v{number}/"
        data = RunShowData(
            run=view.record.id,
            folder=str(view.folder.root),
            record=view.record,
            version=None if number is None else VersionData.of(view.state.versions[number]),
            files={path: hash for path, hash in sorted(view.state.files.items()) if path.startswith(prefix)},
            journal=journal_lines(view.state, number),
        )
        return Reply(data, lambda console: print_lines(console, show_lines(data)), warnings=engine.warnings)

    deliver("run show", json, debug, work)


def report(run: RunOption = None, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Print final_report.md; of a run that has not ended, the report as it would be now, which is not written."""

    def work() -> Reply:
        from kopt.services.results.runs import RunReportData
        from kopt.services.runs.service import look, report_of

        engine, view = look(run)
        text, finished = report_of(view)
        data = RunReportData(
            run=view.record.id,
            folder=str(view.folder.root),
            finished=finished,
            markdown=text,
            files=sorted(view.state.reported.files) if view.state.reported else [],
        )
        notes = [] if finished else ["the run has not ended: this is how it stands, and nothing was measured again"]
        return Reply(
            data, lambda console: console.print(text, markup=False, end=""), warnings=[*engine.warnings, *notes]
        )

    deliver("run report", json, debug, work)
