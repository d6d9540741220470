"""The log's index: a SQLite file derived from the log's files and updated whenever it is opened.

It can be deleted at any moment. Files are read on from where they were read last; one that was changed in another way
than by appending is read again. Where the index cannot be written, it is built in memory; and so it is where there is
no log yet, which leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from kbs.common.errors import IndexBusyError, KoptError
from kbs.common.ulid import new_ulid
from kbs.experience.entry import Entry, entry_of, groups
from kbs.experience.experiment import Experiment, Join, Mask
from kbs.experience.files import SHIPPED, LogFiles, Problem
from kbs.experience.filters import Filter
from kbs.experience.ranking.trials import TRIAL, Trials, labels, pack
from kbs.index.sqlite_file import connect, make_tables, transaction

SCHEMA = 1
"""Version of the tables. An index of another version is built again."""
BUSY_SECONDS = 60.0
_PACK = 1024
"""Rows of trials in a pack; the triggers say it too."""
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (name TEXT PRIMARY KEY, state TEXT NOT NULL, offset INTEGER NOT NULL, lines INTEGER NOT NULL,
    hash TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE problems (file TEXT NOT NULL, line INTEGER NOT NULL, why TEXT NOT NULL);
CREATE TABLE records (row INTEGER PRIMARY KEY, file TEXT NOT NULL, line INTEGER NOT NULL, kind TEXT NOT NULL,
    id TEXT NOT NULL, about TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX records_by_file ON records (file);
CREATE INDEX records_by_about ON records (about, kind);
CREATE INDEX records_by_kind ON records (kind) WHERE kind = 'join';
CREATE TABLE entries (row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, time TEXT NOT NULL, run TEXT NOT NULL,
    iteration INTEGER, kernel TEXT NOT NULL, op TEXT NOT NULL, backend TEXT NOT NULL, gpu TEXT NOT NULL,
    capability TEXT NOT NULL, dims TEXT NOT NULL, dtype TEXT NOT NULL, bottleneck TEXT NOT NULL, stall TEXT NOT NULL,
    methods TEXT NOT NULL, outcome TEXT NOT NULL, median REAL, low REAL, high REAL, provenance TEXT NOT NULL,
    receipt TEXT NOT NULL, shipped INTEGER NOT NULL, masked INTEGER NOT NULL, why TEXT NOT NULL, data TEXT NOT NULL);
CREATE INDEX entries_by_op ON entries (op, bottleneck, gpu);
CREATE INDEX entries_by_kernel ON entries (kernel);
CREATE INDEX entries_by_receipt ON entries (receipt) WHERE receipt <> '';
CREATE INDEX entries_by_run ON entries (run, iteration) WHERE run <> '';
CREATE TABLE names (id TEXT PRIMARY KEY, entry INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX names_by_entry ON names (entry);
CREATE TABLE trials (row INTEGER PRIMARY KEY, masked INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE packs (pack INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TRIGGER trials_added AFTER INSERT ON trials BEGIN DELETE FROM packs WHERE pack = NEW.row / 1024; END;
CREATE TRIGGER trials_removed AFTER DELETE ON trials BEGIN DELETE FROM packs WHERE pack = OLD.row / 1024; END;
CREATE TABLE labels (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL);
"""
ALL = Filter()
"""Every experiment that is not masked."""


class ExperienceIndex:
    """Use as a context manager. It is up to date with the files when it is entered."""

    def __init__(self, files: LogFiles, home: Path) -> None:
        self.files = files
        place = hashlib.sha256(str(files.root.resolve()).encode(errors="surrogateescape")).hexdigest()[:16]
        self.path = home / f"experience-{place}.sqlite"

    def __enter__(self) -> Self:
        kept = (self.path, self.path) if self.path.exists() or self.files.every() else ()
        for place in (*kept, ":memory:"):
            try:
                self.db = _open(place)
                try:
                    self.refresh()
                except BaseException:
                    self.db.close()
                    raise
            except (sqlite3.DatabaseError, OSError) as error:
                if "locked" in str(error):  # it is in use: another process would go on with a file that is gone
                    raise IndexBusyError(
                        f"another program holds {self.path}", code="index_busy", hint="End it, then try again."
                    ) from error
                self._discard()
                continue
            return self
        raise KoptError(
            "the index of the log cannot be built, not in memory either", code="index_damaged", hint="Free some memory."
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.db.close()

    def _discard(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + suffix).unlink()

    # --- keeping up -------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what is new in the log's files."""
        if not self._stale():
            return
        with transaction(self.db):
            touched: set[str] = set()
            known = {row[0]: row[1:] for row in self.db.execute("SELECT name, state, offset, lines, hash FROM files")}
            names = self.files.every()
            for name in set(known) - set(names):
                touched |= self._forget(name)
            for name in names:
                state = json.dumps(self.files.state(name))
                if name in known and known[name][0] == state:
                    continue
                offset, lines = 0, 0
                if name in known and self.files.prefix_hash(name, known[name][1]) == known[name][3]:
                    offset, lines = known[name][1], known[name][2]
                    self.db.execute("DELETE FROM problems WHERE file = ? AND line = 0", (name,))
                else:
                    touched |= self._forget(name)
                touched |= self._read(name, state, offset, lines)
            self._settle(touched)

    def _stale(self) -> bool:
        known = dict(self.db.execute("SELECT name, state FROM files"))
        return known != {name: json.dumps(self.files.state(name)) for name in self.files.every()}

    def _forget(self, name: str) -> set[str]:
        """Drop what a file said: ids whose entries are to be settled."""
        touched: set[str] = set()
        for kind, about, data in self.db.execute("SELECT kind, about, data FROM records WHERE file = ?", (name,)):
            touched |= {about} if kind != "join" else {*Join.model_validate_json(data).joined}
        for table, column in (("records", "file"), ("problems", "file"), ("files", "name")):
            self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (name,))
        return touched

    def _read(self, name: str, state: str, offset: int, lines: int) -> set[str]:
        """Read on: ids whose entries are to be settled."""
        chunk = self.files.read(name, offset, lines)
        self.db.executemany(
            "INSERT INTO records (file, line, kind, id, about, data) VALUES (?, ?, ?, ?, ?, ?)",
            ((name, line, one.kind, one.id, _about(one), one.model_dump_json()) for line, one in chunk.records),
        )
        self.db.executemany("INSERT INTO problems VALUES (?, ?, ?)", ((p.file, p.line, p.why) for p in chunk.problems))
        found = (name, state, chunk.offset, chunk.lines, self.files.prefix_hash(name, chunk.offset))
        self.db.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", found)
        touched = {_about(one) for _, one in chunk.records}
        return touched | {id for _, one in chunk.records if isinstance(one, Join) for id in one.joined}

    def _settle(self, touched: Iterable[str]) -> None:
        """Make the entries of these ids again."""
        joins = [
            Join.model_validate_json(d) for (d,) in self.db.execute("SELECT data FROM records WHERE kind = 'join'")
        ]
        grouped = groups(joins)
        for group in sorted({grouped.get(id, (id,)) for id in touched}):
            marks = ", ".join("?" * len(group))
            for (row,) in self.db.execute(f"SELECT DISTINCT entry FROM names WHERE id IN ({marks})", group).fetchall():
                self.db.execute("INSERT INTO changes (id) SELECT id FROM entries WHERE row = ?", (row,))
                for table, column in (("entries", "row"), ("trials", "row"), ("names", "entry")):
                    self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (row,))
            rows = self.db.execute(
                f"SELECT kind, file, line, id, data FROM records WHERE about IN ({marks}) ORDER BY id, file, line",
                group,
            ).fetchall()
            experiments: dict[str, tuple[str, Experiment]] = {}
            masks = []
            own = {id for kind, file, _, id, _ in rows if kind == "experiment" and file != SHIPPED}
            for kind, file, line, id, data in rows:
                if kind == "mask":
                    masks.append(Mask.model_validate_json(data))
                elif file == SHIPPED:
                    if id not in own:  # whoever imported the same run has it as a record of their own
                        self._put(Entry(Experiment.model_validate_json(data), shipped=True))
                elif kind == "experiment" and id not in experiments:
                    experiments[id] = (data, Experiment.model_validate_json(data))
                elif kind == "experiment" and experiments[id][0] != data:
                    self._problem(file, line, f"the id {id} stands for another experiment, which is read in its place")
            if experiments:
                named = [id for id in group if id in own or not self._is_shipped(id)]
                self._put(entry_of([one for _, one in experiments.values()], masks, named))

    def _is_shipped(self, id: str) -> bool:
        return (
            self.db.execute("SELECT 1 FROM records WHERE about = ? AND file = ?", (id, SHIPPED)).fetchone() is not None
        )

    def _problem(self, file: str, line: int, why: str) -> None:
        self.db.execute("DELETE FROM problems WHERE file = ? AND line = ? AND why = ?", (file, line, why))
        self.db.execute("INSERT INTO problems VALUES (?, ?, ?)", (file, line, why))

    def _put(self, entry: Entry) -> None:
        one, ratio = entry.experiment, entry.experiment.speedup
        row = self.db.execute(
            f"INSERT INTO entries VALUES (NULL{', ?' * 24})",
            (
                *(one.id, one.time, one.run, one.iteration, one.kernel, one.op, one.backend, one.gpu, one.capability),
                *(json.dumps(one.dims), one.dtype, one.bottleneck_before, one.dominant_stall, json.dumps(one.methods)),
                *(one.outcome.value, *((ratio.median, ratio.low, ratio.high) if ratio else (None, None, None))),
                *(
                    one.provenance.value,
                    one.receipt,
                    int(entry.shipped),
                    int(entry.masked),
                    entry.why,
                    one.model_dump_json(),
                ),
            ),
        ).lastrowid
        self.db.execute("INSERT INTO changes (id) VALUES (?)", (one.id,))
        self.db.execute("INSERT INTO trials VALUES (?, ?, ?)", (row, int(entry.masked), pack(one)))
        self.db.executemany("INSERT OR IGNORE INTO labels VALUES (?)", ((label,) for label in labels(one)))
        self.db.executemany("INSERT INTO names VALUES (?, ?)", ((id, row) for id in entry.ids))

    # --- reading ----------------------------------------------------------------------------------------------------

    def problems(self) -> list[Problem]:
        """Lines and files that are no records, by file and line."""
        return [
            Problem(*row) for row in self.db.execute("SELECT file, line, why FROM problems ORDER BY file, line, why")
        ]

    def count(self, wanted: Filter = ALL) -> int:
        """How many experiments there are."""
        where, values = wanted.where()
        return int(self.db.execute(f"SELECT count(*) FROM entries WHERE {where}", values).fetchone()[0])

    def entries(self, wanted: Filter = ALL, limit: int = -1, *, newest: bool = False, skip: int = 0) -> Iterator[Entry]:
        """Experiments by their ids, the oldest first, or the newest, without the first `skip`."""
        where, values = wanted.where()
        order = "DESC" if newest else "ASC"
        rows = self.db.execute(
            f"SELECT row FROM entries WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?", (*values, limit, skip)
        )
        for (row,) in rows.fetchall():
            yield self._entry(row)

    def shipped(self) -> frozenset[str]:
        """Ids of the experiments that ship with kopt."""
        return frozenset(id for (id,) in self.db.execute("SELECT id FROM entries WHERE shipped"))

    def named(self, id: str) -> list[str]:
        """Ids that `id` is or begins: one for a known experiment, several for a beginning that is not enough."""
        found = self.db.execute(
            "SELECT DISTINCT e.id FROM names AS n JOIN entries AS e ON e.row = n.entry WHERE n.id >= ? AND n.id < ? "
            "ORDER BY e.id LIMIT 10",
            (id, f"{id}\x7f"),
        )
        return [one for (one,) in found]

    def get(self, id: str) -> Entry | None:
        """The experiment that an id names, also one that it was joined into another under."""
        row = self.db.execute("SELECT entry FROM names WHERE id = ?", (id,)).fetchone()
        return self._entry(row[0]) if row else None

    def last_mask(self, entry: Entry) -> str:
        """Id of the mask of an entry that holds; empty if it never had one."""
        marks = ", ".join("?" * len(entry.ids))
        found = self.db.execute(
            f"SELECT max(id) FROM records WHERE kind = 'mask' AND about IN ({marks})", entry.ids
        ).fetchone()
        return str(found[0] or "")

    def same(self, one: Experiment) -> Entry | None:
        """An experiment that is there already: same id, same receipt, or same run and iteration."""
        row = self.db.execute("SELECT entry FROM names WHERE id = ?", (one.id,)).fetchone()
        if row is None and one.receipt:
            row = self.db.execute("SELECT row FROM entries WHERE receipt = ? ORDER BY id", (one.receipt,)).fetchone()
        if row is None and one.run:
            row = self.db.execute(
                "SELECT row FROM entries WHERE run = ? AND iteration = ? ORDER BY id", (one.run, one.iteration)
            ).fetchone()
        return self._entry(row[0]) if row else None

    def duplicates(self) -> list[tuple[str, tuple[str, ...]]]:
        """(what they share, ids) of entries that are of one experiment."""
        found: list[tuple[str, tuple[str, ...]]] = []
        for why, columns, condition in (
            ("one receipt", "receipt", "receipt <> '' AND NOT shipped"),
            ("one iteration of one run", "run, iteration", "run <> '' AND NOT shipped"),
        ):
            rows = self.db.execute(
                f"SELECT json_group_array(id) FROM entries WHERE {condition} GROUP BY {columns} HAVING count(*) > 1"
            )
            found += [(why, tuple(sorted(json.loads(ids)))) for (ids,) in rows]
        return sorted(found, key=lambda one: one[1])

    def changed(self, since: str) -> tuple[str, list[str] | None]:
        """(a mark of now, ids of experiments that were added, changed or dropped since an earlier mark).

        None in place of ids: the mark is of another index, and every experiment may have changed.
        """
        (own,) = self.db.execute("SELECT value FROM meta WHERE key = 'identity'").fetchone()
        (last,) = self.db.execute("SELECT coalesce(max(number), 0) FROM changes").fetchone()
        identity, _, number = since.partition(" ")
        if identity != own:
            return f"{own} {last}", None
        found = self.db.execute("SELECT DISTINCT id FROM changes WHERE number > ?", (int(number),))
        return f"{own} {last}", [id for (id,) in found]

    def chosen(self, ids: Sequence[str], wanted: Filter) -> list[Entry]:
        """Those of some experiments that a filter lets through, in the order of `ids`."""
        where, values = wanted.where()
        rows: dict[str, int] = {}
        for start in range(0, len(ids), 500):
            some = ids[start : start + 500]
            marks = ", ".join("?" * len(some))
            rows |= dict(
                self.db.execute(f"SELECT id, row FROM entries WHERE id IN ({marks}) AND {where}", (*some, *values))
            )
        return [self._entry(rows[id]) for id in ids if id in rows]

    def trials(self) -> Trials:
        """What the ranking looks at of every experiment that is not masked."""
        packs = dict(self.db.execute("SELECT pack, data FROM packs"))
        made = {pack: self._packed(pack) for pack in self._packs() - packs.keys()}
        if made:
            # Where nothing can be written they are made again the next time.
            with contextlib.suppress(sqlite3.OperationalError), transaction(self.db):
                self.db.executemany("INSERT OR REPLACE INTO packs VALUES (?, ?)", made.items())
        whole = packs | made
        names = self.db.execute("SELECT name FROM labels")
        return Trials.of(b"".join(whole[pack] for pack in sorted(whole)), (name for (name,) in names))

    def _packs(self) -> set[int]:
        """Trials stand side by side in so many values, since 100,000 rows take too long to read."""
        (last,) = self.db.execute("SELECT coalesce(max(row), -1) FROM trials").fetchone()
        return set(range(last // _PACK + 1))

    def _packed(self, pack: int) -> bytes:
        found = self.db.execute(
            "SELECT data FROM trials WHERE row >= ? AND row < ? AND masked = 0 ORDER BY row",
            (_PACK * pack, _PACK * (pack + 1)),
        )
        return b"".join(data for (data,) in found)

    def effects(self, wanted: Filter) -> list[tuple[str, str, str, str, str, float | None]]:
        """(id, method, op, GPU, outcome, median speedup) for each method of each experiment; a method may be empty."""
        where, values = wanted.where()
        return self.db.execute(
            "SELECT entries.id, coalesce(m.value, ''), op, gpu, outcome, median FROM entries "
            f"LEFT JOIN json_each(methods) AS m WHERE {where} ORDER BY entries.id",
            values,
        ).fetchall()

    def _entry(self, row: int) -> Entry:
        columns = "data, masked, why, shipped"
        data, masked, why, shipped = self.db.execute(f"SELECT {columns} FROM entries WHERE row = ?", (row,)).fetchone()
        one = _experiment(data)
        ids = [id for (id,) in self.db.execute("SELECT id FROM names WHERE entry = ? ORDER BY id", (row,))]
        return Entry(one, bool(masked), why, tuple(dict.fromkeys((one.id, *ids))), bool(shipped))


@functools.lru_cache(512)
def _experiment(data: str) -> Experiment:
    """A record, which is frozen: the questions of a process find the same ones again and again."""
    return Experiment.model_validate_json(data)


def _about(record: Experiment | Mask | Join) -> str:
    return record.target if isinstance(record, Mask) else record.joined[0] if isinstance(record, Join) else record.id


def _open(place: Path | str) -> sqlite3.Connection:
    """An index of this version. Raises `sqlite3.DatabaseError` for what is none, or cannot be made one."""
    if isinstance(place, Path):
        place.parent.mkdir(parents=True, exist_ok=True)
    db = connect(place, BUSY_SECONDS)
    try:
        edition = _edition()
        make_tables(
            db,
            f"{_TABLES}INSERT INTO meta VALUES ('edition', '{edition}');\n"
            f"INSERT INTO meta VALUES ('identity', '{new_ulid()}')",
        )
        found = db.execute("SELECT value FROM meta WHERE key = 'edition'").fetchone()
        if not found or found[0] != edition:
            raise sqlite3.DatabaseError("it was made by another version of kopt")
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


@functools.cache
def _edition() -> str:
    """Changes with the tables, and with the names that records are brought to."""
    data = resources.files("kbs") / "data"
    names = b"".join((data / name).read_bytes() for name in ("vocabulary.toml", "profile_metrics.toml"))
    return f"{SCHEMA} {hashlib.sha256(names + repr((TRIAL.descr, _TABLES)).encode()).hexdigest()}"
