"""The vector index in Chroma, which every search asks; no other module uses Chroma.

It is built from the vectors in SQLite and can be rebuilt from them at any time. Each index has a collection of its own,
with a name that no other index has; on disk it has a folder of its own. The collection carries a token that its index
knows: a collection whose token it does not know was written by another (a copy of the same KOPT_HOME, say) and is left
to it. On disk, every write is lock → open → write → close, and a reader opens the collection again when its index names
another token: with anything else Chroma loses vectors silently. Embeddings are always given, so Chroma's own embedder
and its download are never reached.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import json
import logging
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kbs.common.errors import ConfigurationError, KoptError
from kbs.common.files import writable_copy
from kbs.index.chroma_server import Server
from kbs.index.encoder import Vectors
from kbs.index.sqlite_file import tables_damaged

BATCH = 5_000
"""Chroma 1.5 takes at most 5,461 records a call."""
_PATIENCE = 30.0
"""Seconds that a server may take for an answer."""


class VectorIndexError(KoptError):
    """Chroma cannot be used now; a search goes on without it and says so."""


class LostCollectionError(VectorIndexError):
    """The collection is gone, damaged, or was written by another index: it is to be filled again under a new name."""


def _client_of(server: Server) -> Any:
    """A client; it has asked the server nothing yet but whether tenant and database are there."""
    import chromadb
    from chromadb.config import DEFAULT_DATABASE, DEFAULT_TENANT, Settings
    from chromadb.errors import NotFoundError

    host, port, tls = server.address()
    tenant, database = server.tenant or DEFAULT_TENANT, server.database or DEFAULT_DATABASE
    try:
        client = chromadb.HttpClient(
            host=host,
            port=port,
            ssl=tls,
            headers=server.sent_headers(),
            settings=Settings(anonymized_telemetry=False),
            tenant=tenant,
            database=database,
        )
    except NotFoundError as error:  # nothing of the index is lost: it was looked for in the wrong place
        raise VectorIndexError(
            f"the Chroma server at {server.url} has no tenant {tenant} with a database {database}",
            code="chroma_tenant",
            hint="Check the settings chroma_tenant and chroma_database; an administrator of the server makes them.",
        ) from error
    there = getattr(client, "_server", None)
    session = getattr(there, "_session", None)
    if session is not None and there is not None:  # Chroma itself would wait for ever, and close no connection
        session.timeout = _PATIENCE
        stop = type(there).stop
        there.stop = lambda: (session.close(), stop(there))
    return client


@dataclass(frozen=True)
class Known:
    """What an index knows of its collection."""

    tokens: tuple[str, ...]
    """The token of the last whole update, and those of updates that were begun after it."""
    passages: int
    """It holds at least so many."""
    files: str = ""
    """`VectorIndex.stamp` after the last whole update."""


@dataclass
class OpenReader:
    """A collection that is open."""

    client: Any
    collection: Any
    known: Known
    asking: int = 0
    """Queries that are under way in other threads."""


_LOCK = threading.Condition()
"""Chroma is opened and closed by one thread at a time, and closed when no other asks."""
OPEN: dict[tuple[str, str], OpenReader] = {}
"""(where, collection) → what this process has open for reading."""
_OF_PARENT: list[Any] = []


def close_all() -> None:
    """Close all that this process has open for reading; the next search opens it again."""
    for key in list(OPEN):
        _close(key)


def _close(key: tuple[str, str]) -> None:
    with _LOCK:
        there = OPEN.get(key)
        if there is None:
            return
        _LOCK.wait_for(lambda: not there.asking, _PATIENCE)
        if OPEN.get(key) is there:
            del OPEN[key]
            with contextlib.suppress(Exception):
                there.client.close()


def _leave_to_parent() -> None:
    """Open all anew in a forked process: Chroma's threads are its parent's alone, and a query would wait for them.

    What the parent had is kept even while Python ends: to end it waits for its threads too.
    """
    global _LOCK
    _LOCK = threading.Condition()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_OF_PARENT))
    _OF_PARENT.extend(OPEN.values())
    OPEN.clear()
    if (module := sys.modules.get("chromadb.api.shared_system_client")) is not None:
        shared = module.SharedSystemClient
        _OF_PARENT.append(shared._identifier_to_system)
        shared._identifier_to_system, shared._identifier_to_refcount = {}, {}
        shared._refcount_lock = threading.Lock()


os.register_at_fork(after_in_child=_leave_to_parent)


class VectorIndex:
    """One collection: on disk in `folder`, or on a server."""

    def __init__(self, folder: Path, name: str, server: Server | None = None) -> None:
        self.folder = folder / name
        self.name = f"kopt-{name.lower()}"
        self.server = server

    @property
    def place(self) -> str:
        """Where it is, in words."""
        return self.server.url if self.server else str(self.folder)

    # --- reading ----------------------------------------------------------------------------------------------------

    def query(
        self, vector: Vectors, count: int, known: Known, ids: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """(passage id, cosine similarity) of the nearest passages, or of the nearest of `ids`, best first.

        `vector` has shape (dim,). Raises `VectorIndexError`.
        """
        with self._errors(), self._reading(known) as collection:
            chosen = {"ids": list(ids)} if ids is not None else {}
            found = collection.query(
                query_embeddings=[vector.tolist()], n_results=count, include=["distances"], **chosen
            )
            return [
                (str(id), 1.0 - float(distance))
                for id, distance in zip(found["ids"][0], found["distances"][0], strict=True)
            ]

    def stamp(self) -> str:
        """The files of vectors on disk, as they are now: size, time and hash. Nobody but a writer changes them.

        Chroma does not look whether they are whole: with damaged ones it loses hits silently, or the process dies.
        """
        there = self._vector_files() if self.server is None else {}
        return json.dumps({path: [*_seen(file), _hash(file)] for path, file in there.items()})

    def _vector_files(self) -> dict[str, Path]:
        # Without this file Chroma has written no vectors yet: every process that opens them begins the others anew.
        whole = (file.parent for file in self.folder.glob("*/index_metadata.pickle"))
        files = [file for folder in whole for file in folder.iterdir()]
        return {file.relative_to(self.folder).as_posix(): file for file in sorted(files)}

    def _check_files(self, known: Known) -> None:
        if self.server is not None:
            return
        stamped = json.loads(known.files or "{}")
        there = self._vector_files() if known.files else {}
        whole = stamped.keys() == there.keys() and all(
            [size, time] == _seen(there[path]) or (size == _seen(there[path])[0] and hash == _hash(there[path]))
            for path, (size, time, hash) in stamped.items()
        )
        if not whole:
            raise LostCollectionError(
                f"the files of the Chroma index in {self.folder} are not those that were written",
                code="chroma_damaged",
                hint="Run `kopt ingest`.",
            )

    def check(self, known: Known) -> None:
        """Raises `VectorIndexError` if the collection is not what its index knows of it."""
        with self._errors():
            self.close()
            with self._reading(known):
                pass

    def ids(self) -> set[str]:
        """Ids of all passages that have a vector here."""
        with self._errors():
            client = self._client(reading=True)
            try:
                return set(client.get_collection(self.name, embedding_function=None).get(include=[])["ids"])
            finally:
                client.close()

    def close(self) -> None:
        """Close what this process has open for reading."""
        _close((self.place, self.name))

    @contextlib.contextmanager
    def _reading(self, known: Known) -> Iterator[Any]:
        """The collection, which no other thread closes meanwhile."""
        with _LOCK if self.server is None else contextlib.nullcontext():  # a server that is slow holds nobody else up
            there = OPEN.get((self.place, self.name))
            old = there is not None and there.known.tokens == known.tokens
            if there is None or not old:
                there = self._opened(known)
            with _LOCK:
                there.asking += 1
        try:
            if old and self.server is not None:
                # Others may write to a server: its collection is looked at again, which costs one request.
                there.collection = self._found(there.client, known)
            yield there.collection
        finally:
            with _LOCK:
                there.asking -= 1
                _LOCK.notify_all()

    def _opened(self, known: Known) -> OpenReader:
        self.close()
        self._check_files(known)
        client = self._client(reading=True)
        try:
            collection = self._found(client, known)
            held = collection.count()
            if held < known.passages:
                raise LostCollectionError(
                    f"the Chroma index {self.place} holds {held} of {known.passages} vectors",
                    code="chroma_incomplete",
                    hint="Run `kopt ingest`.",
                )
        except BaseException:
            with contextlib.suppress(Exception):
                client.close()
            raise
        OPEN[self.place, self.name] = made = OpenReader(client, collection, known)
        return made

    def _found(self, client: Any, known: Known) -> Any:
        collection = client.get_collection(self.name, embedding_function=None)
        if (collection.metadata or {}).get("token") not in known.tokens:
            raise LostCollectionError(
                f"the Chroma index {self.place} was written by another kopt",
                code="chroma_foreign",
                hint="Run `kopt ingest`: it makes one of its own.",
            )
        return collection

    # --- writing ----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, known: Known, token: str) -> Iterator[Writer]:
        """Change the collection, which has `token` from then on. The caller holds the index lock.

        Raises `LostCollectionError` where it is to be filled anew, also at the end, where another wrote meanwhile.
        """
        with self._errors():
            self.close()
            client = self._client()
            try:
                collection = self._found(client, known)
                _claim(collection, token)
                self._found(client, Known((token,), 0))
                yield Writer(collection)
                self._found(client, Known((token,), 0))
            finally:
                client.close()

    @contextlib.contextmanager
    def filling(self, about: Mapping[str, str], token: str) -> Iterator[Writer]:
        """Make the collection. `about` says whose it is: wikis, model, schema."""
        with self._errors():
            client = self._client()
            try:
                yield Writer(
                    client.create_collection(
                        self.name,
                        embedding_function=None,
                        configuration={"hnsw": {"space": "cosine"}},
                        metadata={**about, "token": token},
                    )
                )
            finally:
                client.close()

    def discard(self, known: Known | None = None) -> None:
        """Delete the collection, if it is there, can be reached, and was not written by another index meanwhile; with
        nothing `known` of it, whoever wrote it."""
        self.close()
        if self.server is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        with contextlib.suppress(VectorIndexError), self._errors():
            client = self._client()
            try:
                if known is not None:
                    self._found(client, known)
                client.delete_collection(self.name)
            finally:
                client.close()

    # --- Chroma itself ----------------------------------------------------------------------------------------------

    def _client(self, *, reading: bool = False) -> Any:
        if self.server is not None:
            return _client_of(self.server)
        folder = self.folder
        if reading:
            if not (folder / "chroma.sqlite3").exists():
                raise LostCollectionError(
                    f"there is no Chroma index in {folder}", code="chroma_missing_index", hint="Run `kopt ingest`."
                )
            if not os.access(folder, os.W_OK):
                folder = writable_copy(folder, "kopt-chroma-")
        if tables_damaged(folder / "chroma.sqlite3"):  # Chroma's native part would end the process
            raise LostCollectionError(
                f"the Chroma index {folder} cannot be used: its database is damaged",
                code="chroma_damaged",
                hint="Run `kopt ingest`.",
            )
        import chromadb
        from chromadb.config import Settings

        return chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Whatever Chroma raises, as a `VectorIndexError`."""
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        if importlib.util.find_spec("chromadb") is None:
            raise VectorIndexError(
                "Chroma is not installed", code="chroma_missing", hint="Install it: `pip install chromadb`."
            )
        logging.getLogger("chromadb").setLevel(logging.CRITICAL)
        try:
            yield
        except ImportError as error:
            raise VectorIndexError(
                f"Chroma cannot be imported: {error}",
                code="chroma_missing",
                hint="Install it again: `pip install --force-reinstall chromadb`.",
            ) from error
        except (LostCollectionError, ConfigurationError):
            self._forget()
            raise
        except (KoptError, sqlite3.Error):  # the latter of the index whose vectors are written
            raise
        except BaseException as error:
            # Chroma's native part raises a bare BaseException when it panics on a damaged file.
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            self._forget()
            said = " ".join(str(error).split()) or type(error).__name__
            cause: BaseException | None = error
            if self.server is not None and (hidden := self.server.without_secrets(said)) != said:
                said, cause = hidden, None  # a server may repeat what it was sent
            said = said[:300]
            if type(error).__name__ == "NotFoundError" or self.server is None:
                raise LostCollectionError(
                    f"the Chroma index {self.place} cannot be used: {said}",
                    code="chroma_failed",
                    hint="Run `kopt ingest`.",
                ) from cause
            raise VectorIndexError(
                f"the Chroma server at {self.place} cannot be used: {said}",
                code="chroma_failed",
                hint=f"Check the Chroma server at {self.place}.",
            ) from cause

    def _forget(self) -> None:
        self.close()
        with contextlib.suppress(Exception):
            # Chroma keeps a client that could not start, and would hand it out again for the repaired folder.
            from chromadb.api.shared_system_client import SharedSystemClient

            SharedSystemClient.clear_system_cache()


@dataclass
class Writer:
    """Changes an open collection."""

    collection: Any

    def put(self, vectors: Sequence[tuple[str, bytes]]) -> None:
        """Add or replace passages: (id, float32 bytes)."""
        for start in range(0, len(vectors), BATCH):
            some = vectors[start : start + BATCH]
            matrix = np.stack([np.frombuffer(data, np.float32) for _, data in some])
            self.collection.upsert(ids=[id for id, _ in some], embeddings=matrix)

    def remove(self, ids: Sequence[str]) -> None:
        """Drop passages; those that are not there are none."""
        for start in range(0, len(ids), BATCH):
            self.collection.delete(ids=list(ids[start : start + BATCH]))


def _seen(file: Path) -> list[int]:
    status = file.stat()
    return [status.st_size, status.st_mtime_ns]


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "blake2b").hexdigest()[:32]


def _claim(collection: Any, token: str) -> None:
    collection.modify(metadata={**(collection.metadata or {}), "token": token})
