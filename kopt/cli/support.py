"""What several commands share: an engine with a progress bar, and reading `--dims`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kbs.errors import UsageError
from kopt.cli.output import progress_bar
from kopt.engine import Engine
from kopt.settings import load_settings


@contextmanager
def engine(**flags: Any) -> Iterator[Engine]:
    """An engine with the settings in force; long work shows a progress bar on stderr."""
    with progress_bar() as bar:
        yield Engine(load_settings(flags), progress=bar)


def read_dims(text: str | None) -> dict[str, int]:
    """`{"M": 4096, "N": 8192}` or `M=4096,N=8192` as sizes."""
    if not text:
        return {}
    hint = 'Give sizes as --dims \'{"M": 4096, "N": 8192}\' or --dims M=4096,N=8192.'
    try:
        if text.lstrip().startswith("{"):
            raw = json.loads(text)
        else:
            raw = {name.strip(): int(size) for name, _, size in (part.partition("=") for part in text.split(","))}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--dims {text!r} cannot be read: {error}", code="dims_invalid", hint=hint) from error
    for name, size in raw.items():
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**40:
            raise UsageError(f"the size {name}={size!r} is no whole number above 0", code="dims_invalid", hint=hint)
    return {str(name): size for name, size in raw.items()}
