"""Answers HTTP requests on a socket, until Ctrl-C or SIGTERM."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn

from kopt.services.serving.port import KEEP_ALIVE

_GRACE = 2
"""Seconds that open answers have to end when the server is stopped."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


def serve(app: Any, bound: socket.socket, ready: Callable[[], None]) -> None:
    """Serve an ASGI application. `ready` is called when it answers, and ends when it is told to: before that, a Ctrl-C
    may be lost in what is being imported."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )
    _Server(config, ready).run(sockets=[bound])
