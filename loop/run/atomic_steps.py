"""Files of a run that stand whole or not at all, and doing a step again after a kill."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from kbs.common.files import make_folder, write_error, write_whole
from loop.journal.events import Files
from loop.journal.folder import RunFolder

_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp")
"""What `kbs.common.files.write_whole` calls a file that is not whole yet."""


def put(folder: RunFolder, files: Mapping[str, bytes]) -> Files:
    """Write files by their paths below the run's folder: their hashes, as an event has them. Raises `KoptError`.

    A file that holds these bytes already is left alone, so that a step that is done again writes only what it lacks.
    """
    made: Files = {}
    for path, data in files.items():
        target = folder.root / path
        make_folder(target.parent)
        if read(target) != data:
            write_whole(target, data)
        made[path] = hashlib.sha256(data).hexdigest()
    return made


def read(path: Path) -> bytes | None:
    """The bytes of a file; None where there is none that can be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def keep_only(folder: Path, names: Iterable[str]) -> None:
    """Remove what an earlier try left in a folder that no event speaks of yet. Raises `KoptError`."""
    wanted = set(names)
    try:
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.name not in wanted:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    except OSError as error:
        raise write_error(error, folder) from error


def sweep(folder: RunFolder) -> None:
    """Remove files that a killed process had not finished."""
    for path in folder.root.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name) and ".git" not in path.relative_to(folder.root).parts:
            with contextlib.suppress(OSError):
                path.unlink()
