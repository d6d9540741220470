"""File locks that allow one writer at a time and name the process that holds them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from kbs.common.errors import KoptError
from kbs.common.files import make_folder, write_error
from kbs.common.visible_text import visible


@contextlib.contextmanager
def file_lock(path: Path, timeout: float, busy: Callable[[str], KoptError]) -> Iterator[None]:
    """Hold a lock file, with a note beside it that names this process; its folder is made.

    Waits up to `timeout` seconds, then raises the error that `busy` makes from a description of the holder.
    Raises `KoptError` (`disk_full`, `not_writable`) if the file cannot be made.

    The operating system holds the lock, so it ends with the process that holds it, however that ends.
    """
    make_folder(path.parent)
    note = path.with_name(f"{path.name}.holder")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        raise busy(_holder(note)) from None
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
