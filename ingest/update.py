"""Updates the index from the wikis and the experience log: only what changed is read, embedded and written again.

The order keeps every promise of the index when the process dies anywhere. One transaction swaps the passages, notes in
`pending` what the vector index does not hold as it is now, and moves the generation; then missing vectors are made and
kept, some at a time; then Chroma is made to match, and what it holds is taken out of `pending`. A reader compares
what is pending itself, so it sees the passages as they are at every moment.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ingest.passages import passages_of
from ingest.progress import Progress, UpdateResult, no_progress
from ingest.vectors import VectorUpdate
from kbs.evidence.passage import LOG, PageEntry
from kbs.evidence.table_rows import TableRow
from kbs.evidence.vocabulary import Product, Vocabulary
from kbs.index.encoder import Encoder
from kbs.index.sqlite_file import DamagedIndexError, index_lock, set_aside, storage_error
from kbs.index.store import Store
from wiki.library import Wiki, WikiFile, content_hash, products_of, revision_of
from wiki.page import Page, Problem

if TYPE_CHECKING:
    from kbs.experience.entry import Entry
    from kbs.experience.index import ExperienceIndex


@dataclass(frozen=True)
class _Changes:
    """What is other in a wiki than the index has it."""

    wiki: Wiki
    revision: str
    files: list[tuple[WikiFile, str]]
    """Files whose content is new, with its hash."""
    touched: list[WikiFile]
    """Files that are as they were but for their time."""
    gone: list[str]


@dataclass(frozen=True)
class _Records:
    """The records that the index is to hold: those of the log, or none."""

    log: ExperienceIndex | None

    def take(self, store: Store, progress: Progress, result: UpdateResult) -> None:
        """Take over what changed in the log since the last time."""
        from ingest.records import page_of
        from kbs.experience.filters import Filter  # only where there is a log: a question starts sooner

        before, every = store.meta("log_mark"), Filter(masked=None)
        mark, changed = self.log.changed(before) if self.log else ("", None)
        if mark == before:
            return
        gone = list(store.files(LOG)) if changed is None else changed
        for id in gone:
            store.remove_page(LOG, id)
        entries: Iterable[Entry] = ()
        if self.log is not None:
            entries = self.log.entries(every) if changed is None else self.log.chosen(changed, every)
        total = self.log.count(every) if self.log is not None and changed is None else len(gone)
        for done, entry in enumerate(entries, start=1):
            progress("reading the log", done, total)
            store.put_page(*page_of(entry), (), ())
        result.records = max(total, len(gone))
        store.set_meta("log_mark", mark)


BEING_WRITTEN = 1_000_000_000
"""Nanoseconds for which a page that was emptied is one that is just being saved."""


class Index(VectorUpdate):
    """The index under `home`: where its parts are, and how it is kept up to date."""

    def is_fresh(self, store: Store, wikis: Sequence[Wiki], model: str | None, log_mark: str | None = None) -> bool:
        """Whether the index holds what the wikis hold, by the files' sizes and times; has its vectors, where a model is
        named; and the log as it was at a mark, where one is given."""
        known = [(name, root) for name, kind, root, _ in store.wikis() if kind != LOG]
        if known != [(wiki.name, str(wiki.root)) for wiki in wikis]:
            return False
        if model is not None and (store.meta("vector_model") != model or store.pending(1)):
            return False
        if log_mark is not None and store.meta("log_mark") != log_mark:
            return False
        for wiki in wikis:
            have = {path: (size, mtime) for path, (size, mtime, _) in store.files(wiki.name).items()}
            if have != {file.path: (file.size, file.mtime_ns) for file in wiki.files()}:
                return False
        return True

    def same_content(self, store: Store, wikis: Sequence[Wiki]) -> bool:
        """Whether the index holds what the wikis hold, wherever they are: by their names and bytes."""
        known = [(name, revision) for name, kind, _, revision in store.wikis() if kind != LOG]
        return known == [(wiki.name, wiki.revision) for wiki in wikis]

    def update(
        self,
        wikis: Sequence[Wiki],
        vocabulary: Vocabulary,
        encoder: Encoder | None,
        *,
        log: ExperienceIndex | None = None,
        keep_records: bool = False,
        rebuild: bool = False,
        timeout: float = 0.0,
        progress: Progress = no_progress,
    ) -> UpdateResult:
        """Update the index; with no `encoder`, words and specs alone; with no `log`, without records, unless those that
        are there are to be kept.

        Raises `IndexBusyError` if another process writes for longer than `timeout` seconds.
        """
        records = None if keep_records else _Records(log)
        with index_lock(self.home, timeout):
            result = UpdateResult()
            try:
                try:
                    with self._open(result, rebuild) as store:
                        self._update(store, wikis, vocabulary, encoder, records, rebuild, progress, result)
                except (DamagedIndexError, sqlite3.DatabaseError) as error:
                    if isinstance(error, sqlite3.OperationalError):
                        raise
                    # Damage may show only in some statements; then everything is rebuilt.
                    result = UpdateResult(set_aside=set_aside(self.folder))
                    with self._open(result, rebuild) as store:
                        self._update(store, wikis, vocabulary, encoder, records, rebuild, progress, result)
            except (sqlite3.Error, OSError) as error:
                raise storage_error(error, self.folder) or error from error
            return result

    def _open(self, result: UpdateResult, rebuild: bool) -> Store:
        try:
            store = Store(self.folder, create=True)
            if not rebuild or not store.check():
                return store
            store.close()
        except DamagedIndexError:
            pass
        if self.folder.exists():
            result.set_aside = set_aside(self.folder)
        return Store(self.folder, create=True)

    def _update(
        self,
        store: Store,
        wikis: Sequence[Wiki],
        vocabulary: Vocabulary,
        encoder: Encoder | None,
        records: _Records | None,
        rebuild: bool,
        progress: Progress,
        result: UpdateResult,
    ) -> None:
        changes = [_changes(store, wiki, rebuild) for wiki in wikis]
        with store.transaction():
            self._swap(store, changes, records, vocabulary, progress, result)
        if encoder is not None:
            if store.meta("vector_model") != encoder.identity:
                with store.transaction():
                    store.retire_model(encoder.identity, int(time.time()))
                    store.set_meta("vector_model", encoder.identity)
            self._embed(store, encoder, progress, result)
            self._write_vectors(store, encoder.identity, rebuild, progress, result)
        result.generation = store.generation
        result.passages = store.passage_count()

    # --- pages and records ------------------------------------------------------------------------------------------

    def _swap(
        self,
        store: Store,
        changes: Sequence[_Changes],
        records: _Records | None,
        vocabulary: Vocabulary,
        progress: Progress,
        result: UpdateResult,
    ) -> None:
        before = store.wikis()
        touched: set[str] = set()
        kept = {change.wiki.name for change in changes} | {LOG}
        for name, *_ in before:
            for path in store.files(name) if name not in kept else ():
                touched.add(store.remove_page(name, path))
                result.pages_removed += 1
        declared: list[Product] = []
        total, done = sum(len(change.files) for change in changes), 0
        for change in changes:
            name = change.wiki.name
            for path in change.gone:
                touched.add(store.remove_page(name, path))
                result.pages_removed += 1
            for file in change.touched:
                store.touch(name, file.path, file.size, file.mtime_ns)
            for file, sha in change.files:
                done += 1
                progress("reading pages", done, total)
                touched.add(store.remove_page(name, file.path))
                page = _put(store, change.wiki, file, sha, vocabulary, result)
                if page is not None:
                    touched.add(page.meta.id)
                    declared += products_of([page], vocabulary)
            result.pages_read += len(change.files)
        after = [
            (one.wiki.name, "notes" if one.wiki.notes else "wiki", str(one.wiki.root), one.revision) for one in changes
        ]
        if records is None:
            after += [one for one in before if one[1] == LOG]
        else:
            if records.log is not None:
                after.append((LOG, LOG, str(records.log.files.root), ""))
            records.take(store, progress, result)
        store.set_wikis(after)
        same = [name for name, *_ in before] == [name for name, *_ in after]
        store.hide_overridden(touched - {""} if same else None)
        if touched or result.records or before != after:
            store.bump_generation()
        fresh = {product.id: asdict(product) for product in declared}
        still = {p["id"]: p for p in store.products() if store.page_ids("product", p["id"])}
        if declared or len(still) != len(store.products()):
            store.put_products((still | fresh).values())

    # --- the rest ---------------------------------------------------------------------------------------------------

    def remember_model_file(self, stamp: str) -> None:
        """Note the stamp of a model file whose hash was verified, so that a question need not read it all again."""
        with Store(self.folder) as store:
            if store.meta("model_stamp") != stamp:
                with store.transaction():
                    store.set_meta("model_stamp", stamp)

    def open(self) -> Store:
        """The index for reading. Raises FileNotFoundError or `DamagedIndexError` if there is none to read."""
        return Store(self.folder)


def problem_count(problems: dict[str, list[Problem]]) -> tuple[int, int]:
    """(errors, warnings) among problems by page."""
    every = [p for found in problems.values() for p in found]
    return sum(p.error for p in every), sum(not p.error for p in every)


def _changes(store: Store, wiki: Wiki, rebuild: bool) -> _Changes:
    known = store.files(wiki.name)
    moved = str(wiki.root) not in [root for name, _, root, _ in store.wikis() if name == wiki.name]
    hashes: dict[str, str] = {}
    changed: list[tuple[WikiFile, str]] = []
    touched: list[WikiFile] = []
    for file in wiki.files():
        size, mtime, sha = known.get(file.path, (-1, -1, ""))
        if not file.size and size > 0 and abs(time.time_ns() - file.mtime_ns) < BEING_WRITTEN:
            hashes[file.path] = sha  # an editor empties a file, then writes it: what it said counts until then
            continue
        # Another folder's file of the same size and time is another file.
        same = not moved and (size, mtime) == (file.size, file.mtime_ns)
        hashes[file.path] = sha if same else content_hash(wiki.read(file.path))
        if rebuild or hashes[file.path] != sha:
            changed.append((file, hashes[file.path]))
        elif not same:
            touched.append(file)
    return _Changes(wiki, revision_of(hashes), changed, touched, [path for path in known if path not in hashes])


def _put(
    store: Store, wiki: Wiki, file: WikiFile, sha: str, vocabulary: Vocabulary, result: UpdateResult
) -> Page | None:
    """Read a page and put it into the index; None where it cannot be read."""
    from wiki.reader import read_page  # imports the parsers of Markdown and YAML, which an index that is fresh spares

    data = wiki.read(file.path)
    key = f"{wiki.name}/{file.path}"
    if data is None:
        read: Page | list[Problem] = [wiki.unreadable(file.path)]
    else:
        read = read_page(wiki.name, file.path, data, "", vocabulary)
    if not isinstance(read, Page):
        result.problems[key] = read
        entry = PageEntry(wiki.name, file.path, "", "", "", "", file.size, file.mtime_ns, sha, {})
        store.put_broken(entry, [asdict(problem) for problem in read])
        return None
    if read.problems:
        result.problems[key] = list(read.problems)
    rows: list[TableRow] = [*read.costs, *read.advice, *read.thresholds, *read.measured]
    store.put_page(_entry(read, file, sha), passages_of(read, ""), read.specs, rows)
    return read


def _entry(page: Page, file: WikiFile, sha256: str) -> PageEntry:
    meta = page.meta
    facets = {
        "kind": (meta.kind,),
        "tag": meta.tags,
        "language": meta.languages,
        "arch": meta.architectures,
        "vendor": (meta.vendor,) if meta.vendor else (),
        "symptom": meta.symptoms,
        "confidence": (meta.confidence,),
        "operation": meta.operations,
        "bottleneck": meta.bottlenecks,
        "technique": meta.techniques,
        "product": (page.product,) if page.product else (),
    }
    return PageEntry(
        wiki=page.wiki,
        path=page.path,
        page_id=meta.id,
        kind=meta.kind,
        title=meta.title,
        confidence=meta.confidence,
        size=file.size,
        mtime_ns=file.mtime_ns,
        sha256=sha256,
        facets=facets,
    )
