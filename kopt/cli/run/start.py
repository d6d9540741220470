"""`kopt run plan` and `kopt run start`: what is asked for, the resolved plan, and the beginning of a run."""

from __future__ import annotations

import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.common.errors import ExitCode, UsageError
from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.cli.run.plan import plan_data

if TYPE_CHECKING:
    from kbs.common.json_model import JsonModel
    from kopt.services.engine import Engine
    from kopt.services.results.runs import RunPlanData
    from kopt.services.runs.service import Driving
    from loop.planning.plan import ResolvedPlan

_PROBLEM = "The problem"
_LIMITS = "Limits"
_RULES = "What is kept, and what is allowed"
_WHERE = "Where"


def start(
    workspace: Annotated[
        Path, typer.Argument(help="The folder with kernel and reference; its files are told apart by content.")
    ] = Path(),
    proposer: Annotated[
        str | None,
        typer.Option(
            "--proposer",
            help="agent: proposals are handed in. command: a program is asked. llm: a language model is. Required.",
        ),
    ] = None,
    command: Annotated[
        str, typer.Option("--command", help="The program: it reads a request on stdin and writes a proposal on stdout.")
    ] = "",
    command_timeout: Annotated[
        float, typer.Option("--command-timeout", help="Seconds that it has for an answer.", min=0.1, max=86400)
    ] = 900.0,
    model: Annotated[
        str,
        typer.Option(
            "--model", help="The language model: openai:NAME or anthropic:NAME; by default the setting `model`."
        ),
    ] = "",
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", help="Calls of the model in the whole run.", rich_help_panel=_LIMITS)
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="Tokens of its prompts and answers together.", rich_help_panel=_LIMITS),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", help="US dollars, by the prices that are set.", rich_help_panel=_LIMITS),
    ] = None,
    kernel: Annotated[
        Path | None, typer.Option("--kernel", help="The kernel, where several files could be it.")
    ] = None,
    ref: Annotated[Path | None, typer.Option("--ref", help="The reference, where several files could be it.")] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", help="Where inputs come from, as in `kopt bench`.", rich_help_panel=_PROBLEM),
    ] = None,
    dims: Annotated[
        str | None,
        typer.Option("--dims", help="Sizes: '{\"M\": 4096}' or M=4096,N=8192.", rich_help_panel=_PROBLEM),
    ] = None,
    workloads: Annotated[
        Path | None,
        typer.Option("--workloads", help="A .jsonl file of further sizes: right on all.", rich_help_panel=_PROBLEM),
    ] = None,
    vary: Annotated[
        str, typer.Option("--vary", help="Names of dims that may have any size.", rich_help_panel=_PROBLEM)
    ] = "",
    allow_library: Annotated[
        bool,
        typer.Option(
            "--allow-library", help="The kernel may compute with PyTorch and its like.", rich_help_panel=_PROBLEM
        ),
    ] = False,
    backend: Annotated[
        str | None, typer.Option("--backend", help="triton, cuda or torch.", rich_help_panel=_PROBLEM)
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", help="The class or function to run.", rich_help_panel=_PROBLEM)
    ] = None,
    outputs: Annotated[
        str, typer.Option("--outputs", help="Pointers that a .cu kernel writes: a,b.", rich_help_panel=_PROBLEM)
    ] = "",
    ptr_size: Annotated[
        list[str] | None,
        typer.Option("--ptr-size", help="Elements of a buffer: NAME=M*N. Repeatable.", rich_help_panel=_PROBLEM),
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option("--tolerance", help="ATOL,RTOL in place of the evaluator's bound.", rich_help_panel=_PROBLEM),
    ] = None,
    baselines: Annotated[
        str,
        typer.Option(
            "--baselines", help="What version 0 is compared with, as in `kopt bench`.", rich_help_panel=_PROBLEM
        ),
    ] = "eager,compile",
    bytes: Annotated[
        str, typer.Option("--bytes", help="Bytes that the problem moves: 2*M*N*4.", rich_help_panel=_PROBLEM)
    ] = "",
    operations: Annotated[
        str, typer.Option("--operations", help="Operations that it needs: 2*M*N*K.", rich_help_panel=_PROBLEM)
    ] = "",
    iterations: Annotated[
        int | None, typer.Option("--iterations", help="Versions after version 0 (3).", rich_help_panel=_LIMITS)
    ] = None,
    attempts: Annotated[
        int | None, typer.Option("--attempts", help="Attempts that a version has (3).", rich_help_panel=_LIMITS)
    ] = None,
    time: Annotated[
        str | None,
        typer.Option("--time", help="Limit of the whole run: 90, 30min, 2h.", rich_help_panel=_LIMITS),
    ] = None,
    target: Annotated[
        str,
        typer.Option("--target", help="Stop at 2.0x (of version 0) or 90% (of the floor).", rich_help_panel=_LIMITS),
    ] = "",
    restarts: Annotated[
        int, typer.Option("--restarts", help="Processes of each contender.", min=2, max=50, rich_help_panel=_LIMITS)
    ] = 5,
    seconds: Annotated[
        float,
        typer.Option("--seconds", help="Limit of the timed turns.", min=0.1, max=3600, rich_help_panel=_LIMITS),
    ] = 10.0,
    timeout: Annotated[
        float,
        typer.Option("--timeout", help="Seconds for one call.", min=0.1, max=3600, rich_help_panel=_LIMITS),
    ] = 60.0,
    minimum_effect: Annotated[
        float,
        typer.Option(
            "--minimum-effect",
            help="A version is kept where the lower bound of its gain is above this part.",
            min=0,
            max=0.99,
            rich_help_panel=_RULES,
        ),
    ] = 0.01,
    accept_unmeasured: Annotated[
        bool,
        typer.Option(
            "--accept-unmeasured", help="Keep correct versions where no time can be taken.", rich_help_panel=_RULES
        ),
    ] = False,
    partial_restart: Annotated[
        bool,
        typer.Option("--partial-restart", help="At a stall, mask half of what was not kept.", rich_help_panel=_RULES),
    ] = False,
    least_confidence: Annotated[
        str,
        typer.Option("--least-confidence", help="Of the specs that targets rest on.", rich_help_panel=_RULES),
    ] = "source-reported",
    forbid: Annotated[
        list[str] | None,
        typer.Option("--forbid", help="A method that is not to be used. Repeatable.", rich_help_panel=_RULES),
    ] = None,
    prefer: Annotated[
        list[str] | None,
        typer.Option("--prefer", help="A method to be tried first. Repeatable.", rich_help_panel=_RULES),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", help="The least element type: fp32.", rich_help_panel=_RULES)
    ] = "",
    registers: Annotated[
        int | None, typer.Option("--registers", help="At most so many a thread.", rich_help_panel=_RULES)
    ] = None,
    shared_memory: Annotated[
        str, typer.Option("--shared-memory", help="At most so much a block: '48 KiB'.", rich_help_panel=_RULES)
    ] = "",
    no_ncu: Annotated[bool, typer.Option("--no-ncu", help="Take no profile with ncu.", rich_help_panel=_RULES)] = False,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cuda:N or cpu; by default the first GPU, else cpu.", rich_help_panel=_WHERE),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", help="The product that specs are about; by default the one present.", rich_help_panel=_WHERE
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The run's folder; by default WORKSPACE/runs/NAME-NNN.", rich_help_panel=_WHERE),
    ] = None,
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place", help="Commit to a branch opt/KERNEL of the workspace's repository.", rich_help_panel=_WHERE
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the plan.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Stop after the plan.")] = False,
    json: JsonFlag = False,
    debug: DebugFlag = False,
) -> None:
    """Begin a run: show the plan, ask, create the run's folder, measure version 0, go on until a proposal is wanted.

    With `--proposer command` or `llm` it goes on to the report. Nothing is created before the plan is accepted. Exit
    code 4 if version 0 is not accepted, 3 if the plan is not.
    """
    words = {name: value for name, value in locals().items() if name not in ("yes", "dry_run", "json", "debug")}

    def work() -> Reply:
        from kopt.cli.run.drive import held
        from kopt.services.results.runs import RunStartData
        from kopt.services.runs.service import begin

        engine, resolved = _resolved(words)
        shown = plan_data(resolved)
        if dry_run or not _accepted(shown, yes=yes, json=json):
            code = ExitCode.OK if dry_run else ExitCode.ABSTAINED
            text = shown.text if dry_run else "nothing was created"
            return _reply(RunStartData(plan=shown, run=None), text, engine, code)
        root = begin(engine, resolved)
        with held(str(root)) as at:
            at.advance(command_timeout)
            return _started(shown, at)

    deliver("run start", json, debug, work)


def plan(**words: Any) -> None:
    """Look through a workspace and show the plan of a run: what was found, limits, rules, what would be created.

    It takes the words of `kopt run start` and creates nothing.
    """
    json, debug = words.pop("json"), words.pop("debug")

    def work() -> Reply:
        engine, resolved = _resolved(words)
        shown = plan_data(resolved)
        return _reply(shown, shown.text, engine, ExitCode.OK)

    deliver("run plan", json, debug, work)


def _resolved(words: dict[str, Any]) -> tuple[Engine, ResolvedPlan]:
    from kopt.cli.run.plan import resolve
    from kopt.cli.support import engine

    with engine() as eng:
        return eng, resolve(eng, words)


def _started(shown: RunPlanData, at: Driving) -> Reply:
    from kopt.cli.run.drive import run_reply
    from kopt.services.results.runs import RunData, RunStartData

    reply = run_reply(at)
    assert isinstance(reply.data, RunData)
    return replace(reply, data=RunStartData(plan=shown, run=reply.data))


def _reply(data: JsonModel, text: str, engine: Engine, code: ExitCode) -> Reply:
    from kopt.cli.run.text import print_lines

    return Reply(data, lambda console: print_lines(console, iter(text.splitlines())), code, engine.warnings)


def _accepted(shown: RunPlanData, *, yes: bool, json: bool) -> bool:
    """Whether the user agrees to the plan, which is shown on stderr. UsageError `not_accepted` where nobody can say."""
    from kbs.common.visible_text import visible

    sys.stderr.write("".join(f"{visible(line)}\n" for line in shown.text.splitlines()))
    if yes:
        return True
    if json or not sys.stdin.isatty():
        raise UsageError(
            "nothing was created: nobody was asked whether the plan is right",
            code="not_accepted",
            hint="Look at it with --dry-run, then add --yes.",
        )
    return typer.confirm("Begin?", err=True)


def _without(function: Any, *names: str) -> inspect.Signature:
    """The function's signature without some parameters."""
    whole = inspect.signature(function, eval_str=True)
    return whole.replace(parameters=[p for p in whole.parameters.values() if p.name not in names])


plan.__signature__ = _without(start, "yes", "dry_run")  # type: ignore[attr-defined]  # Typer reads it from there
