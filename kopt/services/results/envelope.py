"""The one object that every door answers with: a status, the data, warnings, and errors with their hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbs.common.errors import ExitCode, KoptError

SCHEMA_VERSION = 1
STATUS = {
    ExitCode.OK: "ok",
    ExitCode.FAILURE: "error",
    ExitCode.USAGE: "error",
    ExitCode.ABSTAINED: "abstained",
    ExitCode.REJECTED: "rejected",
    ExitCode.CONFIGURATION: "error",
    ExitCode.NO_GPU: "error",
}
"""Exit code of a command → `status`."""


def envelope(
    command: str, status: str, data: Any, warnings: Sequence[str], errors: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """`data` is JSON already; None where there is an error in its place."""
    return {
        "schema_version": SCHEMA_VERSION,
        "command": command,
        "status": status,
        "data": data,
        "warnings": list(warnings),
        "errors": [dict(error) for error in errors],
    }


def error_data(error: KoptError) -> dict[str, str]:
    """An error as the envelope has it."""
    return {"code": error.code, "message": error.message, "hint": error.hint}
