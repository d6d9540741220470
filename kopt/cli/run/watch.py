"""`kopt run watch`: a run as it goes on, on a terminal as one view, elsewhere as a line for each event."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kopt.cli.output import duration
from kopt.cli.terminal.console import console
from kopt.services.runs.telling.state import labelled, run_lines

if TYPE_CHECKING:
    from kopt.services.results.runs import RunWatchData
    from loop.run.driver import View

EVERY = 1.0
"""Seconds between two looks at the journal."""
_EVENTS = 6
"""Events that the view shows."""
_BAR = 20


def follow(view: View, *, quiet: bool) -> View:
    """Show a run until it ends or Ctrl-C is pressed, and return it as it was then. `quiet`: show nothing."""
    from kopt.services.runs.watching import views

    show = contextlib.nullcontext(_nothing) if quiet else _live() if sys.stdout.isatty() else _by_line()
    try:
        with show as shown:
            for now in views(view.folder.root, lambda: time.sleep(EVERY)):
                view = now
                shown(view)
    except KeyboardInterrupt:
        pass  # it ends the view, and nothing of the run
    return view


Show = Callable[["View"], None]


def _nothing(_: View) -> None:
    pass


@contextlib.contextmanager
def _by_line() -> Iterator[Show]:
    """Prints each event once."""
    from kopt.services.runs.watching import event_line

    out, printed = console(), 0

    def show(view: View) -> None:
        nonlocal printed
        for entry in view.state.entries[printed:]:
            out.print(event_line(entry), markup=False)
        printed = len(view.state.entries)
        sys.stdout.flush()

    yield show


@contextlib.contextmanager
def _live() -> Iterator[Show]:
    """Draws the view and the last events over what was drawn before."""
    from rich.live import Live
    from rich.text import Text

    from evaluator.receipt.plan import utc_now
    from kbs.common.visible_text import visible
    from kopt.services.runs.watching import event_line, watched

    with Live(console=console(), auto_refresh=False) as live:

        def show(view: View) -> None:
            lines = [*watch_lines(watched(view, utc_now())), ""]
            lines += [f"  {event_line(entry)}" for entry in view.state.entries[-_EVENTS:]]
            live.update(Text("\n".join(map(visible, lines)), overflow="ellipsis", no_wrap=True), refresh=True)

        yield show


def watch_lines(found: RunWatchData) -> Iterator[str]:
    """The view: iterations, the best so far against version 0 and the floor, what is tried, and the time left."""
    run = found.run
    done, cap = run.iterations, max(run.cap, 1)
    filled = min(_BAR, round(_BAR * done / cap))
    lines = run_lines(run)
    yield next(lines)
    yield labelled("iteration", f"[{'#' * filled}{'.' * (_BAR - filled)}] {done} of {run.cap} done")
    yield labelled("best so far", _best(found))
    yield labelled("trying", found.trying or ("nothing: a proposal is awaited" if not found.ended else "nothing"))
    left = "no limit" if found.seconds_left is None else f"{duration(found.seconds_left)} left"
    yield labelled("time", f"{duration(found.seconds_passed)} since it began, {left}")
    hidden = ("  iterations", "  enforced", "  preferred", "  passed on")
    yield from (line for line in lines if not line.startswith(hidden))


def _best(found: RunWatchData) -> str:
    if found.run.best is None:
        return "none yet"
    name = f"v{found.run.best}"
    if found.best_us is None:
        return f"{name}; no times are taken" if not found.run.measured else name
    said = [f"{name}, {found.best_us:.4g} µs"]
    if found.first_us is not None and found.run.best:
        said.append(f"{found.first_us / found.best_us:.3g}x by the medians of v0, {found.first_us:.4g} µs")
    if found.floor_us:
        said.append(f"floor {found.floor_us:.4g} µs, {found.floor_us / found.best_us:.0%} of it reached")
    return "; ".join(said)
