"""Passages of an index, their words, and their vectors, which are kept by the hash of the embedded text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kbs.evidence.passage import Passage
from kbs.index.sqlite_file import IndexFile, batches, stored_citation
from kbs.index.tokens import index_words


class Passages(IndexFile):
    """The passages and vectors of an index; `kbs.index.store.Store` is one."""

    def put_passages(self, page: int, passages: Sequence[Passage]) -> None:
        """Add the passages of a page, given by its row, and their words."""
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

    def page_rows(self, filters: Mapping[str, Sequence[str]]) -> list[int] | None:
        """Ids of visible pages that have, for every facet, one of its values; None if nothing is filtered."""
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
        for some in batches(list(ids), 500):
            rows = self.db.execute(
                "SELECT t.passage, p.page_id, p.title, t.trail, t.text, t.embedded, p.wiki, p.path, t.line_start,"
                " t.line_end, w.revision FROM passages t JOIN pages p ON p.id = t.page JOIN wikis w ON w.name = p.wiki"
                f" WHERE p.hidden = 0 AND t.passage IN ({','.join('?' * len(some))})",
                some,
            )
            for r in rows:
                citation = stored_citation(r[6], r[7], r[8], r[9], r[10], r[4])
                out[r[0]] = Passage(r[0], r[1], r[2], tuple(json.loads(r[3])), r[4], r[5], citation)
        return out

    def passage_ids(self, page_rows: Sequence[int] | None = None, page_id: str | None = None) -> list[str]:
        """Ids of the passages of visible pages, all or of some pages, in the order of the pages."""
        if page_rows is not None:
            found: list[str] = []
            for some in batches(list(page_rows), 500):
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
