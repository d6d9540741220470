"""`kopt run`: plan a run, start it, take it on, change it, and look at it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbs.common.errors import ExitCode, UsageError
from kbs.common.visible_text import visible, visible_lines
from kopt.cli.command import command
from kopt.cli.options import YesFlag
from kopt.cli.output import JsonFlag, Reply, progress_bar, tell
from kopt.cli.run.options import (
    SEARCH_SECONDS,
    CommandTimeoutOption,
    DevicesOption,
    PlanOptions,
    RunOption,
    SchedulerOption,
    SearchSecondsOption,
    VersionArgument,
    WordOptions,
)
from kopt.cli.support import print_lines
from kopt.cli.terminal.completion import runs
from kopt.services.arguments import read_version
from kopt.services.runs.telling import state as text
from kopt.services.runs.telling.request import commands, next_lines

if TYPE_CHECKING:
    from kbs.common.json_model import JsonModel
    from kopt.services.engine import Engine
    from kopt.services.runs.devices.choice import Choice
    from kopt.services.runs.service import Driving
    from loop.journal.state import Phase
    from loop.planning.plan import ResolvedPlan

run = typer.Typer(help="Optimize a kernel in steps that are measured, cited and gated.", no_args_is_help=True)


# --- beginning a run ------------------------------------------------------------------------------------------------


@command("run plan", run, reads_wikis=True)
def plan(options: PlanOptions) -> Reply:
    """Show the plan of a run: what was found, limits, rules, and what would be created.

    Takes the options of `kopt run start` and creates nothing.
    """
    from kopt.services.results.runs import RunPlanData

    engine, resolved = _resolved(options)
    shown = RunPlanData.of(resolved)
    return _reply(shown, shown.text.splitlines(), engine.warnings)


@command("run start", run, reads_wikis=True)
def start(
    options: PlanOptions,
    yes: YesFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan and stop.")] = False,
    json: JsonFlag = False,
) -> Reply:
    """Start a run: show the plan, ask, create the run's folder, and measure version 0.

    kopt then searches for faster kernels itself, to the final report. With `--proposer command` or `llm` a program or a
    model proposes them; with `agent` the run waits for `kopt run submit`. Nothing is created before you accept the
    plan. Exit codes: 4 if version 0 is not accepted, 3 if you decline the plan, 1 if no answer of the search, the
    program or the model was a proposal.
    """
    from kopt.services.results.runs import RunData, RunPlanData, RunStartData
    from kopt.services.runs.service import begin

    engine, resolved = _resolved(options)
    shown = RunPlanData.of(resolved)
    if dry_run:
        return _reply(RunStartData(plan=shown, run=None), shown.text.splitlines(), engine.warnings)
    if not _confirmed(f"{shown.text}\n", "Start the run?", yes=yes, json=json):
        return _reply(RunStartData(plan=shown, run=None), ["nothing was created"], engine.warnings, ExitCode.ABSTAINED)
    root = begin(engine, resolved)
    with _held(str(root), options.choice) as at:
        at.advance(options.proposer.command_timeout, options.proposer.search_seconds)
        reply = _run_reply(at)
        assert isinstance(reply.data, RunData)
        return replace(reply, data=RunStartData(plan=shown, run=reply.data))


def _resolved(options: PlanOptions) -> tuple[Engine, ResolvedPlan]:
    from kopt.cli.support import engine

    with engine() as eng:
        return eng, options.resolve(eng)


def _confirmed(shown: str, question: str, *, yes: bool, json: bool) -> bool:
    """Whether the user agrees to what is shown on stderr. UsageError `not_accepted` if nobody can be asked."""
    tell(shown)
    if yes:
        return True
    if json or not sys.stdin.isatty():
        raise UsageError(
            "nothing was done: it needs your confirmation",
            code="not_accepted",
            hint="Check it with --dry-run, then add --yes.",
        )
    return typer.confirm(question, err=True)


# --- taking a run on ---


@command("run next", run, reads_wikis=True, paged=True)
def next_(run: RunOption = None) -> Reply:
    """Show all that the next version is written from: kernel, measurements, passages, methods, what failed so far.

    It ends with the command that submits the new kernel. `--json` prints it as a program gets it on stdin. Exit code 3
    if no proposal is wanted.
    """
    from kopt.services.runs.handing_in import to_skip
    from kopt.services.runs.service import look
    from kopt.services.runs.submission import wanted

    engine, view = look(run)
    data = wanted(engine, view)
    skips = {} if data.request is None else to_skip(engine, view, data.request)
    code = ExitCode.ABSTAINED if data.request is None else ExitCode.OK
    return _reply(data, next_lines(data, skips, commands), engine.warnings, code)


@command("run submit", run, reads_wikis=True)
def submit(
    words: WordOptions,
    proposal: Annotated[str | None, typer.Argument(help="The proposal: a JSON file, or - for stdin.")] = None,
    run: RunOption = None,
    show: Annotated[
        bool, typer.Option("--show", "--dry-run", help="Show the proposal and what the gate says; submit nothing.")
    ] = False,
    devices: DevicesOption = "",
) -> Reply:
    """Submit a proposal: it is gated, evaluated, profiled, gated again, and committed.

    A proposal is a JSON file (`kopt schema run-proposal`), or is made from --kernel, --method and --why. Exit code 4 if
    the gate refuses it (this does not count as an attempt), if it is not accepted, or if the version fails.
    """
    from kopt.services.runs.devices.choice import Choice
    from kopt.services.runs.handing_in import typed_fix, typed_place
    from kopt.services.runs.submission import hand_in

    if words.given == (proposal is not None):
        raise UsageError(
            "a proposal is a JSON file or is made from words, not both" if words.given else "there is no proposal",
            code="proposal_twice" if words.given else "proposal_missing",
            hint="Give PROPOSAL.json, or --kernel FILE --method METHOD --why TEXT; `kopt run next` shows a command.",
        )
    data = b"" if proposal is None else _read(proposal)
    typed = words.words() if words.given else None
    with _held(run, Choice(devices)) as at:
        said, notes = hand_in(at, data, None if typed is None else (typed[0], typed[2]), show=show)
        code = ExitCode.OK if said.outcome in ("passed", "shown") else ExitCode.REJECTED
        place = partial(typed_place, kernel=str(typed[1])) if typed else str
        lines = text.submit_lines(said, place, Path.cwd(), typed_fix if typed else str)
        return _reply(said, lines, notes, code)


def _read(place: str) -> bytes:
    from loop.proposers.reading import MAX_BYTES

    if place == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(place).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"cannot read the proposal {place}: {why}", code="proposal_unreadable", hint="Check the path."
        ) from error


@command("run gate", run, reads_wikis=True, paged=True)
def gate(
    version: Annotated[
        str | None, typer.Argument(help="A version, such as v3 (default: the last profiled one).")
    ] = None,
    final: Annotated[bool, typer.Option("--final", help="Check the end of the run.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Explain every rule.")] = False,
    run: RunOption = None,
) -> Reply:
    """Check a version on disk against the gate's rules; show what is broken, where, and how to fix it.

    Writes nothing. Exit code 4 if a rule is broken.
    """
    from kopt.services.results.runs import RuleData, RunGateData
    from kopt.services.runs.service import gate_look, look
    from loop.gate.rules import RULES

    if final and version is not None:
        raise UsageError(
            "--final checks the whole run, not a version", code="gate_final_version", hint="Leave out the version."
        )
    engine, view = look(run)
    report = gate_look(engine, view, None if version is None else read_version(version), final=final)
    rules = [RuleData.from_domain(rule) for rule in RULES] if explain else []
    data = RunGateData(run=view.record.id, folder=str(view.folder.root), report=report, rules=rules)
    return _reply(data, text.gate_lines(data), engine.warnings, ExitCode.OK if report.passed else ExitCode.REJECTED)


@command("run verify", run)
def verify(run: RunOption = None) -> Reply:
    """Check that a run's records are unchanged, and whose seal its journal has: own key, foreign key, none or broken.

    A seal finds every edit by whoever lacks the key in KOPT_HOME. It does not bind a program that runs as you and can
    read the key. `kopt run gate --final` checks the rules too. Exit code 4 unless everything is as recorded and sealed
    with your own key.
    """
    from kopt.services.experience.log import open_log
    from kopt.services.runs.lookup import find_run
    from kopt.services.settings import load_settings
    from loop.run.verification import verify_run

    settings = load_settings()
    data = verify_run(find_run(run, Path.cwd(), settings.home), settings.home, open_log(settings))
    lines = print_lines(map(visible, text.verify_lines(data)))
    return Reply(data, lines, ExitCode.OK if data.ok else ExitCode.REJECTED)


@command("run status", run)
def status(run: RunOption = None) -> Reply:
    """Show how a run stands and what comes next."""
    from kopt.services.results.runs import RunData
    from kopt.services.runs.service import look

    engine, view = look(run)
    data = RunData.of(view.folder, view.record, view.state)
    torn = ["the journal's last line is incomplete: `kopt run resume` sets it aside"] if view.torn else []
    return _reply(data, text.run_lines(data, Path.cwd()), [*engine.warnings, *torn])


@command("run watch", run)
def watch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="RUN", autocompletion=runs, help="Folder, name or id of the run (default: the one here)."
        ),
    ] = None,
    json: JsonFlag = False,
) -> Reply:
    """Watch a run until it ends: iterations, the best version so far, what is being tried, the time left.

    Ctrl-C ends the view, and not the run. Without a terminal each event is a line; --json prints one object at the end.
    Exit code 4 if version 0 was not accepted.
    """
    from evaluator.receipt.plan import utc_now
    from kopt.cli.run.watch import follow, watch_lines
    from kopt.services.runs.service import look
    from kopt.services.runs.watching import watched
    from loop.journal.state import Phase

    engine, view = look(name)
    data = watched(follow(view, quiet=json), utc_now())
    code = ExitCode.REJECTED if data.run.phase is Phase.BASELINE_FAILED else ExitCode.OK
    return _reply(data, [] if sys.stdout.isatty() else watch_lines(data), engine.warnings, code)


@command("run resume", run, reads_wikis=True)
def resume(
    run: RunOption = None,
    command_timeout: CommandTimeoutOption = 900.0,
    search_seconds: SearchSecondsOption = SEARCH_SECONDS,
    devices: DevicesOption = "",
    scheduler: SchedulerOption = "",
) -> Reply:
    """Continue an interrupted or waiting run until it needs a proposal, or to its end.

    The proposer `search` goes on with its search, `command` runs its program, `llm` asks its model. Recorded work is
    not repeated. Exit codes: 3 if nothing is left to do or the run waits for an agent, 4 if version 0 was not
    accepted, 1 if no answer of the program or the model was a proposal.
    """
    from kopt.services.runs.devices.choice import Choice

    with _held(run, Choice(devices, scheduler)) as at:
        before = len(at.driver.state.entries)
        at.advance(command_timeout, search_seconds)
        return _run_reply(at, idle=len(at.driver.state.entries) == before)


@command("run final", run, reads_wikis=True)
def final(run: RunOption = None) -> Reply:
    """End a run: restore the best version, measure it again against version 0, and write the reports."""
    with _held(run) as at:
        before = len(at.driver.state.entries)
        at.driver.final(at.steps)
        return _run_reply(at, idle=len(at.driver.state.entries) == before)


# --- changing a run, and using what it found ------------------------------------------------------------------------


@command("run extend", run, reads_wikis=True)
def extend(
    iterations: Annotated[int, typer.Argument(help="Number of iterations to add.", min=1, max=1000)],
    run: RunOption = None,
) -> Reply:
    """Allow more iterations; `kopt run resume` continues a run that had ended."""
    with _held(run) as at:
        at.driver.extend(iterations)
        return _run_reply(at)


@command("run mask", run, reads_wikis=True)
def mask(
    version: VersionArgument,
    undo: Annotated[bool, typer.Option("--undo", help="Show it to proposers again.")] = False,
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the journal.")] = "",
    run: RunOption = None,
) -> Reply:
    """Hide a version from proposers. Its files stay; the journal records the change."""
    number = read_version(version)
    with _held(run) as at:
        at.driver.mask(number, not undo, why)
        return _run_reply(at)


@command("run stop", run, reads_wikis=True)
def stop(
    why: Annotated[str, typer.Option("--why", help="Reason, kept in the journal and the report.")] = "",
    run: RunOption = None,
) -> Reply:
    """Start no more versions. Then `kopt run final` writes the reports, or `kopt run extend` continues."""
    with _held(run) as at:
        at.driver.stop(why)
        return _run_reply(at)


@command("run apply", run, reads_wikis=True)
def apply(
    run: RunOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="File to write (default: the kernel that the run started from).")
    ] = None,
    yes: YesFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    json: JsonFlag = False,
) -> Reply:
    """Copy the best version over your kernel, after showing the difference.

    The run's folder keeps a copy of the file it replaces. Exit code 3 if there is nothing to change.
    """
    import hashlib

    from kbs.common.files import read_if_there
    from kopt.services.results.runs import RunApplyData

    with _held(run) as at:
        target = to.absolute() if to is not None else at.kernel
        state = at.driver.state
        difference = at.driver.difference(target)
        expect = hashlib.sha256(read_if_there(target) or b"").hexdigest()
        best = state.final.version if state.final else state.best or 0
        data = RunApplyData(version=best, target=str(target), diff=difference, applied=False)
        if not difference:
            return _reply(data, [f"{target} is already v{best}"], at.notes, ExitCode.ABSTAINED)
        if dry_run:
            return Reply(data, print_lines(visible_lines(difference).splitlines()), warnings=at.notes)
        if not _confirmed(difference, f"Write v{best} to {target}?", yes=yes, json=json):
            return _reply(data, ["nothing was written"], at.notes, ExitCode.ABSTAINED)
        at.driver.apply(target, expect)
        done = data.model_copy(update={"applied": True})
        return _reply(done, [f"wrote v{best} to {target}"], at.notes)


# --- looking at runs: nothing is written, and no lock is needed -------------------------------------------------------


@command("run list", run)
def list_(
    folder: Annotated[Path, typer.Argument(help="Workspace whose runs/ to list.")] = Path(),
    all_: Annotated[bool, typer.Option("--all", help="List all runs of this KOPT_HOME.")] = False,
) -> Reply:
    """List finished and unfinished runs."""
    from kopt.services.results.runs import RunListData, RunListItem
    from kopt.services.runs.lookup import runs_below, runs_of_home
    from kopt.services.settings import load_settings

    found = runs_of_home(load_settings().home) if all_ else runs_below(folder.absolute())
    data = RunListData(runs=[RunListItem.of(one) for one in found])
    return _reply(data, text.list_lines(data), [])


@command("run show", run, paged=True)
def show(
    version: Annotated[
        str | None, typer.Argument(help="A version, such as v3 (default: the run's fixed settings).")
    ] = None,
    run: RunOption = None,
) -> Reply:
    """Show a run's fixed settings, files and journal, or everything about one version."""
    from kopt.services.results.runs import RunShowData
    from kopt.services.runs.service import look

    engine, view = look(run)
    data = RunShowData.of(view, None if version is None else read_version(version))
    return _reply(data, text.show_lines(data), engine.warnings)


@command("run report", run, paged=True)
def report(run: RunOption = None) -> Reply:
    """Print final_report.md, or, before the run ends, the report as it would be now."""
    from kopt.services.results.runs import RunReportData
    from kopt.services.runs.service import look, report_of

    engine, view = look(run)
    page, finished = report_of(view)
    data = RunReportData.of(view, page, finished=finished)
    notes = [] if finished else ["the run has no final report: this is its current state, with nothing measured again"]
    return Reply(data, lambda console: console.print(page, markup=False, end=""), warnings=[*engine.warnings, *notes])


# --- what the commands share ----------------------------------------------------------------------------------------


@contextmanager
def _held(run: str | None, choice: Choice | None = None) -> Iterator[Driving]:
    """The run that is meant, locked; each step is reported on stderr. `choice`: further devices."""
    from kopt.services.runs.devices.choice import ALONE
    from kopt.services.runs.service import driving

    def step(phase: Phase, words: str) -> None:
        print(f"{phase.value} {visible(words)}".rstrip(), file=sys.stderr, flush=True)

    with progress_bar() as bar, driving(run, bar, step, choice or ALONE) as at:
        yield at


def _reply(data: JsonModel, lines: Iterable[str], warnings: list[str], code: ExitCode = ExitCode.OK) -> Reply:
    return Reply(data, print_lines(map(visible, lines)), code, warnings)


def _run_reply(at: Driving, *, idle: bool = False) -> Reply:
    """How the run stands after something was done; `idle`: nothing was."""
    from kopt.services.runs.submission import standing

    data, code, errors = standing(at, idle=idle)
    lines = [*text.run_lines(data, Path.cwd()), *(at.driver.rejected.lines() if at.driver.rejected else ())]
    lines += [f"error: {error['message']}" for error in errors if error["code"] == "no_proposal"]
    return replace(_reply(data, lines, at.notes, code), errors=errors)
