"""`kopt run next`, `submit`, `gate`, `resume`, `final`: taking a run on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbs.common.visible_text import visible
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console

    from kopt.services.results.runs import BrokenData, RunSubmitData
    from kopt.services.runs.service import Driving
    from loop.journal.state import Phase
    from loop.run.submission import Submission

RunOption = Annotated[
    str | None,
    typer.Option("--run", help="Its folder, name or id; by default the one here, or the only one below ./runs."),
]
CommandTimeout = Annotated[
    float, typer.Option("--command-timeout", help="Seconds that the proposer's program has.", min=0.1, max=86400)
]


def next_(run: RunOption = None, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Say what is wanted of a proposer: the kernel to change, what was measured, evidence, methods, what failed so far.

    With --json all of it, as a program gets it on its standard input. Exit code 3 where no proposal is wanted.
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kopt.cli.run.text import next_lines, print_lines
        from kopt.services.results.runs import RunNextData, waiting_for
        from kopt.services.runs.service import brief_of, look
        from loop.journal.state import Phase

        engine, view = look(run)
        phase = view.state.phase(view.record)
        wanted = phase is Phase.PROPOSE
        go_on = waiting_for(view.record, phase, view.folder)
        why = f"no proposal is wanted: the run is at `{phase.value}`" + (f"; {go_on}" if go_on else "")
        data = RunNextData(
            run=view.record.id,
            folder=str(view.folder.root),
            phase=phase,
            why="" if wanted else why,
            request=brief_of(engine, view) if wanted else None,
        )
        code = ExitCode.OK if wanted else ExitCode.ABSTAINED
        return Reply(data, lambda console: print_lines(console, next_lines(data)), code, engine.warnings)

    deliver("run next", json, debug, work)


def submit(
    proposal: Annotated[str, typer.Argument(help="The proposal, a JSON file; - reads it from stdin.")],
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Hand in a proposal: the gate looks at it, then it is evaluated, profiled, gated again and committed.

    Exit code 4 if the gate refuses it (it is no attempt then), if it is not accepted, or if the version fails.
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kopt.cli.run.text import print_lines, submit_lines
        from loop.proposers.reading import read_proposal

        data = _read(proposal)
        with held(run) as at:
            number = len(at.driver.state.versions) - 1
            taken = at.driver.submit(read_proposal(data), data)
            if taken.accepted:
                at.driver.advance(at.steps)
            said = _submitted(at, number, taken)
            code = ExitCode.OK if said.outcome == "passed" else ExitCode.REJECTED
            return Reply(said, lambda console: print_lines(console, submit_lines(said)), code, at.notes)

    deliver("run submit", json, debug, work)


@contextmanager
def held(run: str | None) -> Iterator[Driving]:
    """The run that is meant, held; what is done is said on stderr."""
    from kopt.cli.output import progress_bar
    from kopt.services.runs.service import driving

    def step(phase: Phase, words: str) -> None:
        sys.stderr.write(f"{phase.value} {visible(words)}".rstrip() + "\n")
        sys.stderr.flush()

    with progress_bar() as bar, driving(run, bar, step) as at:
        yield at


def _read(place: str) -> bytes:
    from kbs.common.errors import UsageError
    from loop.proposers.reading import MAX_BYTES

    if place == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with Path(place).open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"the proposal {place} cannot be read: {why}", code="proposal_unreadable", hint="Check the path."
        ) from error


def _broken(taken: Submission) -> list[BrokenData]:
    from kopt.services.results.runs import BrokenData

    return [
        BrokenData(rule=one.rule, file=one.file, line=one.line or 0, message=one.message, mend=one.fix)
        for one in taken.broken
    ]


def _submitted(at: Driving, number: int, taken: Submission) -> RunSubmitData:
    """What came of a proposal for a version."""
    from kopt.services.results.runs import BrokenData, RunData, RunSubmitData

    run = RunData.of(at.driver.folder, at.driver.record, at.driver.state)
    version = at.driver.state.versions[number]
    if not taken.accepted:
        why = "the gate refused it; nothing ran, and it is no attempt"
        return RunSubmitData(version=number, outcome="refused", kept=False, why=why, broken=_broken(taken), run=run)
    closed = version.closed
    if closed is None:
        done = version.attempts[-1].evaluated
        why = f"{done.verdict.value}: {done.reason}" if done else "it is not evaluated yet: `kopt run resume`"
        return RunSubmitData(version=number, outcome="attempt_failed", kept=False, why=why, broken=[], run=run)
    broken = [
        BrokenData(
            rule=rule, file=f"v{number}", line=0, message="", mend=f"`kopt run gate v{number} --explain` says more."
        )
        for rule in (version.gated.rules if version.gated else ())
    ]
    return RunSubmitData(
        version=number, outcome=closed.outcome, kept=closed.kept, why=closed.why, broken=broken, run=run
    )


def gate(
    version: Annotated[str | None, typer.Argument(help="v3; by default the last one that was profiled.")] = None,
    final: Annotated[bool, typer.Option("--final", help="Look at the end of the run.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say of every rule what it asks, and why.")] = False,
    run: RunOption = None,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Look at a version as it stands on the disk, and say which rules are broken, where, and how to mend it.

    Writes nothing. Exit code 4 if a rule is broken.
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode, UsageError
        from kopt.cli.run.text import gate_lines, print_lines
        from kopt.services.arguments import read_version
        from kopt.services.results.runs import RuleData, RunGateData
        from kopt.services.runs.service import gate_look, look
        from loop.gate.rules import RULES

        if final and version is not None:
            raise UsageError(
                "--final is about the run as a whole", code="gate_final_version", hint="Leave the version out."
            )
        engine, view = look(run)
        report = gate_look(engine, view, None if version is None else read_version(version), final=final)
        rules = [RuleData(rule=r.id, stage=r.stage, title=r.title, explain=r.explain) for r in RULES] if explain else []
        data = RunGateData(run=view.record.id, folder=str(view.folder.root), report=report, rules=rules)
        code = ExitCode.OK if report.passed else ExitCode.REJECTED
        return Reply(data, lambda console: print_lines(console, gate_lines(data)), code, engine.warnings)

    deliver("run gate", json, debug, work)


def resume(
    run: RunOption = None,
    command_timeout: CommandTimeout = 900.0,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Go on with a run that was interrupted or waits: until a proposal is wanted, or to its end.

    With the proposer `command` the program is asked, with `llm` the model. What is recorded is not done again. Exit
    code 3 where nothing is left to do or the run waits for an agent, 4 where version 0 was not accepted.
    """

    def work() -> Reply:
        with held(run) as at:
            before = len(at.driver.state.entries)
            at.advance(command_timeout)
            return run_reply(at, idle=len(at.driver.state.entries) == before)

    deliver("run resume", json, debug, work)


def final(run: RunOption = None, json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """End a run: restore the best version, measure it again against version 0, and write the reports."""

    def work() -> Reply:
        with held(run) as at:
            before = len(at.driver.state.entries)
            at.finish()
            return run_reply(at, idle=len(at.driver.state.entries) == before)

    deliver("run final", json, debug, work)


def run_reply(at: Driving, *, idle: bool = False) -> Reply:
    """How the run stands after something was done; `idle`: nothing was."""
    from kbs.common.errors import ExitCode
    from kopt.cli.run.text import print_lines, run_lines
    from kopt.services.results.runs import BrokenData, RunData
    from loop.journal.state import Phase

    data = RunData.of(at.driver.folder, at.driver.record, at.driver.state)
    code = ExitCode.ABSTAINED if idle else ExitCode.OK
    rejected = at.driver.rejected
    broken = [] if rejected is None else BrokenData.of(rejected)
    if data.phase is Phase.BASELINE_FAILED or broken:
        code = ExitCode.REJECTED
    errors = [{"code": b.rule, "message": f"{b.file}:{b.line}: {b.message}", "hint": b.mend} for b in broken]

    def show(console: Console) -> None:
        print_lines(console, run_lines(data))
        if rejected is not None:
            print_lines(console, rejected.lines())

    return Reply(data, show, code, at.notes, errors)
