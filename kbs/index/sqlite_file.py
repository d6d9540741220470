"""The SQLite file of an index: its tables, transactions, lock and errors."""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kbs.common.errors import IndexBusyError, KoptError
from kbs.common.files import own_folder, write_error
from kbs.common.locks import file_lock
from kbs.evidence.citation import Citation, lines_hash

APPLICATION_ID = 0x6B6F7074
SCHEMA_VERSION = 3
FILE_NAME = "index.sqlite"
_BUSY_SECONDS = 10.0
_NOT_WRITABLE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS),  # no permission
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),  # no folder, and none can be made
)

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE wikis (name TEXT PRIMARY KEY, kind TEXT NOT NULL, root TEXT NOT NULL, revision TEXT NOT NULL,
    rank INTEGER NOT NULL);
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, wiki TEXT NOT NULL, path TEXT NOT NULL, page_id TEXT NOT NULL, kind TEXT NOT NULL,
    title TEXT NOT NULL, confidence TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL, hidden INTEGER NOT NULL DEFAULT 0, UNIQUE (wiki, path));
CREATE INDEX pages_by_page_id ON pages (page_id);
CREATE INDEX pages_hidden ON pages (hidden) WHERE hidden != 0;
CREATE TABLE broken (wiki TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL, problems TEXT NOT NULL, PRIMARY KEY (wiki, path)) WITHOUT ROWID;
CREATE TABLE facet_values (id INTEGER PRIMARY KEY, facet TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (facet, value));
CREATE TABLE facets (page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE, place INTEGER NOT NULL,
    value INTEGER NOT NULL, PRIMARY KEY (page, place)) WITHOUT ROWID;
CREATE INDEX facets_by_value ON facets (value, page);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, passage TEXT NOT NULL UNIQUE, page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE,
    place INTEGER NOT NULL, asked INTEGER NOT NULL, line_start INTEGER NOT NULL, line_end INTEGER NOT NULL,
    trail TEXT NOT NULL, asks TEXT NOT NULL, gap TEXT NOT NULL, text TEXT NOT NULL, embedded TEXT NOT NULL,
    embedding_key TEXT NOT NULL);
CREATE INDEX passages_by_page ON passages (page, place, asked);
CREATE INDEX passages_asked ON passages (page) WHERE asked = 1;
CREATE INDEX passages_by_key ON passages (embedding_key);
CREATE VIRTUAL TABLE words USING fts5(title, headings, body, tokenize = "porter unicode61 tokenchars '_'");
CREATE TABLE specs (
    page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE, line INTEGER NOT NULL, product TEXT NOT NULL,
    metric TEXT NOT NULL, value TEXT NOT NULL, unit TEXT NOT NULL, qualifier TEXT NOT NULL, confidence TEXT NOT NULL,
    source TEXT NOT NULL, quote TEXT NOT NULL, recommended INTEGER NOT NULL);
CREATE INDEX specs_by_product ON specs (product, metric);
CREATE INDEX specs_by_page ON specs (page);
CREATE TABLE rows (page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE, kind TEXT NOT NULL, line INTEGER NOT NULL,
    subject TEXT NOT NULL, data TEXT NOT NULL, quote TEXT NOT NULL);
CREATE INDEX rows_by_subject ON rows (kind, subject);
CREATE INDEX rows_by_page ON rows (page);
CREATE TABLE products (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
    unused INTEGER, UNIQUE (key, model));
CREATE INDEX embeddings_unused ON embeddings (unused) WHERE unused IS NOT NULL;
CREATE TABLE pending (passage TEXT PRIMARY KEY) WITHOUT ROWID;
"""


class DamagedIndexError(KoptError):
    """The file is damaged, or not an index of this version of kopt. Whoever can write sets it aside and rebuilds it."""


def damaged(path: Path, why: str) -> DamagedIndexError:
    """The error for an index at `path` that cannot be used."""
    return DamagedIndexError(
        f"the index at {path} cannot be used: {why}",
        code="index_damaged",
        hint="Run `kopt ingest --rebuild`. The index is derived from the wiki: nothing is lost.",
    )


def storage_error(error: Exception, folder: Path) -> KoptError | None:
    """The error to show for a full or read-only disk or a locked file; None if `error` is something else."""
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT) or "disk is full" in text or "no space" in text:
        return write_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), folder)
    if number in _NOT_WRITABLE or "readonly" in text or "unable to open" in text:
        return write_error(OSError(number or errno.EROFS, os.strerror(number or errno.EROFS)), folder)
    if isinstance(error, sqlite3.OperationalError) and "locked" in text:
        return IndexBusyError(
            f"another program holds the index in {folder}",
            code="index_busy",
            hint="End that program, then run the command again. Nothing was lost.",
        )
    return None


def index_lock(home: Path, timeout: float) -> AbstractContextManager[None]:
    """Hold the index for writing. Waits up to `timeout` seconds, then raises `IndexBusyError` that names the holder."""

    def busy(holder: str) -> KoptError:
        return IndexBusyError(
            f"the index is being written by {holder}",
            code="index_busy",
            hint="Wait for it to end, or end it; then run the command again. Nothing was lost.",
        )

    return file_lock(home / "index.lock", timeout, busy)


def connect(path: Path | str, timeout: float) -> sqlite3.Connection:
    """Open a SQLite file, or ":memory:". Where its folder cannot be written, open it for reading alone: nobody else
    writes it either.

    Raises `sqlite3.Error`, also for a file that is no database.
    """
    db = sqlite3.connect(path, timeout=timeout, isolation_level=None)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        db.close()
        if isinstance(path, str) or os.access(path.parent, os.W_OK) or not path.exists():
            raise
        return sqlite3.connect(
            f"{_whole(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True, timeout=timeout, isolation_level=None
        )
    except sqlite3.Error:
        db.close()
        raise
    return db


def _whole(path: Path) -> Path:
    """The file, or a copy with the writes that a killed process left beside it: a file read alone has them not."""
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        return path
    folder = own_folder("kopt-index-")
    for file in (path, log):
        shutil.copyfile(file, folder / file.name)
    with contextlib.closing(sqlite3.connect(folder / path.name)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / path.name


def make_tables(db: sqlite3.Connection, statements: str) -> None:
    """Run the statements, each of which ends its line, in a new file; a file that has tables is left as it is.

    Other processes may be doing the same.
    """
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    db.execute("PRAGMA journal_mode = WAL")
    with transaction(db):
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in statements.split(";\n"):
                db.execute(statement)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, on disk when it returns."""
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class IndexFile:
    """The SQLite file of an index. Use as a context manager; `create=True` makes a missing one."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        self._numbers: dict[tuple[str, ...], int] | None = None
        if not create and not self.path.exists():
            raise FileNotFoundError(self.path)
        try:
            if create:
                folder.mkdir(parents=True, exist_ok=True)
            self.db = connect(self.path, _BUSY_SECONDS)
        except (OSError, sqlite3.Error) as error:
            raise storage_error(error, folder) or damaged(self.path, str(error)) from error
        try:
            self._open(create)
        except sqlite3.Error as error:
            self.db.close()
            raise storage_error(error, folder) or damaged(self.path, str(error)) from error
        except KoptError:
            self.db.close()
            raise

    def _open(self, create: bool) -> None:
        self.db.execute("PRAGMA foreign_keys = ON")
        empty = not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if empty and create:
            make_tables(self.db, _SCHEMA)
        if self.db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise damaged(self.path, "it is empty" if empty else "it was made by another program")
        if self.db.execute("PRAGMA user_version").fetchone()[0] != SCHEMA_VERSION:
            raise damaged(self.path, "it was made by another version of kopt")
        self.db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, on disk when it returns."""
        try:
            with transaction(self.db):
                yield
        except sqlite3.Error as error:
            raise storage_error(error, self.folder) or damaged(self.path, str(error)) from error

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one state of the index, whatever others write."""
        try:
            self.db.execute("BEGIN")
            self._numbers = {}
            yield
        except sqlite3.DatabaseError as error:
            raise damaged(self.path, str(error)) from error
        finally:
            self._numbers = None
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    def number(self, query: str, values: Sequence[Any] = ()) -> int:
        """The number that a query gives; in a snapshot, where it stays the same, it is asked for once."""
        key = (query, *map(repr, values))
        known = self._numbers if self._numbers is not None else {}
        if key not in known:
            known[key] = int(self.db.execute(query, values).fetchone()[0])
        return known[key]

    def meta(self, key: str, default: str = "") -> str:
        """A fact about the index itself."""
        found = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else default

    def set_meta(self, key: str, value: str) -> None:
        """Remember a fact about the index itself."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def generation(self) -> int:
        """Moves with every change of the passages."""
        return int(self.meta("generation", "0"))

    def bump_generation(self) -> int:
        """Say that the passages changed."""
        generation = self.generation + 1
        self.set_meta("generation", str(generation))
        return generation

    def check(self) -> str:
        """What SQLite's own check finds wrong; "" where nothing is."""
        try:
            found = self.db.execute("PRAGMA quick_check(5)").fetchall()
        except sqlite3.Error as error:
            return str(error)
        text = "; ".join(str(row[0]) for row in found)
        return "" if text == "ok" else text


def set_aside(folder: Path) -> Path:
    """Move a damaged index out of the way, so that it can be looked at; returns where it is now."""
    target = folder.with_name(f"{folder.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 0
    while target.exists():
        number += 1
        target = folder.with_name(f"{folder.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{number}")
    shutil.move(folder, target)
    return target


def stored_citation(wiki: str, path: str, start: int, end: int, revision: str, quote: str) -> Citation:
    """A citation of stored lines; their hash is not stored, since the lines are."""
    return Citation(wiki, path, start, end, revision, _hash_of(quote), quote)


@functools.lru_cache(16384)
def _hash_of(quote: str) -> str:
    """A question reads hundreds of lines again that the last one read."""
    return lines_hash(quote.split("\n"))


def batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    """Batches: a statement has a limit of values."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def tables_damaged(path: Path) -> bool:
    """Whether SQLite cannot read the list of tables of a file that is there; not where another process holds it."""
    if not path.exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            db.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return "locked" not in str(error)
    return False
