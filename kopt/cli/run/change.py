"""`kopt run extend`, `mask`, `stop`, `apply`: changing a run, and using what it found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver, tell
from kopt.cli.run.drive import RunOption, held, run_reply


def extend(
    iterations: Annotated[int, typer.Argument(help="How many more.", min=1, max=1000)],
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Allow more iterations; a run that had ended goes on with `kopt run resume`."""

    def work() -> Reply:
        with held(run) as at:
            at.driver.extend(iterations)
            return run_reply(at)

    deliver("run extend", json, debug, work)


def mask(
    version: Annotated[str, typer.Argument(help="v3")],
    undo: Annotated[bool, typer.Option("--undo", help="Show it to proposers again.")] = False,
    why: Annotated[str, typer.Option("--why", help="Kept in the journal.")] = "",
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Leave a version out of what proposers are told. Its files stay; the masking is an event of the journal."""

    def work() -> Reply:
        from kopt.services.arguments import read_version

        number = read_version(version)
        with held(run) as at:
            at.driver.mask(number, not undo, why)
            return run_reply(at)

    deliver("run mask", json, debug, work)


def stop(
    why: Annotated[str, typer.Option("--why", help="Kept in the journal and the report.")] = "",
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Begin no further version. `kopt run final` writes the reports, `kopt run extend` goes on all the same."""

    def work() -> Reply:
        with held(run) as at:
            at.driver.stop(why)
            return run_reply(at)

    deliver("run stop", json, debug, work)


def apply(
    run: RunOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; by default the kernel that the run began with.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference, and write nothing.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Copy the best version over the user's kernel, after showing the difference.

    What stood there is kept in the run's folder. Exit code 3 where there is nothing to change.
    """

    def work() -> Reply:
        import hashlib

        from kbs.common.errors import ExitCode, UsageError
        from kopt.services.results.runs import RunApplyData

        with held(run) as at:
            target = to.absolute() if to is not None else at.kernel
            state = at.driver.state
            difference = at.driver.difference(target)
            expect = hashlib.sha256(target.read_bytes()).hexdigest()
            best = state.final.version if state.final else state.best or 0
            data = RunApplyData(version=best, target=str(target), diff=difference, applied=False)
            if not difference:
                said = f"{target} is v{best} already"
                return Reply(data, lambda console: console.print(said, markup=False), ExitCode.ABSTAINED, at.notes)
            if dry_run:
                return Reply(data, lambda console: console.print(difference, markup=False), warnings=at.notes)
            tell(difference)
            if not yes and (json or not sys.stdin.isatty()):
                raise UsageError(
                    "nothing was written: nobody was asked",
                    code="not_accepted",
                    hint="Look at the difference with --dry-run, then add --yes.",
                )
            if not yes and not typer.confirm(f"Write v{best} to {target}?", err=True):
                return Reply(data, lambda console: console.print("nothing was written"), ExitCode.ABSTAINED, at.notes)
            at.driver.apply(target, expect)
            done = data.model_copy(update={"applied": True})
            said = f"wrote v{best} to {target}"
            return Reply(done, lambda console: console.print(said, markup=False), warnings=at.notes)

    deliver("run apply", json, debug, work)
