"""What a shell proposes for words that are half typed.

A proposal is a service: whatever goes wrong, nothing is printed and nothing is proposed. Only plain names are, since a
shell evaluates some of what it is told.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import typer

_WORDS = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Variables in which a shell says what was typed so far."""


def typed_command() -> str | None:
    """The first word after `kopt` that a shell wants completed words for; empty while that word is itself being typed.

    None where no shell asks.
    """
    if "_KOPT_COMPLETE" not in os.environ:
        return None
    words = next((os.environ[name] for name in _WORDS if name in os.environ), "").split(" ")
    return words[1] if len(words) > 2 else ""


def gpus(incomplete: str) -> list[str]:
    """GPUs that the wikis have a page about."""
    return _names("gpu_names", incomplete)


def metrics(incomplete: str) -> list[str]:
    """Hardware metrics."""
    return _names("metric_names", incomplete)


def dtypes(incomplete: str) -> list[str]:
    """Element types."""
    return _names("dtype_names", incomplete)


def runs(incomplete: str) -> list[str]:
    """Runs below the working folder, and those that this KOPT_HOME knows."""
    return _begun(_runs, incomplete)


def pages(incomplete: str) -> list[str]:
    """Pages by id, or by the last part of the id."""
    found = _names("page_names", "")
    begun = [name for name in found if name.startswith(incomplete)]
    return begun or [last for name in found if (last := name.rpartition("/")[2]).startswith(incomplete)]


def spec_words(context: typer.Context, incomplete: str) -> list[str]:
    """Of `kopt spec`: a GPU or `compare`, then a metric; after `compare`, GPUs."""
    before: Sequence[str] = context.params.get("words") or ()
    if not before:
        return [*gpus(incomplete), *(["compare"] if "compare".startswith(incomplete) else [])]
    return gpus(incomplete) if before[0] == "compare" else metrics(incomplete)


def _names(of: str, incomplete: str) -> list[str]:
    """What a function of `kopt.services.knowledge.names` finds."""

    def ask() -> list[str]:
        from kopt.services.knowledge import names

        found: list[str] = getattr(names, of)()
        return found

    return _begun(ask, incomplete)


def _runs() -> list[str]:
    from kopt.services.knowledge.names import plain
    from kopt.services.runs.lookup import runs_below
    from kopt.services.settings import load_settings
    from loop.journal.registry import known_runs

    known = [run.id for run in known_runs(load_settings().home) if run.there]
    return plain([*(run.root.name for run in runs_below(Path.cwd())), *known])


def _begun(ask: Callable[[], list[str]], incomplete: str) -> list[str]:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception):
        return [name for name in ask() if name.startswith(incomplete)]
    return []
