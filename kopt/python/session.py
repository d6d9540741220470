"""What calls share: the settings that a caller gives, and the index and model that stay open between calls."""

from __future__ import annotations

import atexit
import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from ingest.progress import Progress, no_progress
from kbs.common.errors import KoptError, UsageError
from kopt.services.arguments import read_dims
from kopt.services.settings import LoadedSettings, load_settings

if TYPE_CHECKING:
    from kopt.services.engine import Engine

File = str | Path
P = ParamSpec("P")
T = TypeVar("T")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def settings(
    home: File | None, wikis: File | Sequence[File] | None, workspace: File | None, **flags: Any
) -> LoadedSettings:
    """The settings in force, with what the caller gives in place of environment and files. ConfigurationError."""
    named = [wikis] if isinstance(wikis, str | Path) else wikis
    folders = None if named is None else [str(_full(one)) for one in named]
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


def public(function: Callable[P, T]) -> Callable[P, T]:
    """A function of `import kopt`: its errors name its own parameters, where the command line has options."""
    own = inspect.signature(function).parameters

    def parameter(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return name if name in own else found[0]

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except KoptError as error:
            error.message, error.hint = (re.sub(_OPTION, parameter, text) for text in (error.message, error.hint))
            error.args = (error.message,)
            raise

    return called


@cache
def _close_at_exit() -> None:
    atexit.register(close)


# --- arguments --------------------------------------------------------------------------------------------------------


def _full(path: File) -> Path:
    return Path(path).expanduser().absolute()


def file(path: File | None) -> Path | None:
    """A path that the caller gives."""
    return None if path is None else Path(path)


def check_texts(**given: str) -> None:
    """TypeError for an argument that is no text."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise TypeError(f"{name} is a str, not {type(value).__name__}")


def words(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """One word, or several. TypeError for anything else."""
    if isinstance(given, str):
        return (given,) if given else ()
    if not isinstance(given, Iterable) or not all(isinstance(one, str) for one in given):
        raise TypeError(f"{name} is a str, or several, not {given!r:.80}")
    return tuple(given)


def sizes(dims: Mapping[str, int] | str | None) -> dict[str, int]:
    """Sizes, checked; a text as it is typed in a terminal is read too. UsageError `dims_invalid`."""
    try:
        return read_dims(dims if isinstance(dims, str) else json.dumps(dict(dims)) if dims else None)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cannot read the sizes: {error}", code="dims_invalid", hint='dims={"M": 4096}') from error


def within(name: str, value: float, least: float, most: float) -> None:
    """UsageError `argument_invalid` where a number is out of bounds, TypeError for what is no number."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} is a number, not {type(value).__name__}")
    if not least <= value <= most:
        raise UsageError(
            f"{name}={value} is not between {least} and {most}", code="argument_invalid", hint=f"Choose another {name}."
        )
