"""What every command prints: one envelope with `--json`, text for people otherwise, and the exit code."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbs.common.errors import ExitCode, KoptError
from kbs.common.visible_text import visible_lines
from kopt.cli.terminal.console import console
from kopt.cli.terminal.pager import show_paged
from kopt.services.results.envelope import STATUS, envelope
from kopt.services.settings import debug_requested

if TYPE_CHECKING:
    from rich.console import Console

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
DebugFlag = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


@dataclass
class Reply:
    """What a command has to say."""

    data: object
    """A `JsonModel`, or a `JsonDataclass`."""
    show: Callable[[Console], None]
    """Prints it for a person."""
    exit_code: ExitCode = ExitCode.OK
    warnings: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)


def deliver(command: str, as_json: bool, debug: bool, work: Callable[[], Reply], *, paged: bool = False) -> None:
    """Run a command's work and print what came of it; ends the process with its exit code.

    `paged`: what is longer than the terminal goes through the user's pager.
    """
    try:
        reply = work()
    except KoptError as error:
        if debug or debug_requested():
            traceback.print_exc()
        fail(command, as_json, error.exit_code, error.code, error.message, error.hint, error.warnings)
    except (KeyboardInterrupt, typer.Abort) as ended:
        asked = isinstance(ended, typer.Abort)
        hint = "Nothing is done without an answer." if asked else "Run the command again: it goes on where it was."
        fail(command, as_json, ExitCode.FAILURE, "interrupted", "interrupted", hint)
    except Exception as error:
        if debug or debug_requested():
            traceback.print_exc()
        hint = "Run it again with --debug and report what it prints."
        fail(command, as_json, ExitCode.FAILURE, "internal", f"{type(error).__name__}: {error}", hint)
    if as_json:
        from kbs.common.json_model import json_value

        data = json_value(reply.data)
        _print_json(command, STATUS[reply.exit_code], data, reply.warnings, reply.errors)
    else:
        with whole_pipe():
            for warning in reply.warnings:
                tell(f"warning: {warning}\n")
            _show(reply, paged=paged)
            sys.stdout.flush()
    raise typer.Exit(int(reply.exit_code))


def _show(reply: Reply, *, paged: bool) -> None:
    out = console()
    if not paged or not sys.stdout.isatty():
        reply.show(out)
        return
    with out.capture() as captured:
        reply.show(out)
    show_paged(captured.get(), out.width, out.height)


def fail(
    command: str,
    as_json: bool,
    exit_code: ExitCode,
    code: str,
    message: str,
    hint: str,
    warnings: Sequence[str] = (),
) -> None:
    """Print an error and end the process."""
    if as_json:
        _print_json(
            command, STATUS[exit_code], None, list(warnings), [{"code": code, "message": message, "hint": hint}]
        )
    else:
        for warning in warnings:
            tell(f"warning: {warning}\n")
        tell(f"error: {message}\n{hint}\n" if hint else f"error: {message}\n")
    raise typer.Exit(int(exit_code))


def tell(text: str) -> None:
    """Write to stderr; what a terminal would obey is written out."""
    sys.stderr.write(visible_lines(text))


def _print_json(command: str, status: str, data: Any, warnings: list[str], errors: list[dict[str, str]]) -> None:
    made = envelope(command, status, data, warnings, errors)
    text = json.dumps(made, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a path that is not UTF-8, or a stream that cannot have every letter
        text = json.dumps(made)
    with whole_pipe():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


@contextmanager
def whole_pipe() -> Iterator[None]:
    """A reader that closes the pipe early, such as `head`, ends the output quietly."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class ProgressBar:
    """A progress bar on stderr with rate and time left; on no terminal, a line for each step and every ten seconds."""

    EVERY = 10.0

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._bar: Any = None
        self._task: Any = None
        self._step = ""
        self._began = self._said = 0.0
        self._first = 0

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done of a step."""
        now, new = self._clock(), step != self._step
        if new:
            self._step, self._began, self._said, self._first = step, now, now, done
        rate = (done - self._first) / (now - self._began) if now > self._began else 0.0
        if not sys.stderr.isatty():
            if new and total:
                sys.stderr.write(f"{step} ({total}) ...\n")
            elif now - self._said >= self.EVERY:
                self._said = now
                left = f", {duration((total - done) / rate)} left" if rate and done < total else ""
                sys.stderr.write(f"{step}: {done} of {total}, {rate:.3g}/s{left}\n")
                sys.stderr.flush()
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            told = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
            )
            self._bar = Progress(*told, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
        if new:
            self._task = self._bar.add_task(step, total=total, rate="")
        self._bar.update(self._task, completed=done, total=total, rate=f"{rate:.3g}/s" if rate else "")

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def duration(seconds: float) -> str:
    """`40 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def progress_bar() -> Iterator[ProgressBar]:
    """A progress bar that is taken away whatever happens."""
    bar = ProgressBar()
    try:
        yield bar
    finally:
        bar.close()
