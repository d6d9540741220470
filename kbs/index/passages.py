"""Passages of an index, their words, and their vectors, which are kept by the hash of the embedded text.

`pending` names the passages that the vector index may not hold as they are: whoever writes passages adds to it in the
same transaction, and takes them out once the vector index has them. So a reader knows at any moment which passages it
must compare itself, and an update costs what it changes.

The table has a row for each heading and ask of a section that lists asks too (`asked`): a vector by which the section
is found. It has no text and no words, and is no passage for anybody who reads or counts those.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from kbs.evidence.passage import LOG, Passage, asked_as
from kbs.index.sqlite_file import IndexFile, batches, stored_citation
from kbs.index.tokens import index_words

VISIBLE, HIDDEN, MASKED = 0, 1, 2
"""A page that is searched; one that a later wiki overrides; a record of the log that is masked."""


@dataclass(frozen=True)
class Chosen:
    """Which pages a search looks at: every facet that is named has one of its values."""

    filters: Mapping[str, Sequence[str]]
    hidden: Collection[int] = (VISIBLE,)

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the search."""
        return any(self.filters.values()) or set(self.hidden) != {VISIBLE}

    def where(self) -> tuple[str, list[str]]:
        """The condition on a row `p` of `pages`, and its values."""
        terms = [f"p.hidden IN ({', '.join(str(int(one)) for one in self.hidden)})"]
        values: list[str] = []
        for facet, chosen in self.filters.items():
            if not chosen:
                continue
            if facet == "wiki":
                terms.append(f"p.wiki IN ({_marks(chosen)})")
            else:
                terms.append(
                    "p.id IN (SELECT f.page FROM facets f JOIN facet_values v ON v.id = f.value"
                    f" WHERE v.facet = ? AND v.value IN ({_marks(chosen)}))"
                )
                values.append(facet)
            values += chosen
        return " AND ".join(terms), values


class Spot(NamedTuple):
    """Where a row stands that has a vector."""

    page: int
    """Row of the page."""
    place: int
    """Place of the section in the page; both name the section."""
    page_id: str
    asked: bool
    """Whether it is a heading or ask, and no passage."""
    record: bool
    """Whether it is of a record of the experience log."""

    @property
    def section(self) -> tuple[int, int]:
        """Names its section."""
        return self.page, self.place


ALL = Chosen({})
PASSAGE = (
    "t.passage, p.page_id, p.title, t.trail, t.text, t.embedded, p.wiki, p.path, t.line_start, t.line_end, w.revision,"
    " t.place, t.asks, t.gap FROM passages t JOIN pages p ON p.id = t.page JOIN wikis w ON w.name = p.wiki"
)
"""What `passage_of` reads."""
_K1 = 1.2
"""Of FTS5's bm25()."""
_SPOT = "t.passage, t.page, t.place, p.page_id, t.asked, p.wiki FROM passages t JOIN pages p ON p.id = t.page"
_SETTLED = " AND t.passage NOT IN (SELECT passage FROM pending)"


class Passages(IndexFile):
    """The passages and vectors of an index; `kbs.index.store.Store` is one."""

    def put_passages(self, page: int, passages: Sequence[Passage]) -> None:
        """Add the passages of a page, given by its row, and their words."""
        model = self.meta("vector_model")
        insert = "INSERT INTO passages (passage, page, place, asked, line_start, line_end, trail, asks, gap, text,"
        insert += " embedded, embedding_key)"
        for passage in passages:
            cited = passage.cited
            row = self.db.execute(
                f"{insert} VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(passage.id, page, passage.place, *((cited.line_start, cited.line_end) if cited else (0, 0))),
                    *(json.dumps(passage.trail), json.dumps(passage.asks), passage.gap, passage.text),
                    *(passage.embedded, passage.embedding_key),
                ),
            ).lastrowid
            self.db.execute(
                "INSERT INTO words (rowid, title, headings, body) VALUES (?, ?, ?, ?)",
                (
                    *(row, index_words(f"{passage.title} {passage.page_id}")),
                    *(index_words(" ".join((*passage.trail, *passage.asks))), index_words(passage.text)),
                ),
            )
        asked = asked_as(passages)
        self.db.executemany(
            f"{insert} VALUES (?, ?, ?, 1, 0, 0, '[]', '[]', '', '', ?, ?)",
            ((one.id, page, one.place, one.text, one.embedding_key) for one in asked),
        )
        made = [(one.id, one.embedding_key) for one in passages] + [(one.id, one.embedding_key) for one in asked]
        self.db.executemany("INSERT OR IGNORE INTO pending VALUES (?)", ((id,) for id, _ in made))
        self.db.executemany(
            "UPDATE embeddings SET unused = NULL WHERE key = ? AND model = ? AND unused IS NOT NULL",
            [(key, model) for _, key in made],
        )

    def remove_passages(self, page: int, now: int) -> None:
        """Drop the passages of a page, given by its row; `now` (seconds since 1970): since when vectors that nothing
        else needs are unused."""
        query = "SELECT id, passage, embedding_key, asked FROM passages WHERE page = ?"
        found = self.db.execute(query, (page,)).fetchall()
        self.db.executemany("DELETE FROM words WHERE rowid = ?", ((row,) for row, _, _, asked in found if not asked))
        self.db.executemany("INSERT OR IGNORE INTO pending VALUES (?)", ((id,) for _, id, _, _ in found))
        self.db.execute("DELETE FROM passages WHERE page = ?", (page,))
        self.db.executemany(
            "UPDATE embeddings SET unused = ?1 WHERE key = ?2"
            " AND NOT EXISTS (SELECT 1 FROM passages WHERE embedding_key = ?2)",
            ((now, key) for _, _, key, _ in found),
        )

    # --- reading ----------------------------------------------------------------------------------------------------

    def passage_count(self, chosen: Chosen | None = None) -> int:
        """How many passages there are, or how many of the chosen pages."""
        if chosen is None:
            return self.vector_count() - self.asked_count()
        of_pages, values = _of_pages(chosen)
        return self._count(f"t.asked = 0 AND {of_pages}", values)

    def asked_count(self, most: int = -1) -> int:
        """How many headings and asks there are that have a vector; `most`: no more are counted."""
        query = "SELECT count(*) FROM (SELECT 1 FROM passages INDEXED BY passages_asked WHERE asked = 1 LIMIT ?)"
        return self.number(query, (most,))

    def vector_count(self, chosen: Chosen | None = None, *, settled: bool = False) -> int:
        """How many passages, headings and asks there are, or how many of the chosen pages; `settled`: without those
        that are pending."""
        of_pages, values = _of_pages(chosen)
        return self._count(f"{of_pages}{_SETTLED if settled else ''}", values)

    def _count(self, where: str, values: Sequence[str]) -> int:
        return self.number(f"SELECT count(*) FROM passages t WHERE {where}", values)

    def knows(self, ids: Collection[str]) -> bool:
        """Whether there is a passage, heading or ask for each id."""
        count = 0
        for some in batches(list(ids), 500):
            query = f"SELECT count(*) FROM passages WHERE passage IN ({_marks(some)})"
            count += int(self.db.execute(query, some).fetchone()[0])
        return count == len(ids)

    def hides(self) -> bool:
        """Whether some page is not searched: one that a later wiki overrides, or a record that is masked."""
        return self.db.execute(f"SELECT 1 FROM pages WHERE hidden != {VISIBLE} LIMIT 1").fetchone() is not None

    def passages(self, ids: Iterable[str], chosen: Chosen = ALL) -> dict[str, Passage]:
        """Passages of the chosen pages by their id."""
        out: dict[str, Passage] = {}
        where, values = chosen.where()
        for some in batches(list(ids), 500):
            query = f"SELECT {PASSAGE} WHERE t.passage IN ({_marks(some)}) AND t.asked = 0 AND {where}"
            for row in self.db.execute(query, (*some, *values)):
                out[row[0]] = passage_of(row)
        return out

    def passage_ids(self, page_id: str | None = None, chosen: Chosen = ALL) -> list[str]:
        """Ids of the passages of the chosen pages, or of one page, in the order of the pages."""
        where, values = chosen.where()
        if page_id is not None:
            where, values = f"{where} AND p.page_id = ?", [*values, page_id]
        return self._ids(f"t.asked = 0 AND {where}", values)

    def vector_ids(self, chosen: Chosen = ALL, *, pending: bool | None = None) -> list[str]:
        """Ids of the passages, headings and asks of the chosen pages; `pending`: those alone that are pending, or those
        that are not."""
        where, values = chosen.where()
        where += {None: "", False: _SETTLED, True: " AND t.passage IN (SELECT passage FROM pending)"}[pending]
        return self._ids(where, values)

    def _ids(self, where: str, values: Sequence[str]) -> list[str]:
        query = f"SELECT t.passage FROM passages t JOIN pages p ON p.id = t.page WHERE {where} ORDER BY t.id"
        return [str(row[0]) for row in self.db.execute(query, values)]

    def spots(self, ids: Iterable[str], chosen: Chosen = ALL) -> dict[str, Spot]:
        """Where those of some passages, headings and asks stand that are of the chosen pages, by id."""
        where, values = chosen.where()
        found: dict[str, Spot] = {}
        for some in batches(list(ids), 500):
            query = f"SELECT {_SPOT} WHERE t.passage IN ({_marks(some)}) AND {where}"
            found |= {row[0]: _spot(row) for row in self.db.execute(query, (*some, *values))}
        return found

    def spots_of(self, sections: Iterable[tuple[int, int]]) -> dict[str, Spot]:
        """Where the passages, headings and asks of some sections stand, by id."""
        found: dict[str, Spot] = {}
        for some in batches(list(sections), 400):
            wanted = ", ".join(f"({int(page)}, {int(place)})" for page, place in some)
            query = f"WITH k (page, place) AS (VALUES {wanted}) SELECT {_SPOT} JOIN k ON k.page = t.page"
            found |= {row[0]: _spot(row) for row in self.db.execute(f"{query} AND k.place = t.place ORDER BY t.id")}
        return found

    def match_words(
        self, terms: Sequence[str], limit: int, chosen: Chosen = ALL, *, every: bool = False
    ) -> list[tuple[str, float]]:
        """(passage id, BM25 score, higher is better) of passages of the chosen pages that have any of `terms`, or
        `every` one, best first."""
        if not terms:
            return []
        where, values = chosen.where()
        score, order = "-bm25(words, 4.0, 2.0, 1.0) AS score", "ORDER BY score DESC, t.id LIMIT ?"
        matching, limits = " AND " if every else " OR ", [limit]
        if chosen.filtered:
            found = f"SELECT t.passage, {score} FROM words JOIN passages t ON t.id = words.rowid"
            found += f" JOIN pages p ON p.id = t.page WHERE words MATCH ? AND {where} {order}"
        else:
            # To join every match with its page costs as much as to rank it; some of the best may be hidden.
            best = f"SELECT rowid, {score} FROM words WHERE words MATCH ? ORDER BY score DESC, rowid LIMIT ?"
            found = f"SELECT t.passage, score FROM ({best}) AS w JOIN passages t ON t.id = w.rowid"
            found += f" JOIN pages p ON p.id = t.page WHERE {where} {order}"
            limits = [2 * limit, limit]
        rows = self.db.execute(found, (matching.join(map(_quoted, terms)), *values, *limits))
        return [(str(a), float(b)) for a, b in rows]

    def word_frequency(self, term: str, chosen: Chosen = ALL) -> int:
        """How many passages have the term, or how many of the chosen pages."""
        where, values = chosen.where() if chosen.filtered else ("TRUE", [])
        pages = "JOIN passages t ON t.id = words.rowid JOIN pages p ON p.id = t.page" if chosen.filtered else ""
        query = f"SELECT count(*) FROM words {pages} WHERE words MATCH ? AND {where}"
        return self.number(query, (_quoted(term), *values))

    def ideal_words(self, terms: Sequence[str]) -> float:
        """What `match_words` can score at most for these terms: no passage reaches it, so shares of it compare across
        questions.

        FTS5 sums, over the terms, IDF · f · (k1 + 1) / (f + k1 · (1 - b + b · length / mean length)), with k1 = 1.2 and
        b = 0.75; f is how often the term stands in each column times the weight of the column. As f grows, whatever
        the weights, each part comes near IDF · (k1 + 1) and stays below it. IDF = ln((N - n + 0.5) / (n + 0.5)), at
        least 1e-6, for a term in n of N rows. https://sqlite.org/fts5.html#the_bm25_function
        """
        rows = self.passage_count()
        share = 0.0
        for term in terms:
            having = self.word_frequency(term)
            share += max(math.log((rows - having + 0.5) / (having + 0.5)), 1e-6)
        return share * (_K1 + 1)

    # --- vectors ----------------------------------------------------------------------------------------------------

    def missing_embeddings(self, model: str, limit: int) -> list[tuple[str, str]]:
        """(key, text) of passages that have no vector of this model yet."""
        rows = self.db.execute(
            "SELECT t.embedding_key, min(t.embedded) FROM pending n JOIN passages t ON t.passage = n.passage"
            " LEFT JOIN embeddings e ON e.key = t.embedding_key AND e.model = ? WHERE e.id IS NULL"
            " GROUP BY t.embedding_key LIMIT ?",
            (model, limit),
        )
        return [(str(a), str(b)) for a, b in rows]

    def missing_keys(self, model: str, after: str, limit: int) -> list[str]:
        """Keys of texts that have no vector of this model yet, in their order, from the first one after `after`."""
        rows = self.db.execute(
            "SELECT DISTINCT t.embedding_key FROM pending n JOIN passages t ON t.passage = n.passage"
            " LEFT JOIN embeddings e ON e.key = t.embedding_key AND e.model = ?"
            " WHERE e.id IS NULL AND t.embedding_key > ? ORDER BY t.embedding_key LIMIT ?",
            (model, after, limit),
        )
        return [str(key) for (key,) in rows]

    def missing_count(self, model: str) -> int:
        """How many texts have no vector of this model yet."""
        found = self.db.execute(
            "SELECT count(DISTINCT t.embedding_key) FROM pending n JOIN passages t ON t.passage = n.passage"
            " LEFT JOIN embeddings e ON e.key = t.embedding_key AND e.model = ? WHERE e.id IS NULL",
            (model,),
        ).fetchone()
        return int(found[0])

    def put_embeddings(self, model: str, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Keep vectors (float32 bytes); on disk when the surrounding transaction is."""
        self.db.executemany(
            "INSERT INTO embeddings (key, model, vector) VALUES (?, ?, ?) ON CONFLICT (key, model)"
            " DO UPDATE SET vector = excluded.vector, unused = NULL",
            [(key, model, vector) for key, vector in vectors],
        )

    def forget_embeddings(self, before: int, most: int) -> None:
        """Drop vectors that were unused before that time (seconds since 1970), and the longest unused above `most`."""
        self.db.execute("DELETE FROM embeddings WHERE unused < ?", (before,))
        self.db.execute(
            "DELETE FROM embeddings WHERE id IN (SELECT id FROM embeddings WHERE unused IS NOT NULL"
            " ORDER BY unused DESC LIMIT -1 OFFSET ?)",
            (most,),
        )

    def retire_model(self, model: str, now: int) -> None:
        """Another model is in use from now on: every passage is pending, and the vectors of others are unused."""
        self.db.execute("INSERT OR IGNORE INTO pending SELECT passage FROM passages")
        self.db.execute("UPDATE embeddings SET unused = ? WHERE model != ? AND unused IS NULL", (now, model))
        self.db.execute(
            "UPDATE embeddings SET unused = NULL WHERE model = ? AND key IN (SELECT embedding_key FROM passages)",
            (model,),
        )

    def vectors(self, model: str, ids: Iterable[str] | None = None) -> Iterator[tuple[str, bytes]]:
        """(id, float32 bytes) of passages, headings and asks, all or some."""
        base = "SELECT t.passage, e.vector FROM passages t JOIN embeddings e ON e.key = t.embedding_key AND e.model = ?"
        if ids is None:
            yield from self.db.execute(base, (model,))
            return
        for some in batches(list(ids), 500):
            yield from self.db.execute(f"{base} WHERE t.passage IN ({_marks(some)})", (model, *some))

    def pending(self, limit: int = -1) -> list[str]:
        """Ids of passages, some of them gone, that the vector index may not hold as they are."""
        return [str(id) for (id,) in self.db.execute("SELECT passage FROM pending LIMIT ?", (limit,))]

    def pending_count(self) -> int:
        """How many of them there are."""
        return int(self.db.execute("SELECT count(*) FROM pending").fetchone()[0])

    def settle(self, model: str) -> None:
        """The vector index holds every passage that has a vector of this model, and no other."""
        self.db.execute(
            "DELETE FROM pending WHERE NOT EXISTS (SELECT 1 FROM passages t LEFT JOIN embeddings e"
            " ON e.key = t.embedding_key AND e.model = ? WHERE t.passage = pending.passage AND e.id IS NULL)",
            (model,),
        )


def passage_of(row: Sequence[Any]) -> Passage:
    """A passage from the columns of `PASSAGE`."""
    id, page_id, title, trail, text, embedded, wiki, path, start, end, revision, place, asks, gap = row
    cited = None if wiki == LOG else stored_citation(wiki, path, start, end, revision, text)
    return Passage(
        *(id, page_id, title, tuple(json.loads(trail)), text, embedded, cited),
        *(place, tuple(json.loads(asks)), gap),
    )


def _spot(row: Sequence[Any]) -> Spot:
    return Spot(row[1], row[2], row[3], bool(row[4]), row[5] == LOG)


def _of_pages(chosen: Chosen | None) -> tuple[str, list[str]]:
    if chosen is None:
        return "TRUE", []
    where, values = chosen.where()
    return f"t.page IN (SELECT p.id FROM pages p WHERE {where})", values


def _marks(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))


def _quoted(term: str) -> str:
    return '"' + term.replace('"', "") + '"'
