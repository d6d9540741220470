"""`kopt bench --bench-command`: the user's own benchmark, run as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.visible_text import visible
from kopt.cli.output import Reply

if TYPE_CHECKING:
    import typer
    from rich.console import Console

    from evaluator.external.figures import Figure
    from evaluator.external.record import ExternalReceipt

_TAKEN = ("candidate", "bench_command", "signal_command", "figure", "plan", "timeout", "receipt", "json", "debug")
"""Parameters of `kopt bench` that mean something beside a command of the user's."""
_LABEL = 13
_SHOWN = 40
"""Figures, and last lines, that a person is shown; the receipt has all."""


def external(
    context: typer.Context,
    *,
    candidate: Path,
    bench_command: str | None,
    signal_command: str | None,
    figure: list[str],
    plan: str,
    timeout: float,
    receipt: Path | None,
) -> Reply:
    """Run the command, read what it printed, seal and keep the record; parameters are those of `kopt bench`."""
    from evaluator.external.figures import read_patterns
    from evaluator.external.record import TIME_LIMIT, choose, run_external
    from evaluator.source.source_file import read_source
    from evaluator.store.seal import ensure_key, seal
    from evaluator.store.store import check_chosen, save_receipt
    from kbs.common.errors import ExitCode
    from kopt import __version__
    from kopt.cli.bench.external_schemas import ExternalData
    from kopt.cli.output import progress_bar
    from kopt.services.settings import load_settings

    _refuse_others(context, given=bench_command is not None or signal_command is not None)
    option, words = choose(bench_command, signal_command, plan)
    patterns = read_patterns(figure)
    source = read_source(candidate, "candidate")
    settings = load_settings()
    if receipt is not None:
        check_chosen(receipt)
    key = ensure_key(settings.home)
    with progress_bar() as bar:
        bar("the user's benchmark", 0, 1)
        ran = run_external(
            source,
            option,
            words,
            plan="signal" if plan == "signal" else "verdict",
            seconds=timeout if _given(context, "timeout") else TIME_LIMIT,
            patterns=patterns,
            kopt=__version__,
        )
    sealed = seal(ran, key)
    path = save_receipt(settings.home, sealed, receipt)

    def show(console: Console) -> None:
        report(console, sealed, path)

    errors = [_error(sealed, path)] if sealed.failed else []
    exit_code = ExitCode.FAILURE if sealed.failed else ExitCode.OK
    return Reply(ExternalData.of(sealed, path), show, exit_code, [visible(note) for note in sealed.notes], errors)


def report(console: Console, receipt: ExternalReceipt, path: Path) -> None:
    """Print it: first whose evidence it is. Figures and output are the command's own words."""
    from rich.text import Text

    head = Text("FAILED" if receipt.failed else "EXTERNAL", style="bold red" if receipt.failed else "bold yellow")
    what = visible(f"  {receipt.candidate.name}, by a command of the user's (evidence: external)")
    console.print(head.append(what, style="not bold default"))
    console.print(f"{_came_of(receipt)}; kopt measured nothing of it", markup=False)
    console.print("")
    for label, lines in _sections(receipt, path):
        for n, line in enumerate(lines):
            console.print(f"{label if n == 0 else '':<{_LABEL}} {visible(line)}", markup=False)


def _sections(receipt: ExternalReceipt, path: Path) -> Iterator[tuple[str, list[str]]]:
    more = len(receipt.figures) - _SHOWN
    rest = [f"and {more} more, in the receipt"] if more > 0 else []
    yield "figures", [*map(_figure, receipt.figures[:_SHOWN]), *rest] or ["none"]
    if receipt.failed:
        last = (receipt.stderr.text.strip() or receipt.stdout.text.strip()).splitlines()[-10:]
        yield "printed last", [line[:400] for line in last]
    yield "command", [" ".join(map(_quoted, receipt.command))]
    yield "not checked", list(receipt.not_checked)
    yield "receipt", [f"{path} (sealed with your key; evidence: external; {receipt.seconds:.1f} s)"]


def _figure(figure: Figure) -> str:
    said = f"{figure.value:.10g}{'' if figure.unit in ('', 'x', '%') else ' '}{figure.unit}"
    return f"{figure.name:<20} {said:<16} {figure.stream} line {figure.line}: {figure.text.strip()[:100]}"


def _came_of(receipt: ExternalReceipt) -> str:
    took = f"after {receipt.seconds:.1f} s"
    if receipt.exit_code is None:
        return f"the command was ended at its time limit, {took}"
    if receipt.exit_code < 0:
        return f"signal {-receipt.exit_code} ended the command {took}"
    return f"the command ended with exit code {receipt.exit_code} {took}"


def _error(receipt: ExternalReceipt, path: Path) -> dict[str, str]:
    code = "bench_command_timeout" if receipt.timed_out else "bench_command_failed"
    hint = "Give it more time with --timeout." if receipt.timed_out else "Run it by itself to see why."
    return {"code": code, "message": _came_of(receipt), "hint": f"{hint} What it printed is in {path}."}


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


def _refuse_others(context: typer.Context, *, given: bool) -> None:
    """Refuse what would mean nothing, rather than pass it by."""
    from kbs.common.errors import UsageError

    if not given:
        raise UsageError(
            "--figure reads what a command of the user's printed, and there is none",
            code="options_do_not_fit",
            hint="Give --bench-command too.",
        )
    others = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name and parameter.name not in _TAKEN and _given(context, parameter.name)
    ]
    if others:
        plural = len(others) > 1
        raise UsageError(
            f"{', '.join(others)} {'mean' if plural else 'means'} nothing beside --bench-command or --signal-command:"
            " kopt itself runs and measures nothing then",
            code="options_do_not_fit",
            hint=f"Leave {'them' if plural else 'it'} out, or run `kopt bench` without a command of your own too.",
        )


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
