"""Vectors of an index, kept by the hash of the embedded text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kbs.index.sqlite_file import IndexFile, batches


class Embeddings(IndexFile):
    """What an index holds of vectors; `kbs.index.store.Store` is one."""

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
        for some in batches(list(ids), 500):
            yield from self.db.execute(f"{base} WHERE t.passage IN ({','.join('?' * len(some))})", (model, *some))
