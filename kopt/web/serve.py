"""Serves the pages to browsers of this machine, until it is told to end."""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path

from kbs.common.errors import KoptError
from kopt.services.serving.port import KEEP_ALIVE
from kopt.web.app import make_app
from kopt.web.desk import Desk

_GRACE = 2
"""Seconds that open answers have to end when the server is stopped."""
_log = logging.getLogger(__name__)


def serve_web(bound: socket.socket, root: Path, runs: tuple[Path, ...], token: str) -> None:
    """Serve browsers that have the token, until Ctrl-C or SIGTERM. `runs`: further folders of runs."""
    import uvicorn

    desk = Desk(root.resolve(), runs)
    app = make_app(desk, bound.getsockname()[1], token)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )
    threading.Thread(target=_warm, args=(desk,), name="warm", daemon=True).start()
    uvicorn.Server(config).run(sockets=[bound])


def _warm(desk: Desk) -> None:
    """Bring the index up to date and load the model, so that the first question need not wait for that."""
    try:
        desk.warm()
    except KoptError as error:  # the page of the first question says it too
        _log.warning("%s %s", error.message, error.hint)
