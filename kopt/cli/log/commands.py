"""`kopt log`: what was tried before, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.log.options import (
    AllOption,
    BackendOption,
    BottleneckOption,
    ChipOption,
    DtypeOption,
    ExperimentOptions,
    FilterOptions,
    IdArgument,
    WhyOption,
)
from kopt.cli.options import DimsOption
from kopt.cli.output import JsonFlag, Reply
from kopt.cli.support import print_lines

if TYPE_CHECKING:
    from rich.console import Console

    from kbs.experience.entry import Entry
    from kbs.experience.log import ExperienceLog

log = typer.Typer(help="Record and search optimization experiments, and recommend methods.", no_args_is_help=True)
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Number of experiments to show.")]


@log.command("list")
@command("log list", paged=True)
def list_(
    filters: FilterOptions,
    masked: Annotated[bool, typer.Option("--masked", help="Show only masked experiments.")] = False,
    everything: AllOption = False,
    limit: LimitOption = 20,
) -> Reply:
    """List experiments, newest first."""
    from kopt.services.experience.log import open_log, shipped_of
    from kopt.services.results.telling.experiments import counted

    wanted = filters.read(True if masked else None if everything else False)
    found = open_log()
    with found.index() as index:
        entries = list(index.entries(wanted, limit, newest=True))
        total, shipped, of = index.count(wanted), shipped_of(index, wanted), index.count()
    more = f", {len(entries)} of them shown" if total > len(entries) else ""
    last = f"{counted(total)}{more}{_shipped(shipped)}, {found.files.root}" if entries else _none(found, of)
    return _listed(found, entries, (total, shipped), last)


def _shipped(count: int) -> str:
    from kbs.experience.entry import SHIPPED_WITH_KOPT

    return f", {count} of them {SHIPPED_WITH_KOPT}" if count else ""


@log.command()
@command("log search", paged=True)
def search(
    words: Annotated[
        list[str], typer.Argument(help="Words, or a sentence. Experiments that fit it in words or meaning are found.")
    ],
    filters: FilterOptions,
    everything: AllOption = False,
    limit: LimitOption = 10,
) -> Reply:
    """Search experiments, best match first."""
    from kopt.cli.support import engine
    from kopt.services.experience.log import open_log, shipped_of
    from kopt.services.knowledge.log_search import search_log
    from kopt.services.results.telling.experiments import counted

    wanted = filters.read(None if everything else False)
    with engine() as eng:
        found = open_log(eng.settings)
        with found.index() as index:
            total, shipped, of = index.count(wanted), shipped_of(index, wanted), index.count()
        entries, result = search_log(eng, found, " ".join(words), wanted, limit) if total else ([], None)
        told = [*eng.warnings, *(f"degraded: {why}" for why in (result.degraded if result else ()))]
    none = f"None of {counted(total)} fits." if total else _none(found, of)
    return _listed(found, entries, (total, shipped), "" if entries else none, told)


def _none(found: ExperienceLog, of: int = 0) -> str:
    """What to tell where no experiment was let through; `of`: how many the log has."""
    if of:
        from kopt.services.results.telling.experiments import counted

        return f"None of {counted(of)} has all that was asked for, {found.files.root}"
    where = f"No experiment was found in {found.files.root}."
    return f"{where} `kopt log add` and `kopt log import` add some; runs add theirs."


def _listed(
    found: ExperienceLog, entries: Sequence[Entry], counts: tuple[int, int], last: str, told: Sequence[str] = ()
) -> Reply:
    """`counts`: experiments that the filters let through, and those of them that ship with kopt."""
    from kopt.services.results.experiments import LogListData
    from kopt.services.results.telling.experiments import entry_line

    lines = [*map(entry_line, entries), *([last] if last else [])]
    return Reply(
        LogListData.of(found, entries, *counts),
        print_lines(lines),
        warnings=[*told, *(str(problem) for problem in found.problems())],
    )


@log.command()
@command("log show", paged=True)
def show(id: IdArgument) -> Reply:
    """Show everything that one record says."""
    return entry_reply(id)


def entry_reply(id: str) -> Reply:
    """The record that an id, `log/<id>` or the beginning of an id names. Raises `UsageError` (`log_unknown`,
    `log_ambiguous`)."""
    from kopt.services.experience.log import entry_of
    from kopt.services.results.experiments import EntryData, LogShowData
    from kopt.services.results.telling.experiments import entry_lines

    entry = entry_of(id)
    return Reply(LogShowData(entry=EntryData.from_domain(entry)), print_lines(entry_lines(entry)))


@log.command()
@command("log stats", paged=True)
def stats(filters: FilterOptions) -> Reply:
    """Count outcomes and effects by method, operation and GPU, with 95% intervals."""
    from dataclasses import replace

    from kbs.experience.stats import GROUPS, effects
    from kopt.services.experience.log import open_log, shipped_of
    from kopt.services.results.experiments import LogStatsData
    from kopt.services.results.telling.experiments import counted, effect_lines

    wanted = filters.read()
    found = open_log()
    with found.index() as index:
        by = {str(name): effects(index, name, wanted) for name in GROUPS}
        experiments, hidden = index.count(wanted), index.count(replace(wanted, masked=True))
        shipped = shipped_of(index, wanted)
        twice = len(index.duplicates())
    problems = [str(problem) for problem in found.problems()]
    left_out = f", {hidden} masked ones left out" if hidden else ""
    lines = [
        f"{counted(experiments)}{_shipped(shipped)}{left_out}, {found.files.root}" if experiments else _none(found)
    ]
    for name, rows in by.items():
        lines += [f"by {name}", *effect_lines(rows)] if rows else []
    warnings = list(problems)
    if twice:
        warnings.append(f"{twice} groups of records are of one experiment each: `kopt log merge` joins them")
    data = LogStatsData(
        folder=str(found.files.root), experiments=experiments, masked=hidden, by=by, shipped=shipped, duplicates=twice,
        problems=problems,
    )  # fmt: skip
    return Reply(data, print_lines(lines), warnings=warnings)


@log.command()
@command("log recommend", paged=True)
def recommend(
    kernel: Annotated[str, typer.Option("--kernel", help="Kernel name, or the operation that it computes.")],
    backend: BackendOption = "",
    chip: ChipOption = "",
    bottleneck: BottleneckOption = "",
    dims: DimsOption = None,
    dtype: DtypeOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="Number of methods.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Show every factor of the ranking.")] = False,
) -> Reply:
    """Recommend methods that helped in similar experiments. Exit code 3 if nothing is similar."""
    from kbs.common.errors import ExitCode
    from kopt.services.arguments import read_dims
    from kopt.services.experience.log import recommended
    from kopt.services.results.experiments import RecommendData
    from kopt.services.results.telling.experiments import recommend_lines

    asked, advice = recommended(kernel, backend, chip, bottleneck, read_dims(dims), dtype, limit, explain=explain)
    data = RecommendData(asked=asked, **vars(advice))
    code = ExitCode.OK if data.recommended else ExitCode.ABSTAINED
    return Reply(data, print_lines(recommend_lines(advice, explain)), code)


# --- writing ----------------------------------------------------------------------------------------------------------


@log.command()
@command("log add")
def add(optimization: Annotated[str, typer.Argument(help="What was changed.")], experiment: ExperimentOptions) -> Reply:
    """Add an experiment: measured if it has a receipt, reported if not."""
    from kbs.experience.entry import Entry
    from kopt.services.experience.log import add_experiment
    from kopt.services.results.experiments import AddData, EntryData
    from kopt.services.results.telling.experiments import entry_line

    added = add_experiment({"optimization": optimization, **experiment.fields()}, experiment.receipt)
    result = added.result
    entry = Entry(added.experiment) if result.added else result.there[0][1]
    lines = [*([] if result.added else ["the log already has it:"]), entry_line(entry)]
    data = AddData(entry=EntryData.from_domain(entry), added=bool(result.added), file=result.file)
    return Reply(data, print_lines(lines), warnings=added.notes)


@log.command()
@command("log mask")
def mask(id: IdArgument, why: WhyOption) -> Reply:
    """Leave an experiment out of lists, counts and recommendations. The record stays; `unmask` brings it back."""
    return _masked(id, True, why)


@log.command()
@command("log unmask")
def unmask(id: IdArgument, why: WhyOption) -> Reply:
    """Count a masked experiment again."""
    return _masked(id, False, why)


def _masked(id: str, masked: bool, why: str) -> Reply:
    from kopt.services.experience.log import open_log
    from kopt.services.results.experiments import EntryData, MaskData
    from kopt.services.results.telling.experiments import entry_line

    found = open_log()
    entry, changed = found.mask(id, masked, why)
    lines = [*([] if changed else [f"it {'is already' if masked else 'was not'} masked:"]), entry_line(entry)]
    data = MaskData(entry=EntryData.from_domain(entry), changed=changed)
    return Reply(data, print_lines(lines), warnings=list(found.files.notes))


# --- sharing ----------------------------------------------------------------------------------------------------------


@log.command()
@command("log merge")
def merge() -> Reply:
    """Join records of the same experiment: same receipt, or same run and iteration. All their ids stay valid."""
    from kopt.services.experience.log import open_log
    from kopt.services.results.experiments import JoinData, MergeData

    found = open_log()
    joins = found.merge()
    lines = [f"{', '.join(join.joined)}: {join.why}" for join in joins]
    data = MergeData(joined=[JoinData(ids=list(join.joined), why=join.why) for join in joins])
    many = f"{len(joins)} group{'s' if len(joins) > 1 else ''} of records joined"
    last = many if joins else "Nothing was joined: no two records are of the same experiment."
    return Reply(data, print_lines([*lines, last]), warnings=list(found.files.notes))


@log.command()
@command("log sync")
def sync() -> Reply:
    """Commit the log, pull, join duplicates and push, if the log's folder is in a git repository."""
    from dataclasses import asdict

    from kbs.experience.filters import Filter
    from kbs.experience.repository import sync as with_git
    from kopt.services.experience.log import open_log
    from kopt.services.results.experiments import SyncData

    found = open_log()
    done = with_git(found)
    with found.index() as index:
        experiments = index.count(Filter(masked=None))
    problems = [str(problem) for problem in found.problems()]
    where = done.remote or "no remote: nothing was pulled or pushed"
    lines = [
        f"{done.repository}, branch {done.branch}, {where}",
        f"{done.committed} commits made, {done.pulled} pulled, {done.pushed} pushed, "
        f"{done.joined} groups joined; {experiments} experiments",
    ]
    data = SyncData(**asdict(done), experiments=experiments, problems=problems)
    return Reply(data, print_lines(lines), warnings=[*found.files.notes, *problems])


@log.command()
@command("log export")
def export(
    filters: FilterOptions,
    format: Annotated[str, typer.Option("--format", help="json, jsonl, csv, parquet or mlflow.")] = "json",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write (default: standard output).")
    ] = None,
    everything: AllOption = False,
    json: JsonFlag = False,
) -> Reply:
    """Write experiments as JSON, JSON lines or CSV, which `kopt log import` reads, or for other tools.

    For those it is Parquet or MLflow's JSON of runs. An existing file is overwritten only if it is an export in the
    same format. Parquet needs --output, and the extra kopt[parquet]. No export has a key or token that kopt was given.

    Experiments that ship with kopt are written with --shipped alone.
    """
    import sys

    from kbs.common.errors import UsageError
    from kopt.services.experience.exports import check_format, export_log
    from kopt.services.experience.log import open_log, shipped_of
    from kopt.services.results.experiments import ExportData
    from kopt.services.results.telling.experiments import counted
    from kopt.services.settings import load_settings

    check_format(format)
    if json and output is None:
        raise UsageError(
            "--json and the export cannot both be printed", code="no_output", hint="Name a file with --output."
        )
    settings = load_settings()
    found = open_log(settings)
    wanted, left_out = filters.read(None if everything else False), []
    made, count = export_log(found, wanted, format, output, settings)
    if not count and wanted.shipped is None:
        with found.index() as index:
            if shipped := shipped_of(index, wanted):
                left_out = [f"{counted(shipped)} that ship with kopt are left out; --shipped writes them"]

    def show(console: Console) -> None:
        if output is None:
            sys.stdout.write(made.decode())
        else:
            console.print(f"{count} experiments written to {output}", markup=False)

    data = ExportData(file=str(output or ""), format=format, experiments=count)
    return Reply(data, show, warnings=[*map(str, found.problems()), *left_out])


@log.command("import")
@command("log import")
def import_(
    source: Annotated[
        Path, typer.Argument(help="An export, another tool's log (JSON, JSON lines, CSV, Markdown), or a run's folder.")
    ],
) -> Reply:
    """Add experiments from a file or a run's folder. Exit code 4 if a record cannot be kept."""
    from kbs.common.errors import ExitCode
    from kopt.services.experience.transfer import import_log
    from kopt.services.results.experiments import ImportData
    from kopt.services.results.telling.experiments import import_lines

    taken, result, notes = import_log(source)
    data = ImportData.of(taken, result)
    code = ExitCode.REJECTED if data.left_out else ExitCode.OK
    return Reply(data, print_lines(import_lines(data)), code, notes)
