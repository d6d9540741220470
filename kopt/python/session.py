"""What calls share: the settings that a caller gives, and the index and model that stay open between calls."""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.progress import Progress, no_progress
from kbs.common.errors import KoptError, UsageError
from kopt.services.arguments import read_dims
from kopt.services.settings import LoadedSettings, load_settings

if TYPE_CHECKING:
    from kopt.services.engine import Engine

File = str | Path


def settings(home: File | None, wikis: Sequence[File] | None, workspace: File | None, **flags: Any) -> LoadedSettings:
    """The settings in force, with what the caller gives in place of environment and files. ConfigurationError."""
    folders = None if wikis is None else [str(_full(one)) for one in wikis]
    given = {**flags, "wikis": folders}
    return load_settings(given, None if workspace is None else _full(workspace), None if home is None else _full(home))


@contextmanager
def opened(loaded: LoadedSettings, progress: Progress | None = None) -> Iterator[Engine]:
    """An engine for one call. The vector index and the embedding model that it opens stay open for the next."""
    from kopt.services.engine import Engine

    _close_at_exit()
    made = Engine(loaded, progress=progress or no_progress)
    try:
        yield made
    except KoptError as error:
        error.warnings += made.left_out
        raise


def close() -> None:
    """Close the vector indexes that calls keep open. The next call opens them again; the end of Python closes them."""
    from kbs.index.chroma import close_all

    close_all()


@cache
def _close_at_exit() -> None:
    atexit.register(close)


# --- arguments --------------------------------------------------------------------------------------------------------


def _full(path: File) -> Path:
    return Path(path).expanduser().absolute()


def file(path: File | None) -> Path | None:
    """A path that the caller gives."""
    return None if path is None else Path(path)


def check_text(name: str, given: str) -> None:
    """TypeError for what is no text."""
    if not isinstance(given, str):
        raise TypeError(f"{name} is a str, not {type(given).__name__}")


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """One word, or several."""
    return (given,) if isinstance(given, str) and given else tuple(given)


def sizes(dims: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes, checked. UsageError `dims_invalid`."""
    try:
        return read_dims(json.dumps(dict(dims)) if dims else None)
    except TypeError as error:
        raise UsageError(f"cannot read the sizes: {error}", code="dims_invalid", hint='dims={"M": 4096}') from error


def within(name: str, value: float, least: float, most: float) -> None:
    """UsageError `argument_invalid` where a number is out of bounds."""
    if not least <= value <= most:
        raise UsageError(
            f"{name}={value} is not between {least} and {most}", code="argument_invalid", hint=f"Choose another {name}."
        )
