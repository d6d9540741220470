"""What several commands share: an engine with a progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kopt.cli.output import progress_bar
from kopt.services.engine import Engine
from kopt.services.settings import load_settings


@contextmanager
def engine(**flags: Any) -> Iterator[Engine]:
    """An engine with the settings in force; long work shows a progress bar on stderr."""
    with progress_bar() as bar:
        yield Engine(load_settings(flags), progress=bar)
