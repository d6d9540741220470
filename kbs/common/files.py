"""Writes files so that after a crash they are complete or absent, never half written."""

from __future__ import annotations

import atexit
import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kbs.common.errors import KoptError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")
"""Name of a file that `write_whole` has not finished."""


def write_whole(path: Path, data: bytes, *, private: bool = False, keep_mode: bool = False) -> None:
    """Replace the file at `path` with `data` atomically: a killed process leaves the old file or the new one.

    `private`: mode 0600, whatever the umask. `keep_mode`: the mode of the replaced file.
    Raises `KoptError` (`disk_full`, `not_writable`).
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
            if keep_mode and path.exists():
                shutil.copymode(path, temporary)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(path.parent)
    except OSError as error:
        raise write_error(error, path) from error


def write_all(root: Path, files: Mapping[str, bytes]) -> dict[str, str]:
    """Write files at paths relative to `root` and return the SHA-256 of each. Raises `KoptError`.

    A file that already has these bytes is left alone, so a step that is repeated writes only what is missing.
    """
    hashes = {}
    for name, data in files.items():
        path = root / name
        make_folder(path.parent)
        if read_if_there(path) != data:
            write_whole(path, data)
        hashes[name] = hashlib.sha256(data).hexdigest()
    return hashes


def append_whole(descriptor: int, data: bytes, size: int) -> None:
    """Append `data` to an open file of `size` bytes and sync it. On `OSError` the file keeps its `size` bytes."""
    try:
        if os.write(descriptor, data) != len(data):  # a regular file takes less only where the disk is full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):  # a half-written line stays, and the next open sets it aside
            os.ftruncate(descriptor, size)
        raise


def read_if_there(path: Path) -> bytes | None:
    """The bytes of a file; None if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Remove everything else from a folder, such as the leftovers of an earlier attempt. Raises `KoptError`."""
    wanted = set(names)
    try:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name not in wanted:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError as error:
        raise write_error(error, folder) from error


def remove_unfinished(root: Path) -> None:
    """Remove files below `root`, outside `.git`, that a killed process had not finished."""
    for path in root.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name) and ".git" not in path.relative_to(root).parts:
            with contextlib.suppress(OSError):
                path.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder and its parents. Raises `KoptError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(error, folder) from error


def may_overwrite(path: Path, begin: bytes) -> bool:
    """Whether `path` is free, or is a file that starts with `begin`. Raises `KoptError` if it cannot be read."""
    try:
        if not path.exists():
            return True
        if not path.is_file():
            return False
        with path.open("rb") as stream:
            return stream.read(len(begin)) == begin
    except OSError as error:
        raise write_error(error, path) from error


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to the disk, on file systems that support it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_error(error: OSError, path: Path) -> KoptError:
    """The error to show when `path` cannot be written."""
    if error.errno in _FULL:
        return KoptError(
            f"there is no space left on the disk for {path}",
            code="disk_full",
            hint="Free some space, or choose a folder on another disk. What was stored before is intact.",
        )
    return KoptError(
        f"{path} cannot be written: {error.strerror or error}",
        code="not_writable",
        hint="Choose an existing folder that you can write to; KOPT_HOME sets where kopt keeps its own files.",
    )


def own_folder(prefix: str) -> Path:
    """A new temporary folder that is deleted when this process ends, and not when one that it has forked does."""
    folder, owner = Path(tempfile.mkdtemp(prefix=prefix)), os.getpid()

    def delete() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(delete)
    return folder


def writable_copy(folder: Path, prefix: str) -> Path:
    """A folder of this process in place of one that cannot be written: its files copied, its folders linked."""
    copy = own_folder(prefix)
    for entry in folder.iterdir():
        if entry.is_dir():
            (copy / entry.name).symlink_to(entry.absolute(), target_is_directory=True)
        else:
            shutil.copyfile(entry, copy / entry.name)
    return copy
