"""Serves the pages to browsers of this machine, until it is told to end."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from kbs.common.errors import KoptError
from kopt.web.app import make_app
from kopt.web.desk import Desk

_log = logging.getLogger(__name__)


def serve_web(bound: socket.socket, root: Path, runs: tuple[Path, ...], token: str, ready: Callable[[], None]) -> None:
    """Serve browsers that have the token, until Ctrl-C or SIGTERM; `ready` is called when it does. `runs`: further
    folders of runs."""
    from kopt.services.serving.server import serve

    desk = Desk(root.resolve(), runs)
    app = make_app(desk, bound.getsockname()[1], token)
    threading.Thread(target=_warm, args=(desk,), name="warm", daemon=True).start()
    serve(app, bound, ready)


def _warm(desk: Desk) -> None:
    """Bring the index up to date and load the model, so that the first question need not wait for that."""
    try:
        desk.warm()
    except KoptError as error:  # the page of the first question says it too
        _log.warning("%s %s", error.message, error.hint)
