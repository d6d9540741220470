"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from kbs.common.errors import KoptError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Put `data` at `path`, in place of what stood there, in one step that a killed process leaves done or undone.

    `private`: mode 0600, whatever the umask. Raises `KoptError` (`disk_full`, `not_writable`).
    """
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600 if private else 0o666)
            with open(descriptor, "wb") as stream:
                if private:
                    os.fchmod(stream.fileno(), 0o600)
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _settle(path.parent)
    except OSError as error:
        raise write_error(error, path) from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it. Raises `KoptError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, folder) from error


def may_overwrite(path: Path, begin: bytes) -> bool:
    """Whether nothing is there, or a file that begins with these bytes. Raises `KoptError` for what cannot be read."""
    try:
        if not path.exists():
            return True
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(begin)) == begin
    except OSError as error:
        raise write_error(error, path) from error


def write_error(error: OSError, path: Path) -> KoptError:
    """What to say where something cannot be written."""
    if error.errno in _FULL:
        return KoptError(
            f"there is no space left on the disk for {path}",
            code="disk_full",
            hint="Free some space, or choose a place on another disk.",
        )
    return KoptError(
        f"{path} cannot be written: {error.strerror or error}",
        code="not_writable",
        hint="Choose a folder that is there and that you can write; KOPT_HOME sets where kopt keeps its own files.",
    )


def _settle(folder: Path) -> None:
    """Bring a folder's list of names to the disk, on file systems that can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
