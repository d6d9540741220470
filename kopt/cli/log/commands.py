"""`kopt log`: what was tried before, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import grouped
from kopt.cli.log.options import (
    AllOption,
    BackendOption,
    BottleneckOption,
    ChipOption,
    DtypeOption,
    FilterWords,
    MaskedOption,
    read_bottleneck,
)
from kopt.cli.log.transfer import export, import_, merge, sync
from kopt.cli.log.write import IdArgument, add, mask, unmask
from kopt.cli.options import DimsOption
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

log = typer.Typer(help="What was tried on which kernel, and what came of it.", no_args_is_help=True)
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show.")]


@log.command("list")
@grouped
def list_(
    *,
    words: FilterWords,
    masked: MaskedOption = False,
    everything: AllOption = False,
    limit: LimitOption = 20,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """List experiments, the newest first."""

    def work() -> Reply:
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import EntryData, LogListData

        wanted = words.read(True if masked else None if everything else False)
        found = open_log()
        with found.index() as index:
            entries, total = list(index.entries(wanted, limit, newest=True)), index.count(wanted)

        def show(console: Console) -> None:
            from kopt.cli.log.text import entry_line

            for entry in entries:
                console.print(entry_line(entry), markup=False)
            more = f", {len(entries)} of them shown" if total > len(entries) else ""
            console.print(f"{total} experiments{more}, {found.files.root}", markup=False)

        data = LogListData(
            folder=str(found.files.root), entries=[EntryData.from_domain(one) for one in entries], total=total
        )
        return Reply(data, show, warnings=[str(problem) for problem in found.problems()])

    deliver("log list", json, debug, work)


@log.command()
def show(id: IdArgument, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Show all that a record says."""

    def work() -> Reply:
        return entry_reply(id)

    deliver("log show", json, debug, work)


def entry_reply(id: str) -> Reply:
    """All that the record of an id says, of `log/<id>`, or of the beginning of one that is enough. Raises `UsageError`
    (`log_unknown`, `log_ambiguous`)."""
    from kbs.experience.log import find
    from kopt.services.experience_log import open_log
    from kopt.services.results.experiments import EntryData, LogShowData

    with open_log().index() as index:
        entry = find(index, id)

    def show(console: Console) -> None:
        from kopt.cli.log.text import entry_lines

        for line in entry_lines(entry):
            console.print(line, markup=False)

    return Reply(LogShowData(entry=EntryData.from_domain(entry)), show)


@log.command()
@grouped
def search(
    sought: Annotated[
        list[str], typer.Argument(metavar="WORDS", help="Words; experiments that have all of them, or else any.")
    ],
    *,
    words: FilterWords,
    everything: AllOption = False,
    limit: LimitOption = 10,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Find experiments by words, the best match first."""

    def work() -> Reply:
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import EntryData, LogListData

        wanted = words.read(None if everything else False)
        found = open_log()
        with found.index() as index:
            entries, total = index.search(" ".join(sought), wanted, limit), index.count(wanted)

        def show(console: Console) -> None:
            from kopt.cli.log.text import entry_line

            for entry in entries:
                console.print(entry_line(entry), markup=False)
            if not entries:
                console.print(f"none of {total} experiments has these words", markup=False)

        data = LogListData(
            folder=str(found.files.root), entries=[EntryData.from_domain(one) for one in entries], total=total
        )
        return Reply(data, show, warnings=[str(problem) for problem in found.problems()])

    deliver("log search", json, debug, work)


@log.command()
@grouped
def stats(*, words: FilterWords, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Count outcomes and effects by method, operation and GPU, with 95 % intervals."""

    def work() -> Reply:
        from dataclasses import replace

        from kbs.experience.stats import GROUPS, effects
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import LogStatsData

        wanted = words.read()
        found = open_log()
        with found.index() as index:
            by = {name: effects(index, name, wanted) for name in GROUPS}
            counted, hidden = index.count(wanted), index.count(replace(wanted, masked=True))
            twice = len(index.duplicates())
        problems = [str(problem) for problem in found.problems()]

        def show(console: Console) -> None:
            from kopt.cli.log.text import effect_lines

            console.print(f"{counted} experiments, {hidden} masked ones left out, {found.files.root}", markup=False)
            for name, rows in by.items():
                console.print(f"by {name}", markup=False)
                for line in effect_lines(rows):
                    console.print(line, markup=False)

        warnings = list(problems)
        if twice:
            warnings.append(f"{twice} groups of records are of one experiment each: `kopt log merge` joins them")
        data = LogStatsData(
            folder=str(found.files.root),
            experiments=counted,
            masked=hidden,
            by={str(name): rows for name, rows in by.items()},
            duplicates=twice,
            problems=problems,
        )
        return Reply(data, show, warnings=warnings)

    deliver("log stats", json, debug, work)


@log.command()
def recommend(
    kernel: Annotated[
        str, typer.Option("--kernel", help="The kernel, by the operation that it computes, or its name.")
    ],
    backend: BackendOption = "",
    chip: ChipOption = "",
    bottleneck: BottleneckOption = "",
    dims: DimsOption = None,
    dtype: DtypeOption = "",
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many methods.")] = 5,
    explain: Annotated[bool, typer.Option("--explain", help="Show every factor of the ranking.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Recommend methods by what similar experiments brought. Exit code 3 where there is nothing similar."""

    def work() -> Reply:
        from dataclasses import asdict
        from datetime import UTC, datetime

        from kbs.common.errors import ExitCode
        from kbs.experience.ranking.recommend import recommend as ranked
        from kbs.experience.ranking.similarity import Situation
        from kopt.services.arguments import read_dims
        from kopt.services.experience_log import open_log
        from kopt.services.results.experiments import RecommendData

        asked = Situation.of(kernel, backend, chip, read_bottleneck(bottleneck), read_dims(dims), dtype)
        with open_log().index() as index:
            advice = ranked(asked, index.trials(), datetime.now(UTC), limit, explain=explain)
        data = RecommendData(asked=asdict(asked), **vars(advice))

        def show(console: Console) -> None:
            from kopt.cli.log.text import recommend_lines

            for line in recommend_lines(advice, explain):
                console.print(line, markup=False)

        return Reply(data, show, ExitCode.OK if data.recommended else ExitCode.ABSTAINED)

    deliver("log recommend", json, debug, work)


log.command()(add)
log.command()(mask)
log.command()(unmask)
log.command()(merge)
log.command()(sync)
log.command()(export)
log.command("import")(import_)
