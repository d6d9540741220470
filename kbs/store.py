"""The index on disk: SQLite holds passages, specs, rows, words and vectors; it is derived and can always be rebuilt.

One transaction replaces what an ingest changed and moves the generation counter, so a reader sees the index before or
after it, never between. Readers are not blocked (write-ahead log). Vectors are kept by the hash of the embedded text,
so text that did not change is never embedded again.
"""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kbs.citation import Citation, lines_hash
from kbs.errors import IndexBusyError, KoptError
from kbs.passage import PageEntry, Passage
from kbs.records import AdviceRow, CostRow, MeasuredRow, TableRow, ThresholdRow
from kbs.spec import Source, Spec
from kbs.tokens import index_words

APPLICATION_ID = 0x6B6F7074
SCHEMA_VERSION = 1
FILE_NAME = "index.sqlite"
_BUSY_SECONDS = 10.0
_NOT_WRITABLE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS),  # no permission
    *(errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP),  # no folder, and none can be made
)

_ROW_KINDS: dict[str, type[Any]] = {
    "cost": CostRow,
    "advice": AdviceRow,
    "threshold": ThresholdRow,
    "measured": MeasuredRow,
}

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE wikis (name TEXT PRIMARY KEY, root TEXT NOT NULL, revision TEXT NOT NULL, rank INTEGER NOT NULL);
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, wiki TEXT NOT NULL, path TEXT NOT NULL, page_id TEXT NOT NULL, kind TEXT NOT NULL,
    title TEXT NOT NULL, confidence TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    sha256 TEXT NOT NULL, hidden INTEGER NOT NULL DEFAULT 0, UNIQUE (wiki, path));
CREATE INDEX pages_by_page_id ON pages (page_id);
CREATE TABLE broken (wiki TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    problems TEXT NOT NULL, PRIMARY KEY (wiki, path)) WITHOUT ROWID;
CREATE TABLE facets (
    page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE, facet TEXT NOT NULL, value TEXT NOT NULL);
CREATE INDEX facets_by_value ON facets (facet, value);
CREATE INDEX facets_by_page ON facets (page);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, passage TEXT NOT NULL UNIQUE, page INTEGER NOT NULL REFERENCES pages ON DELETE CASCADE,
    line_start INTEGER NOT NULL, line_end INTEGER NOT NULL, trail TEXT NOT NULL, text TEXT NOT NULL,
    embedded TEXT NOT NULL, embedding_key TEXT NOT NULL);
CREATE INDEX passages_by_page ON passages (page);
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
CREATE TABLE embeddings (
    key TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (key, model)) WITHOUT ROWID;
"""


class DamagedIndexError(KoptError):
    """The file is no index of this version of kopt, or is damaged. It is set aside and rebuilt by whoever can write."""


def damaged(path: Path, why: str) -> DamagedIndexError:
    """The error for an index at `path` that cannot be used."""
    return DamagedIndexError(
        f"the index at {path} cannot be used: {why}",
        code="index_damaged",
        hint="Run `kopt ingest --rebuild`. The index is derived from the wiki: nothing is lost.",
    )


def storage_error(error: Exception, folder: Path) -> KoptError | None:
    """The error to show for a full or read-only disk or a held file; None where `error` is something else."""
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT) or "disk is full" in text or "no space" in text:
        return KoptError(
            f"there is no space left on the disk that holds {folder}",
            code="disk_full",
            hint="Free some space, or set KOPT_HOME to another disk. What was stored before is intact.",
        )
    if number in _NOT_WRITABLE or "readonly" in text or "unable to open" in text:
        return KoptError(
            f"{folder} cannot be written",
            code="not_writable",
            hint="Give it write permission, or set KOPT_HOME to a folder that you can write.",
        )
    if isinstance(error, sqlite3.OperationalError) and "locked" in text:
        return IndexBusyError(
            f"another program holds the index in {folder}",
            code="index_busy",
            hint="End that program, then run the command again. Nothing was lost.",
        )
    return None


class Store:
    """The SQLite file of an index. Use as a context manager; `create=True` makes a missing one."""

    def __init__(self, folder: Path, *, create: bool = False) -> None:
        self.folder = folder
        self.path = folder / FILE_NAME
        if not create and not self.path.exists():
            raise FileNotFoundError(self.path)
        try:
            if create:
                folder.mkdir(parents=True, exist_ok=True)
            self.db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
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
            self.db.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                if not self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    self.db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self.db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                    for statement in _SCHEMA.split(";\n"):
                        if statement.strip():
                            self.db.execute(statement)
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
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except BaseException as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise storage_error(error, self.folder) or damaged(self.path, str(error)) from error
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Reads inside see one state of the index, whatever others write."""
        try:
            self.db.execute("BEGIN")
            yield
        except sqlite3.DatabaseError as error:
            raise damaged(self.path, str(error)) from error
        finally:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")

    # --- meta -------------------------------------------------------------------------------------------------------

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

    # --- pages ------------------------------------------------------------------------------------------------------

    def wikis(self) -> list[tuple[str, str, str, int]]:
        """(name, root, revision, rank) of every wiki in the index, lowest rank first."""
        rows = self.db.execute("SELECT name, root, revision, rank FROM wikis ORDER BY rank").fetchall()
        return [(str(a), str(b), str(c), int(d)) for a, b, c, d in rows]

    def set_wikis(self, wikis: Sequence[tuple[str, str, str]]) -> None:
        """Replace the list of wikis; a later one overrides pages of an earlier one."""
        self.db.execute("DELETE FROM wikis")
        self.db.executemany(
            "INSERT INTO wikis VALUES (?, ?, ?, ?)", [(n, r, v, rank) for rank, (n, r, v) in enumerate(wikis)]
        )

    def files(self, wiki: str) -> dict[str, tuple[int, int, str]]:
        """path → (size, mtime_ns, sha256) of what was ingested; a broken page has no sha256."""
        known = {
            str(path): (int(size), int(mtime), str(sha))
            for path, size, mtime, sha in self.db.execute(
                "SELECT path, size, mtime_ns, sha256 FROM pages WHERE wiki = ?", (wiki,)
            )
        }
        for path, size, mtime in self.db.execute("SELECT path, size, mtime_ns FROM broken WHERE wiki = ?", (wiki,)):
            known[str(path)] = (int(size), int(mtime), "")
        return known

    def touch(self, wiki: str, path: str, size: int, mtime_ns: int) -> None:
        """Remember that a file was seen again with the same content."""
        self.db.execute(
            "UPDATE pages SET size = ?, mtime_ns = ? WHERE wiki = ? AND path = ?", (size, mtime_ns, wiki, path)
        )

    def remove_page(self, wiki: str, path: str) -> None:
        """Forget a page and all that came from it."""
        self.db.execute("DELETE FROM broken WHERE wiki = ? AND path = ?", (wiki, path))
        found = self.db.execute("SELECT id FROM pages WHERE wiki = ? AND path = ?", (wiki, path)).fetchone()
        if found:
            self.db.execute("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE page = ?)", (found[0],))
            self.db.execute("DELETE FROM pages WHERE id = ?", (found[0],))

    def remove_wiki(self, wiki: str) -> None:
        """Forget all pages of a wiki."""
        for path in self.files(wiki):
            self.remove_page(wiki, path)

    def put_broken(self, wiki: str, path: str, size: int, mtime_ns: int, problems: Sequence[Mapping[str, Any]]) -> None:
        """Remember that a page could not be read, and why."""
        self.remove_page(wiki, path)
        self.db.execute(
            "INSERT INTO broken VALUES (?, ?, ?, ?, ?)", (wiki, path, size, mtime_ns, json.dumps(list(problems)))
        )

    def broken(self) -> list[tuple[str, str, list[dict[str, Any]]]]:
        """(wiki, path, problems) of the pages that could not be read."""
        rows = self.db.execute("SELECT wiki, path, problems FROM broken ORDER BY wiki, path").fetchall()
        return [(str(w), str(p), json.loads(found)) for w, p, found in rows]

    def put_page(
        self,
        entry: PageEntry,
        passages: Sequence[Passage],
        specs: Sequence[Spec],
        rows: Sequence[TableRow],
    ) -> None:
        """Replace a page and all that comes from it."""
        self.remove_page(entry.wiki, entry.path)
        page = self.db.execute(
            "INSERT INTO pages (wiki, path, page_id, kind, title, confidence, size, mtime_ns, sha256)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(entry.wiki, entry.path, entry.page_id, entry.kind, entry.title, entry.confidence),
                *(entry.size, entry.mtime_ns, entry.sha256),
            ),
        ).lastrowid
        self.db.executemany(
            "INSERT INTO facets VALUES (?, ?, ?)",
            [(page, facet, value) for facet, values in entry.facets.items() for value in values],
        )
        for passage in passages:
            row = self.db.execute(
                "INSERT INTO passages (passage, page, line_start, line_end, trail, text, embedded, embedding_key)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(passage.id, page, passage.citation.line_start, passage.citation.line_end),
                    *(json.dumps(passage.trail), passage.text, passage.embedded, passage.embedding_key),
                ),
            ).lastrowid
            self.db.execute(
                "INSERT INTO words (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
                (
                    *(row, index_words(f"{passage.title} {passage.page_id}")),
                    *(index_words(" ".join(passage.trail)), index_words(passage.text)),
                ),
            )
        self.db.executemany(
            "INSERT INTO specs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *(page, s.citation.line_start, s.product, s.metric, s.value, s.unit, s.qualifier, s.confidence),
                    *(json.dumps(asdict(s.source)), s.citation.quote, int(s.recommended)),
                )
                for s in specs
            ],
        )
        self.db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", [(page, *_row_values(row)) for row in rows])

    def hide_overridden(self) -> None:
        """Hide pages whose id a later wiki has too."""
        self.db.execute(
            "UPDATE pages SET hidden = EXISTS (SELECT 1 FROM pages later JOIN wikis w ON w.name = later.wiki"
            " JOIN wikis mine ON mine.name = pages.wiki WHERE later.page_id = pages.page_id AND w.rank > mine.rank)"
        )

    def overrides(self) -> list[tuple[str, str, str]]:
        """(page id, wiki that is used, wiki that is hidden) where a later wiki overrides an earlier one."""
        rows = self.db.execute(
            "SELECT a.page_id, b.wiki, a.wiki FROM pages a JOIN pages b ON a.page_id = b.page_id"
            " WHERE a.hidden = 1 AND b.hidden = 0 ORDER BY 1"
        ).fetchall()
        return [(str(a), str(b), str(c)) for a, b, c in rows]

    def put_products(self, products: Iterable[Mapping[str, Any]]) -> None:
        """Replace the products that pages declare beside the vocabulary's."""
        self.db.execute("DELETE FROM products")
        self.db.executemany(
            "INSERT OR REPLACE INTO products VALUES (?, ?)", [(p["id"], json.dumps(p)) for p in products]
        )

    def products(self) -> list[dict[str, Any]]:
        """The products that pages declare beside the vocabulary's."""
        return [json.loads(data) for (data,) in self.db.execute("SELECT data FROM products ORDER BY id")]

    def page_titles(self) -> dict[str, str]:
        """page id → title of every visible page."""
        return {str(a): str(b) for a, b in self.db.execute("SELECT page_id, title FROM pages WHERE hidden = 0")}

    def page_ids(self, facet: str, value: str) -> list[str]:
        """Ids of visible pages that have a facet's value."""
        rows = self.db.execute(
            "SELECT p.page_id FROM facets f JOIN pages p ON p.id = f.page WHERE f.facet = ? AND f.value = ?"
            " AND p.hidden = 0 ORDER BY p.page_id",
            (facet, value),
        ).fetchall()
        return [str(row[0]) for row in rows]

    def facet_values(self, page_id: str) -> dict[str, list[str]]:
        """facet → values of a visible page."""
        found: dict[str, list[str]] = {}
        for facet, value in self.db.execute(
            "SELECT f.facet, f.value FROM facets f JOIN pages p ON p.id = f.page WHERE p.page_id = ? AND p.hidden = 0",
            (page_id,),
        ):
            found.setdefault(str(facet), []).append(str(value))
        return found

    def counts(self) -> dict[str, int]:
        """How much of everything the index holds."""
        tables = ("pages", "passages", "specs", "rows", "broken")
        return {table: int(self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables}

    # --- specs and rows ---------------------------------------------------------------------------------------------

    def specs(self, product: str | None = None, metric: str | None = None) -> list[Spec]:
        """Specs of visible pages, the latest wiki's first, then in the order of their page."""
        where = ["p.hidden = 0"]
        values: list[str] = []
        for column, value in (("product", product), ("metric", metric)):
            if value is not None:
                where.append(f"s.{column} = ?")
                values.append(value)
        rows = self.db.execute(
            "SELECT s.product, s.metric, s.value, s.unit, s.qualifier, s.confidence, s.source, s.recommended, s.line,"
            " s.quote, p.wiki, p.path, w.revision FROM specs s JOIN pages p ON p.id = s.page"
            f" JOIN wikis w ON w.name = p.wiki WHERE {' AND '.join(where)} ORDER BY w.rank DESC, p.path, s.line",
            values,
        )
        return [
            Spec(
                product=r[0],
                metric=r[1],
                value=r[2],
                unit=r[3],
                qualifier=r[4],
                confidence=r[5],
                source=Source(**json.loads(r[6])),
                citation=_citation(r[10], r[11], r[8], r[8], r[12], r[9]),
                recommended=bool(r[7]),
            )
            for r in rows
        ]

    def rows(self, kind: str, subject: str | None = None, page_id: str | None = None) -> list[Any]:
        """Rows of a kind (`cost`, `advice`, `threshold`, `measured`) about a subject, in the order of their page."""
        where, values = ["r.kind = ?", "p.hidden = 0"], [kind]
        if subject is not None:
            where.append("r.subject = ?")
            values.append(subject)
        if page_id is not None:
            where.append("p.page_id = ?")
            values.append(page_id)
        found = self.db.execute(
            "SELECT r.data, r.line, r.quote, p.wiki, p.path, w.revision FROM rows r JOIN pages p ON p.id = r.page"
            f" JOIN wikis w ON w.name = p.wiki WHERE {' AND '.join(where)} ORDER BY w.rank DESC, p.path, r.line",
            values,
        )
        made = []
        for data, line, quote, wiki, path, revision in found:
            fields = json.loads(data)
            if "dims" in fields:
                fields["dims"] = tuple(fields["dims"])
            made.append(_ROW_KINDS[kind](**fields, citation=_citation(wiki, path, line, line, revision, quote)))
        return made

    # --- passages ---------------------------------------------------------------------------------------------------

    def page_rows(self, filters: Mapping[str, Sequence[str]]) -> list[int] | None:
        """Ids of visible pages that have, for every facet, one of its values; None where nothing is filtered."""
        if not any(filters.values()):
            return None
        chosen: set[int] | None = None
        for facet, values in filters.items():
            if not values:
                continue
            marks = ",".join("?" * len(values))
            found = {
                int(row[0])
                for row in self.db.execute(
                    "SELECT f.page FROM facets f JOIN pages p ON p.id = f.page"
                    f" WHERE f.facet = ? AND f.value IN ({marks}) AND p.hidden = 0",
                    (facet, *values),
                )
            }
            chosen = found if chosen is None else chosen & found
        return sorted(chosen or ())

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """Passages of visible pages by their id."""
        out: dict[str, Passage] = {}
        for some in _batches(list(ids), 500):
            rows = self.db.execute(
                "SELECT t.passage, p.page_id, p.title, t.trail, t.text, t.embedded, p.wiki, p.path, t.line_start,"
                " t.line_end, w.revision FROM passages t JOIN pages p ON p.id = t.page JOIN wikis w ON w.name = p.wiki"
                f" WHERE p.hidden = 0 AND t.passage IN ({','.join('?' * len(some))})",
                some,
            )
            for r in rows:
                citation = _citation(r[6], r[7], r[8], r[9], r[10], r[4])
                out[r[0]] = Passage(r[0], r[1], r[2], tuple(json.loads(r[3])), r[4], r[5], citation)
        return out

    def passage_ids(self, page_rows: Sequence[int] | None = None, page_id: str | None = None) -> list[str]:
        """Ids of the passages of visible pages, all or of some pages, in the order of the pages."""
        if page_rows is not None:
            found: list[str] = []
            for some in _batches(list(page_rows), 500):
                marks = ",".join("?" * len(some))
                found += [
                    str(r[0]) for r in self.db.execute(f"SELECT passage FROM passages WHERE page IN ({marks})", some)
                ]
            return found
        where, values = ("AND p.page_id = ?", (page_id,)) if page_id is not None else ("", ())
        rows = self.db.execute(
            f"SELECT t.passage FROM passages t JOIN pages p ON p.id = t.page WHERE p.hidden = 0 {where} ORDER BY t.id",
            values,
        )
        return [str(r[0]) for r in rows]

    def match_words(
        self, terms: Sequence[str], limit: int, page_rows: Sequence[int] | None = None
    ) -> list[tuple[str, float]]:
        """(passage id, BM25 score, higher is better) of passages that have any of `terms`, best first."""
        if not terms:
            return []
        query = " OR ".join('"' + term.replace('"', "") + '"' for term in terms)
        chosen = ""
        if page_rows is not None:
            chosen = f"AND t.page IN ({','.join(str(int(row)) for row in page_rows)})"
        rows = self.db.execute(
            "SELECT t.passage, -bm25(words, 4.0, 2.0, 1.0) AS score FROM words JOIN passages t ON t.id = words.rowid"
            f" JOIN pages p ON p.id = t.page WHERE words MATCH ? AND p.hidden = 0 {chosen}"
            " ORDER BY score DESC, t.id LIMIT ?",
            (query, limit),
        )
        return [(str(a), float(b)) for a, b in rows]

    def word_frequency(self, term: str) -> int:
        """How many passages have the term."""
        return int(
            self.db.execute(
                "SELECT count(*) FROM words WHERE words MATCH ?", ('"' + term.replace('"', "") + '"',)
            ).fetchone()[0]
        )

    # --- vectors ----------------------------------------------------------------------------------------------------

    def missing_embeddings(self, model: str) -> list[tuple[str, str]]:
        """(key, text) of what has no vector of this model yet."""
        rows = self.db.execute(
            "SELECT DISTINCT t.embedding_key, t.embedded FROM passages t LEFT JOIN embeddings e"
            " ON e.key = t.embedding_key AND e.model = ? WHERE e.key IS NULL ORDER BY t.id",
            (model,),
        )
        return [(str(a), str(b)) for a, b in rows]

    def put_embeddings(self, model: str, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Keep vectors (float32 bytes); on disk when the surrounding transaction is."""
        self.db.executemany("INSERT OR REPLACE INTO embeddings VALUES (?, ?, ?)", [(k, model, v) for k, v in vectors])

    def forget_embeddings(self, model: str) -> None:
        """Drop vectors that no passage uses, and those of other models."""
        self.db.execute(
            "DELETE FROM embeddings WHERE model != ? OR key NOT IN (SELECT embedding_key FROM passages)", (model,)
        )

    def vectors(self, model: str, ids: Sequence[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """(passage id, float32 bytes) of passages, all or some."""
        base = "SELECT t.passage, e.vector FROM passages t JOIN embeddings e ON e.key = t.embedding_key AND e.model = ?"
        if ids is None:
            yield from self.db.execute(base, (model,))
            return
        for some in _batches(list(ids), 500):
            yield from self.db.execute(f"{base} WHERE t.passage IN ({','.join('?' * len(some))})", (model, *some))


def set_aside(folder: Path) -> Path:
    """Move a damaged index out of the way, so that it can be looked at; returns where it is now."""
    target = folder.with_name(f"{folder.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    number = 0
    while target.exists():
        number += 1
        target = folder.with_name(f"{folder.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{number}")
    shutil.move(folder, target)
    return target


def _citation(wiki: str, path: str, start: int, end: int, revision: str, quote: str) -> Citation:
    return Citation(wiki, path, start, end, revision, lines_hash(quote.split("\n")), quote)


def _row_values(row: TableRow) -> tuple[str, int, str, str, str]:
    kind = next(name for name, made in _ROW_KINDS.items() if isinstance(row, made))
    fields = asdict(row)
    del fields["citation"]
    subject = {"cost": "operation", "advice": "bottleneck", "threshold": "symptom", "measured": "operation"}[kind]
    return kind, row.citation.line_start, fields[subject], json.dumps(fields), row.citation.quote


def _batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
