"""The tree of errors.

    KoptError                 exit 1   something failed while running
    ├── UsageError            exit 2   what the user asked for makes no sense
    ├── ConfigurationError    exit 5   a setting, tool, model or wiki is missing or wrong
    ├── NoGpuError            exit 6   a GPU is needed, and none is there
    └── IndexBusyError        exit 1   another process writes the index

Abstentions, rejected citations and failed gates are outcomes, not errors: they are returned as values.
"""

from __future__ import annotations

import copyreg
from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """What a command's exit status says."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    ABSTAINED = 3
    REJECTED = 4
    CONFIGURATION = 5
    NO_GPU = 6


class KoptError(Exception):
    """What happened (`message`), under which stable name (`code`), and what to do next (`hint`)."""

    exit_code: ExitCode = ExitCode.FAILURE

    def __init__(self, message: str, *, code: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint
        self.warnings: list[str] = []
        """What the user should know of beside it, such as a wiki that was not used."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled whole: a pool of processes that cannot read what a worker raised is broken, or waits for ever."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]  # typeshed lacks it


class UsageError(KoptError):
    """The command was called with words that do not fit together."""

    exit_code = ExitCode.USAGE


class ConfigurationError(KoptError):
    """A setting, a tool, a model file or a wiki is missing or wrong."""

    exit_code = ExitCode.CONFIGURATION


class IndexBusyError(KoptError):
    """Another process holds the index for writing."""


class NoGpuError(KoptError):
    """A GPU is needed, and none is there."""

    exit_code = ExitCode.NO_GPU
