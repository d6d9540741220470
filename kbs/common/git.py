"""Runs git in a folder, for the repositories of runs and of the experience log.

Hooks, signatures, the file-system monitor and automatic maintenance of the repository are switched off, and git never
asks a question: what needs a password that git does not have fails.
"""

from __future__ import annotations

import copy
import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kbs.common.errors import ConfigurationError, KoptError
from kbs.common.files import write_error
from kbs.common.visible_text import visible

if TYPE_CHECKING:
    from git.cmd import Git

_OPTIONS = {
    "core.hooksPath": os.devnull,
    "commit.gpgSign": "false",
    "merge.verifySignatures": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fsmonitor": "false",
    "core.quotePath": "false",
    "protocol.ext.allow": "never",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_LITERAL_PATHSPECS": "1",  # a file may be called `*.jsonl`
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
_NAME, _EMAIL = "kopt", "kopt@localhost"
_ELSEWHERE = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"),
    *("GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
)


@dataclass(frozen=True)
class GitUse:
    """What git is used for, in the words of errors."""

    reason: str
    """Why git is needed, as in "git is not installed, and …"."""
    repository: str
    """Whose repository it is: "the run's"."""
    retry: str
    """What to do once the problem is fixed."""


def check_git(use: GitUse) -> type[Git]:
    """GitPython's class. Raises `ConfigurationError`: `git_missing`, or `git_environment` if variables redirect git."""
    for name in _ELSEWHERE:
        if os.environ.get(name):
            raise ConfigurationError(
                f"{name} is set: git would work on another repository than {use.repository}",
                code="git_environment",
                hint=f"Unset {name}. Git sets it inside its own hooks; do not call kopt from one.",
            )
    return _git_class(use.reason)


@cache
def _git_class(reason: str) -> type[Git]:
    """GitPython looks for git when it is imported, so the import waits until git is needed."""
    try:
        from git.cmd import Git
    except ImportError as error:
        raise ConfigurationError(
            f"git is not installed, and {reason}",
            code="git_missing",
            hint="Install git 2.32 or later and put it on the PATH.",
        ) from error
    return Git


class GitCommands:
    """Runs git in one folder.

    `private`: the repository is kopt's own, and no configuration of the user applies to it. Otherwise the user's
    remotes, credentials and name are used. A command that takes longer than `seconds` is ended. `settings` and
    `environment` are further ones: (name, value), the last of a name counts.
    """

    def __init__(
        self,
        folder: Path,
        use: GitUse,
        *,
        private: bool = False,
        seconds: float | None = None,
        settings: Iterable[tuple[str, str]] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._git = check_git(use)(str(folder))
        self._folder, self._use, self._seconds = folder, use, seconds
        options = dict(_OPTIONS)
        self._environment = {**_ENVIRONMENT, **(environment or {})}
        if private:
            options |= {
                "user.name": _NAME,
                "user.email": _EMAIL,
                "core.excludesFile": os.devnull,
                "core.attributesFile": os.devnull,
                "safe.directory": str(folder),
            }
            self._environment |= {
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_SYSTEM": os.devnull,
                "GIT_CEILING_DIRECTORIES": str(folder.parent),
                "GIT_AUTHOR_NAME": _NAME,
                "GIT_AUTHOR_EMAIL": _EMAIL,
                "GIT_COMMITTER_NAME": _NAME,
                "GIT_COMMITTER_EMAIL": _EMAIL,
            }
        self._words = [
            "git",
            *(word for name, value in (*options.items(), *settings) for word in ("-c", f"{name}={value}")),
        ]
        if not private and folder.is_dir() and not self.ask("var", "GIT_COMMITTER_IDENT")[0]:
            self._words += ["-c", f"user.name={_NAME}", "-c", f"user.email={_EMAIL}"]

    def with_environment(self, **variables: str) -> GitCommands:
        """The same, with further variables."""
        made = copy.copy(self)
        made._environment = self._environment | variables
        return made

    def ask(self, *words: str, raw: bool = False) -> tuple[bool, str]:
        """Whether a command succeeded, and what it printed; `raw`: with its last newline."""
        status, out, _ = self._run(words, raw)
        return status == 0, out

    def run(self, *words: str) -> tuple[bool, str, str]:
        """Whether a command succeeded, what it printed, and its errors."""
        status, out, error = self._run(words, False)
        return status == 0, out, error

    def attempt(self, *words: str) -> tuple[bool, str]:
        """Whether a command succeeded, and the lines of its output and errors, joined."""
        status, out, error = self._run(words, False)
        return status == 0, _joined(f"{out}\n{error}")

    def tell(self, *words: str) -> str:
        """What a command printed. Raises `KoptError` (`git_failed`, `git_locked`, `git_timeout`, `disk_full`)."""
        status, out, said = self._run(words, False)
        if status == 0:
            return out
        last = visible(_joined(said)[-600:])
        if "No space left" in said or "Disk quota exceeded" in said:
            raise write_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), self._folder)
        if ".lock" in said and "exists" in said:
            raise KoptError(
                f"git is locked: {last}",
                code="git_locked",
                hint=f"If no git process runs there, remove the named file; then {self._use.retry}",
            )
        raise KoptError(
            f"git {words[0]} failed in {self._folder} with status {status}: {last}",
            code="git_failed",
            hint=f"Fix what git reports, then {self._use.retry}",
        )

    def _run(self, words: tuple[str, ...], raw: bool) -> tuple[int, str, str]:
        """(exit status, output, errors)"""
        try:
            status, out, said = self._git.execute(
                [*self._words, *words],
                with_extended_output=True,
                with_exceptions=False,
                env=self._environment,
                strip_newline_in_stdout=not raw,
                kill_after_timeout=self._seconds,
            )
        except OSError as error:  # git went away after it was found
            raise KoptError(
                f"git cannot be started: {error}", code="git_failed", hint="Free some memory or space, then try again."
            ) from error
        if status < 0 and "Timeout" in said:
            raise KoptError(
                f"git {words[0]} took more than {self._seconds:g} s and was ended",
                code="git_timeout",
                hint=f"Check that the remote answers, then {self._use.retry}",
            )
        return status, out if isinstance(out, str) else (out or b"").decode("utf-8", "surrogateescape"), said


def _joined(text: str) -> str:
    return " / ".join(line for line in text.splitlines() if line.strip())
