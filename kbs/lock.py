"""One writer of the index at a time, and who it is."""

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

from kbs.errors import IndexBusyError
from kbs.index_file import storage_error


@contextlib.contextmanager
def index_lock(home: Path, timeout: float) -> Iterator[None]:
    """Hold the index for writing. Waits up to `timeout` seconds, then raises `IndexBusyError` naming the holder.

    The lock is the kernel's: it ends with the process that holds it, however that ends.
    """
    path, note = home / "index.lock", home / "index.lock.holder"
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        lock.acquire(timeout=timeout)
    except Timeout:
        raise IndexBusyError(
            f"the index is being written by {_holder(note)}",
            code="index_busy",
            hint="Wait for it to end, or end it; then run the command again. Nothing was lost.",
        ) from None
    except OSError as error:
        raise storage_error(error, home) or error from error
    try:
        with contextlib.suppress(OSError):
            command = " ".join(["kopt", *sys.argv[1:]])[:200]
            note.write_text(
                json.dumps(
                    {"pid": os.getpid(), "host": socket.gethostname(), "command": command, "since": time.time()}
                ),
                "utf-8",
            )
        yield
    finally:
        with contextlib.suppress(OSError):
            note.unlink()
        lock.release()


def _holder(note: Path) -> str:
    try:
        held = json.loads(note.read_text("utf-8"))
        since = time.strftime("%H:%M:%S", time.localtime(float(held["since"])))
        return f"process {held['pid']} on {held['host']} (`{held['command']}`, since {since})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
