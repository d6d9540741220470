"""Runs git through GitPython, for the log's and the runs' repositories; it is looked for when it is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from kbs.common.errors import ConfigurationError, KoptError

if TYPE_CHECKING:
    from git.cmd import Git


@cache
def git_type(why: str) -> type[Git]:
    """GitPython looks for git when it is imported. Raises `ConfigurationError` (`git_missing`), which says why it is
    wanted, where there is none."""
    try:
        from git.cmd import Git
    except ImportError as error:
        raise ConfigurationError(
            f"git is not installed, and {why}",
            code="git_missing",
            hint="Install git 2.32 or later and put it on the PATH.",
        ) from error
    return Git


def execute(git: Git, words: Sequence[str], environment: Mapping[str, str], **more: Any) -> tuple[int, str, str]:
    """(exit code, what it printed, what it said on the other stream). Raises `KoptError` (`git_failed`) where it does
    not start. `more` is GitPython's."""
    try:
        status, out, said = git.execute(
            list(words), with_extended_output=True, with_exceptions=False, env=environment, **more
        )
    except OSError as error:  # GitCommandNotFound is none: git went away after it was found
        raise KoptError(
            f"git cannot be started: {error}", code="git_failed", hint="Free some memory or space, then try again."
        ) from error
    return status, out if isinstance(out, str) else (out or b"").decode("utf-8", "surrogateescape"), said
