"""The file of an index: damaged, set aside, and what is said of its disk."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from kbs.index.sqlite_file import FILE_NAME, DamagedIndexError, IndexFile, set_aside, storage_error


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a database at all, but a text that is long enough to be looked at" * 20,
        b"SQLite format 3\x00" + b"\xff" * 500,
    ],
)
def test_a_damaged_file_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(DamagedIndexError) as caught:
        IndexFile(tmp_path)
    assert "kopt ingest --rebuild" in caught.value.hint


def test_set_aside_never_overwrites(tmp_path: Path) -> None:
    moved = []
    for number in range(3):
        folder = tmp_path / "index"
        folder.mkdir()
        (folder / "x").write_text(str(number))
        moved.append(set_aside(folder))
    assert len(set(moved)) == 3
    assert [(path / "x").read_text() for path in moved] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "disk_full"),
        (sqlite3.OperationalError("database or disk is full"), "disk_full"),
        (OSError(errno.EACCES, "Permission denied"), "not_writable"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "not_writable"),
        (sqlite3.OperationalError("no such table: x"), None),
    ],
)
def test_storage_errors(tmp_path: Path, error: Exception, code: str | None) -> None:
    found = storage_error(error, tmp_path)
    assert (found.code if found else None) == code
