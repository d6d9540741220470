"""The token that lets clients of a server in."""

from __future__ import annotations

import os
import secrets

from kbs.common.errors import UsageError

_LEAST = 16


def token_of(variable: str) -> tuple[str, bool]:
    """(the token in an environment variable, or a new one; whether it is from there). UsageError `token_weak`."""
    given = os.environ.get(variable, "")
    if given and (len(given) < _LEAST or not given.isascii() or not given.isprintable() or " " in given):
        raise UsageError(
            f"{variable} must have at least {_LEAST} printable characters",
            code="token_weak",
            hint="Unset it, and kopt makes one for each start; or: openssl rand -hex 16",
        )
    return given or secrets.token_urlsafe(24), bool(given)
