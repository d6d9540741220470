"""What calls share: the settings that a caller gives, and the index and model that stay open between calls."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from numbers import Real
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, SupportsIndex, TypeVar, overload

from ingest.progress import Progress, no_progress
from kbs.common.errors import KoptError, UsageError
from kopt.services.arguments import read_dims
from kopt.services.settings import LoadedSettings, load_settings

if TYPE_CHECKING:
    from kopt.services.engine import Engine

File = str | Path
P = ParamSpec("P")
T = TypeVar("T")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
"""An option of a command, which here is a parameter."""


def settings(
    home: File | None, wikis: File | Sequence[File] | None, workspace: File | None, **flags: Any
) -> LoadedSettings:
    """The settings in force, with what the caller gives in place of environment and files. ConfigurationError."""
    folders = None if wikis is None else [str(_full(one)) for one in files("wikis", wikis)]
    own, working = file("home", home), file("workspace", workspace)
    if working is not None and not _full(working).is_dir():
        raise UsageError(f"there is no folder {working}", code="file_not_found", hint="Choose another workspace.")
    given = {**flags, "wikis": folders}
    return load_settings(given, None if working is None else _full(working), None if own is None else _full(own))


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


def public(function: Callable[P, T]) -> Callable[P, T]:
    """A function of `import kopt`: its errors name its own parameters, where the command line has options."""
    own = inspect.signature(function).parameters

    def parameter(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return name if name in own else found[0]

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        listens = kwargs.get("progress")
        if listens is not None and not callable(listens):
            raise TypeError(f"progress is a function, not {type(listens).__name__}")
        try:
            return function(*args, **kwargs)
        except KoptError as error:
            error.message, error.hint = (re.sub(OPTION, parameter, text) for text in (error.message, error.hint))
            error.args = (error.message,)
            if error.hint and error.hint not in getattr(error, "__notes__", ()):
                error.add_note(error.hint)  # a traceback, which is what a script shows, has notes and no hint
            raise

    return called


@cache
def _close_at_exit() -> None:
    atexit.register(close)


# --- arguments --------------------------------------------------------------------------------------------------------


def _full(path: File) -> Path:
    return Path(path).expanduser().absolute()


@overload
def file(name: str, path: File) -> Path: ...
@overload
def file(name: str, path: File | None) -> Path | None: ...
def file(name: str, path: File | None) -> Path | None:
    """A path that the caller gives as the argument `name`. TypeError for anything else, UsageError for an empty one."""
    if path is None:
        return None
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} is a path, not {type(path).__name__}")
    if not str(path):  # which would be the working folder
        raise UsageError(f"{name} is empty", code="file_not_found", hint=f"Give a path, or leave {name} out.")
    return Path(path)


def files(name: str, given: File | Sequence[File]) -> list[Path]:
    """One path, or several. TypeError for anything else."""
    several = [given] if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable) else given
    return [file(name, one) for one in several]


def check_texts(**given: str) -> None:
    """TypeError for an argument that is no text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is a str, not {type(value).__name__}")


def words(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """One word, or several. TypeError for anything else."""
    if isinstance(given, str):
        return (given,) if given else ()
    several = tuple(given) if isinstance(given, Iterable) else (given,)  # what can be read once alone is read once
    if not isinstance(given, Iterable) or not all(isinstance(one, str) for one in several):
        raise TypeError(f"{name} is a str, or several, not {given!r:.80}")
    return several


def sizes(dims: Mapping[str, int] | str | None) -> dict[str, int]:
    """Sizes, checked; a text as it is typed in a terminal is read too. UsageError `dims_invalid`."""
    if dims is None or isinstance(dims, str):
        return read_dims(dims)
    hint = 'Example: dims={"M": 4096}.'
    if not isinstance(dims, Mapping):
        raise TypeError(f"dims is a dict, such as {{'M': 4096}}, not {dims!r:.80}")
    for name, size in dims.items():
        if not (isinstance(name, str) and isinstance(size, SupportsIndex) and not isinstance(size, bool)):
            wrong = f"the size {name}={size!r:.80} is not a positive integer"
            raise UsageError(wrong, code="dims_invalid", hint=hint)
    return read_dims(json.dumps({name: index(size) for name, size in dims.items()}))  # of numpy too


def within(name: str, value: float, least: float, most: float) -> None:
    """UsageError `argument_invalid` where a number is out of bounds, TypeError for what is no number.

    Where the bounds are int, so is the number.
    """
    whole = isinstance(least, int)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex if whole else Real):
        raise TypeError(f"{name} is {'an int' if whole else 'a number'}, not {type(value).__name__}")
    if not least <= value <= most:
        raise UsageError(
            f"{name}={value} is not between {least} and {most}", code="argument_invalid", hint=f"Choose another {name}."
        )
