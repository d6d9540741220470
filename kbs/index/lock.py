"""One writer at a time, and who it is: the lock of the index, and what it shares with other locks."""

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

from kbs.common.errors import IndexBusyError
from kbs.common.visible_text import visible
from kbs.index.sqlite_file import storage_error


class HeldError(Exception):
    """Another process has the lock; the text says which."""


@contextlib.contextmanager
def index_lock(home: Path, timeout: float) -> Iterator[None]:
    """Hold the index for writing. Waits up to `timeout` seconds, then raises `IndexBusyError` naming the holder."""
    with contextlib.ExitStack() as stack:
        try:
            home.mkdir(parents=True, exist_ok=True)
            stack.enter_context(named_lock(home / "index.lock", timeout))
        except HeldError as holder:
            raise IndexBusyError(
                f"the index is being written by {holder}",
                code="index_busy",
                hint="Wait for it to end, or end it; then run the command again. Nothing was lost.",
            ) from None
        except OSError as error:
            raise storage_error(error, home) or error from error
        yield


@contextlib.contextmanager
def named_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold a lock file, with a note beside it of who does. Waits up to `timeout` seconds, then raises `HeldError`;
    `OSError` where the file cannot be made.

    The lock is the kernel's: it ends with the process that holds it, however that ends.
    """
    note = path.with_name(f"{path.name}.holder")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        raise HeldError(_holder(note)) from None
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
