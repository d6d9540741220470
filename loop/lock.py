"""One process drives a run at a time, and whoever comes second is told who it is."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from evaluator.files import make_folder, write_error
from kbs.errors import KoptError
from kbs.visible import visible
from loop.seeds import FOLDER


@contextlib.contextmanager
def run_lock(home: Path, run: str, timeout: float = 0.0) -> Iterator[None]:
    """Hold a run for writing. Raises `KoptError` (`run_busy`) naming the holder, after `timeout` seconds.

    The lock is the kernel's: it ends with the process that holds it, however that ends. It lies in KOPT_HOME, as does
    the seed, so that a run's folder holds nothing but the run.
    """
    path, note = home / FOLDER / f"{run}.lock", home / FOLDER / f"{run}.lock.holder"
    make_folder(path.parent)
    try:
        lock = FileLock(path)
        lock.acquire(timeout=timeout)
    except Timeout:
        raise KoptError(
            f"the run {run} is being driven by {_holder(note)}",
            code="run_busy",
            hint="Wait for it, or end it and say `kopt run resume`: nothing is lost. `kopt run status` only reads.",
        ) from None
    except OSError as error:
        raise write_error(error, path) from error
    try:
        with contextlib.suppress(OSError):
            command = " ".join(["kopt", *sys.argv[1:]])[:200]
            held = {"pid": os.getpid(), "host": socket.gethostname(), "command": command, "since": time.time()}
            note.write_text(json.dumps(held), "utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
        lock.release()


def _holder(note: Path) -> str:
    try:
        held = json.loads(note.read_text("utf-8"))
        since = time.strftime("%H:%M:%S", time.localtime(float(held["since"])))
        return visible(f"process {held['pid']} on {held['host']} (`{held['command']}`, since {since})")
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
