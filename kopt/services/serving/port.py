"""A port of this machine alone."""

from __future__ import annotations

import errno
import socket

from kbs.common.errors import KoptError, UsageError

HOST = "127.0.0.1"
KEEP_ALIVE = 75
"""Seconds that a connection without requests stays open. Where it is short, a client that is about to send a request
finds it closed."""


def listen(port: int) -> socket.socket:
    """A socket on a port of this machine; 0 means any that is free.

    Raises `UsageError` (`port_taken`), `KoptError` (`port_refused`).
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} is taken: another program listens there",
                code="port_taken",
                hint="Choose another with --port; 0 takes any that is free.",
            ) from error
        raise KoptError(
            f"cannot listen on port {port}: {error.strerror or error}",
            code="port_refused",
            hint="Choose a port above 1023 with --port.",
        ) from error
    return made


def names(port: int) -> tuple[str, ...]:
    """What a request to a port of this machine may have as its `Host`. Any other name was made to lead here by
    somebody's name server, from a page that may not reach this port under its own name."""
    return tuple(f"{name}:{port}" for name in (HOST, "localhost"))
