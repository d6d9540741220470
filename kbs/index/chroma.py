"""The vector index in Chroma; no other module uses Chroma.

It is built from the vectors in SQLite and can be rebuilt from them at any time. On disk, every write is
lock → open → write → close, and a reader opens it again for each generation: with anything else Chroma loses vectors
silently. Embeddings are always given, so Chroma's own embedder and its download are never reached.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kbs.common.errors import ConfigurationError, KoptError
from kbs.index.encoder import Vectors

BATCH = 5_000
"""Chroma 1.5 takes at most 5,461 records a call."""


class VectorIndexError(KoptError):
    """Chroma cannot be used now; a search goes on without it and says so."""


class VectorIndex:
    """Passage vectors of one model in Chroma: on disk in `folder`, or on a server at `url`."""

    def __init__(self, folder: Path, url: str, model: str) -> None:
        self.folder = folder
        self.url = url
        self.name = "passages-" + "".join(c if c.isalnum() else "-" for c in model).strip("-").lower()[:60]

    def broken(self, passages: int) -> str:
        """What is plainly wrong with the index on disk, found without starting Chroma; "" where nothing is."""
        if importlib.util.find_spec("chromadb") is None:
            return "Chroma is not installed"
        if self.url:
            return ""
        file = self.folder / "chroma.sqlite3"
        if not file.exists():
            return f"the Chroma index in {self.folder} is missing"
        try:
            with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=2.0)) as db:
                held = db.execute("SELECT count(*) FROM embeddings").fetchone()[0]
        except sqlite3.OperationalError as error:
            # Busy, or a later Chroma that keeps its records elsewhere: neither speaks against it.
            harmless = "locked" in str(error) or "no such table" in str(error)
            return "" if harmless else f"the Chroma index in {self.folder} cannot be read: {error}"
        except sqlite3.Error as error:
            return f"the Chroma index in {self.folder} is damaged: {error}"
        return "" if held >= passages else f"the Chroma index holds {held} of {passages} passages"

    def query(self, vector: Vectors, count: int) -> list[tuple[str, float]]:
        """(passage id, cosine similarity) of the nearest passages, best first. `vector` has shape (dim,)."""
        with self._collection(create=False) as collection:
            found = collection.query(query_embeddings=[vector.tolist()], n_results=count, include=["distances"])
            return [
                (str(id), 1.0 - float(distance))
                for id, distance in zip(found["ids"][0], found["distances"][0], strict=True)
            ]

    def ids(self) -> set[str]:
        """Ids of all passages that have a vector here."""
        with self._collection(create=False) as collection:
            return set(collection.get(include=[])["ids"])

    def sync(self, wanted: Mapping[str, bytes]) -> int:
        """Make the index hold exactly `wanted` (id → float32 bytes); returns how many records changed.

        The caller holds the index lock.
        """
        with self._collection(create=True) as collection:
            have = set(collection.get(include=[])["ids"])
            surplus = sorted(have - wanted.keys())
            missing = sorted(wanted.keys() - have)
            for start in range(0, len(surplus), BATCH):
                collection.delete(ids=surplus[start : start + BATCH])
            for start in range(0, len(missing), BATCH):
                some = missing[start : start + BATCH]
                collection.upsert(ids=some, embeddings=np.stack([np.frombuffer(wanted[id], np.float32) for id in some]))
            return len(surplus) + len(missing)

    def discard(self) -> None:
        """Delete the index; the caller holds the index lock and fills it again with `sync`."""
        if self.url:
            with contextlib.suppress(VectorIndexError), self._client() as client:
                client.delete_collection(self.name)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        os.environ["ANONYMIZED_TELEMETRY"] = "False"
        try:
            import chromadb
            from chromadb.api.shared_system_client import SharedSystemClient
            from chromadb.config import Settings
        except Exception as error:  # a half-installed Chroma fails at import in many ways
            raise VectorIndexError(
                f"Chroma cannot be imported: {error}",
                code="chroma_missing",
                hint="Install it again: `pip install --force-reinstall chromadb`.",
            ) from error
        logging.getLogger("chromadb").setLevel(logging.CRITICAL)
        client = None
        try:
            if self.url:
                parts = urlsplit(self.url)
                if parts.scheme not in ("http", "https") or not parts.hostname:
                    raise ConfigurationError(
                        f"{self.url!r} is not an address of a Chroma server",
                        code="chroma_url",
                        hint="Set chroma_url to http://HOST:PORT, or leave it empty for the index on disk.",
                    )
                tls = parts.scheme == "https"
                port = parts.port or (443 if tls else 8000)
                client = chromadb.HttpClient(
                    host=parts.hostname, port=port, ssl=tls, settings=Settings(anonymized_telemetry=False)
                )
            else:
                client = chromadb.PersistentClient(str(self.folder), settings=Settings(anonymized_telemetry=False))
            yield client
        except KoptError:
            raise
        except BaseException as error:
            # Chroma's native part raises a bare BaseException when it panics on a damaged file.
            if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise VectorIndexError(
                f"Chroma cannot be used: {str(error).strip() or type(error).__name__}",
                code="chroma_failed",
                hint="Run `kopt ingest --rebuild`." if not self.url else f"Check the Chroma server at {self.url}.",
            ) from error
        finally:
            if client is not None:
                with contextlib.suppress(Exception):
                    client.close()
            else:
                # Chroma keeps a client that could not start, and would hand it out again for the repaired folder.
                SharedSystemClient.clear_system_cache()

    @contextlib.contextmanager
    def _collection(self, *, create: bool) -> Iterator[Any]:
        if not create and not self.url and not (self.folder / "chroma.sqlite3").exists():
            raise VectorIndexError(
                f"there is no Chroma index in {self.folder}", code="chroma_missing_index", hint="Run `kopt ingest`."
            )
        with self._client() as client:
            if create:
                yield client.get_or_create_collection(
                    self.name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
                )
            else:
                yield client.get_collection(self.name, embedding_function=None)
