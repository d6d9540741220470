"""Makes the vectors that are missing, and makes Chroma hold those of the passages as they are."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

from ingest.carried import carried_vectors
from ingest.progress import Progress, UpdateResult
from kbs.common.ulid import new_ulid
from kbs.index.chroma import BATCH as CHROMA_BATCH
from kbs.index.chroma import Known, LostCollectionError, VectorIndex, VectorIndexError
from kbs.index.chroma_server import Server
from kbs.index.encoder import Encoder
from kbs.index.sqlite_file import SCHEMA_VERSION
from kbs.index.store import Store

BATCH = 64
"""Texts embedded between two commits: what a kill can cost."""
_LOOKED_UP = 100_000
"""Hashes of texts that are looked up at once among the vectors that came with kopt."""
_READ = 4096
"""Texts that are read at once, and held in memory."""
KEPT_UNUSED = 30 * 24 * 3600
"""Seconds that the vector of a text that no page has any more is kept: the page may come back, or another have it."""
MOST_UNUSED = 200_000
"""So many of them at most: 300 MB."""
T = TypeVar("T")


class VectorUpdate:
    """The vectors of the index under `home`; `ingest.update.Index` is one."""

    def __init__(self, home: Path, server: Server | None = None) -> None:
        self.home = home
        self.folder = home / "index"
        self.server = server

    def vectors(self, store: Store) -> VectorIndex:
        """The Chroma part."""
        return VectorIndex(self.folder / "chroma", store.meta("collection"), self.server)

    @staticmethod
    def known(store: Store) -> Known:
        """What the index knows of its Chroma part."""
        tokens = tuple(filter(None, (store.meta("vector_token"), *store.meta("vector_next").split(" "))))
        return Known(tokens, max(0, store.vector_count() - store.pending_count()), store.meta("vector_files"))

    def _embed(self, store: Store, encoder: Encoder, progress: Progress, result: UpdateResult) -> None:
        model, after = encoder.identity, ""
        # All that came with kopt first, so that the rate and the time left are those of what is embedded.
        while keys := store.missing_keys(model, after, _LOOKED_UP):
            carried, after = carried_vectors(model, set(keys)), keys[-1]
            with store.transaction():
                store.put_embeddings(model, carried.items())
            result.carried += len(carried)
        total, done = store.missing_count(model), 0
        while some := store.missing_embeddings(model, _READ):
            for start in range(0, len(some), BATCH):
                progress("embedding texts", done, total)
                part = some[start : start + BATCH]
                vectors = encoder.encode([text for _, text in part])
                made = zip((key for key, _ in part), (v.tobytes() for v in vectors), strict=True)
                with store.transaction():
                    store.put_embeddings(model, made)
                done += len(part)
                result.embedded += len(part)
        if result.embedded:
            progress("embedding texts", done, done)

    def _write_vectors(self, store: Store, model: str, rebuild: bool, progress: Progress, result: UpdateResult) -> None:
        """Make Chroma hold the passages that have a vector. Where it fails, they stay pending."""
        vectors = self.vectors(store)
        try:
            try:
                if rebuild or not store.meta("collection"):
                    raise LostCollectionError("it is to be made", code="chroma_rebuild", hint="Run `kopt ingest`.")
                if store.pending(1):
                    self._write_pending(store, model, vectors, progress)
                else:
                    vectors.check(self.known(store))
            except LostCollectionError:
                self._fill(store, model, progress)
        except VectorIndexError as error:
            result.degraded = error.message
            return
        self._discard_others(store)
        with store.transaction():
            store.forget_embeddings(int(time.time()) - KEPT_UNUSED, MOST_UNUSED)

    def _write_pending(self, store: Store, model: str, vectors: VectorIndex, progress: Progress) -> None:
        known, token = self.known(store), new_ulid()
        vectors.check(known)
        with store.transaction():  # beside those of updates that were begun and not ended
            store.set_meta("vector_next", f"{store.meta('vector_next')} {token}".strip())
        total, done = store.pending_count(), 0
        with vectors.writing(known, token) as writer:
            for ids in _batches(store.pending(), CHROMA_BATCH):
                progress("indexing vectors", done, total)
                there = dict(store.vectors(model, ids))
                writer.put(list(there.items()))
                writer.remove([id for id in ids if id not in there])
                done += len(ids)
        self._settle(store, model, token, "")
        progress("indexing vectors", total, total)

    def _fill(self, store: Store, model: str, progress: Progress) -> None:
        """Fill a new collection with everything; then it takes the place of the one before."""
        if begun := store.meta("collection_begun"):
            VectorIndex(self.folder / "chroma", begun, self.server).discard()
        name, token = new_ulid(), new_ulid()
        with store.transaction():
            store.set_meta("collection_begun", name)
        (self.folder / "chroma").mkdir(exist_ok=True)
        about = {
            "wikis": " ".join(f"{wiki}@{revision[:16]}" for wiki, _, _, revision in store.wikis()),
            "model": model,
            "schema": str(SCHEMA_VERSION),
        }
        total, done = store.vector_count(), 0
        with VectorIndex(self.folder / "chroma", name, self.server).filling(about, token) as writer:
            for some in _batches(store.vectors(model), CHROMA_BATCH):
                progress("indexing vectors", done, total)
                writer.put(some)
                done += len(some)
        self._settle(store, model, token, name)
        progress("indexing vectors", total, total)

    def _settle(self, store: Store, model: str, token: str, collection: str) -> None:
        tokens = self.known(store).tokens
        files = VectorIndex(self.folder / "chroma", collection or store.meta("collection"), self.server).stamp()
        with store.transaction():
            store.settle(model)
            store.set_meta("vector_files", files)
            store.set_meta("vector_token", token)
            store.set_meta("vector_next", "")
            if collection:
                store.set_meta("collection_before", " ".join((store.meta("collection"), *tokens)))
                store.set_meta("collection", collection)
                store.set_meta("collection_begun", "")

    def _discard_others(self, store: Store) -> None:
        """Delete the collection whose place another took, and what else is left on disk."""
        before, *tokens = store.meta("collection_before").split(" ")
        if before:
            VectorIndex(self.folder / "chroma", before, self.server).discard(Known(tuple(tokens), 0))
            with store.transaction():
                store.set_meta("collection_before", "")
        for folder in (self.folder / "chroma").glob("*"):
            if self.server is not None or folder.name != store.meta("collection"):
                shutil.rmtree(folder, ignore_errors=True)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
