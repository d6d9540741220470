"""What several commands share: an engine with a progress bar, reading sizes, spans of time and versions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kbs.common.errors import UsageError
from kopt.cli.output import progress_bar
from kopt.services.engine import Engine
from kopt.services.settings import load_settings

_SECONDS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


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
        raise UsageError(f"the sizes {text!r} cannot be read: {error}", code="dims_invalid", hint=hint) from error
    for name, size in raw.items():
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**40:
            raise UsageError(f"the size {name}={size!r} is no whole number above 0", code="dims_invalid", hint=hint)
    return {str(name): size for name, size in raw.items()}


def read_seconds(text: str | None) -> float | None:
    """`90`, `90s`, `30 min`, `2h` in seconds; None for None. UsageError `time_invalid`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]*)", text.strip().lower())
    seconds = float(match[1]) * _SECONDS.get(match[2], 0) if match else 0.0
    if not seconds:
        raise UsageError(f"{text!r} is no span of time", code="time_invalid", hint="Such as 90, 30min or 2h.")
    return seconds


def read_version(text: str) -> int:
    """`v3` or `3` as a number. UsageError `version_invalid`."""
    match = re.fullmatch(r"v?(\d{1,4})", text.strip(), re.ASCII)
    if not match:
        raise UsageError(f"{text!r} is no version", code="version_invalid", hint="Versions are v0, v1, v2 …")
    return int(match[1])
