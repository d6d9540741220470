"""The index on disk: SQLite holds passages, specs, rows, words and vectors, and can always be rebuilt.

One transaction replaces what an ingest changed and moves the generation counter, so a reader sees the index before or
after it, never between. Readers are not blocked (write-ahead log). Vectors are kept by the hash of the embedded text,
so text that did not change is never embedded again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from kbs.evidence.passage import LOG, PageEntry, Passage, Section
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import TableRow
from kbs.index.passages import ALL, HIDDEN, MASKED, PASSAGE, VISIBLE, Chosen, Passages, Spot, passage_of
from kbs.index.rows import Rows
from kbs.index.sqlite_file import batches


class Store(Passages, Rows):
    """An index: its wikis and pages, and what comes from them. Use as a context manager; `create=True` makes a missing
    one."""

    def wikis(self) -> list[tuple[str, str, str, str]]:
        """(name, kind, root, revision) of every wiki, notes and log in the index, lowest rank first."""
        rows = self.db.execute("SELECT name, kind, root, revision FROM wikis ORDER BY rank").fetchall()
        return [(str(a), str(b), str(c), str(d)) for a, b, c, d in rows]

    def set_wikis(self, wikis: Sequence[tuple[str, str, str, str]]) -> None:
        """Replace the list of wikis; a later one overrides pages of an earlier one."""
        self.db.execute("DELETE FROM wikis")
        self.db.executemany("INSERT INTO wikis VALUES (?, ?, ?, ?, ?)", [(*w, rank) for rank, w in enumerate(wikis)])

    def files(self, wiki: str) -> dict[str, tuple[int, int, str]]:
        """path → (size, mtime_ns, sha256) of what was ingested, broken pages too."""
        return {
            str(path): (int(size), int(mtime), str(sha))
            for path, size, mtime, sha in self.db.execute(
                "SELECT path, size, mtime_ns, sha256 FROM pages WHERE wiki = ?1 UNION ALL"
                " SELECT path, size, mtime_ns, sha256 FROM broken WHERE wiki = ?1",
                (wiki,),
            )
        }

    def touch(self, wiki: str, path: str, size: int, mtime_ns: int) -> None:
        """Remember that a file was seen again with the same content."""
        for table in ("pages", "broken"):
            self.db.execute(
                f"UPDATE {table} SET size = ?, mtime_ns = ? WHERE wiki = ? AND path = ?", (size, mtime_ns, wiki, path)
            )

    def remove_page(self, wiki: str, path: str) -> str:
        """Forget a page and all that came from it; returns its id, or "" where there was none."""
        self.db.execute("DELETE FROM broken WHERE wiki = ? AND path = ?", (wiki, path))
        found = self.db.execute("SELECT id, page_id FROM pages WHERE wiki = ? AND path = ?", (wiki, path)).fetchone()
        if not found:
            return ""
        self.remove_passages(found[0], int(time.time()))
        self.db.execute("DELETE FROM pages WHERE id = ?", (found[0],))
        return str(found[1])

    def put_broken(self, file: PageEntry, problems: Sequence[Mapping[str, Any]]) -> None:
        """Remember that a page could not be read, and why."""
        self.db.execute(
            "INSERT INTO broken VALUES (?, ?, ?, ?, ?, ?)",
            (file.wiki, file.path, file.size, file.mtime_ns, file.sha256, json.dumps(list(problems))),
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
        """Add a page, which is not there, and all that comes from it."""
        page = self.db.execute(
            "INSERT INTO pages (wiki, path, page_id, kind, title, confidence, size, mtime_ns, sha256, hidden)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(entry.wiki, entry.path, entry.page_id, entry.kind, entry.title, entry.confidence),
                *(entry.size, entry.mtime_ns, entry.sha256, MASKED if entry.masked else VISIBLE),
            ),
        ).lastrowid
        assert page is not None  # it was inserted just now
        stated = list(dict.fromkeys((facet, value) for facet, values in entry.facets.items() for value in values))
        self.db.executemany("INSERT OR IGNORE INTO facet_values (facet, value) VALUES (?, ?)", stated)
        self.db.executemany(
            "INSERT INTO facets SELECT ?, ?, id FROM facet_values WHERE facet = ? AND value = ?",
            [(page, place, *one) for place, one in enumerate(stated)],
        )
        self.put_passages(page, passages)
        self.put_rows(page, specs, rows)

    def titles(self) -> list[tuple[str, str, str, str, str]]:
        """(wiki, path, kind, title, confidence) of every page, records of the log left out."""
        query = "SELECT wiki, path, kind, title, confidence FROM pages WHERE wiki != ? ORDER BY wiki, path"
        return [(str(a), str(b), str(c), str(d), str(e)) for a, b, c, d, e in self.db.execute(query, (LOG,))]

    def hide_overridden(self, page_ids: Collection[str] | None = None) -> None:
        """Hide pages whose id a later wiki has too: of all pages, or of those with one of these ids."""
        some = "" if page_ids is None else "AND page_id = ?"
        self.db.executemany(
            "UPDATE pages SET hidden = EXISTS (SELECT 1 FROM pages later JOIN wikis w ON w.name = later.wiki"
            " JOIN wikis mine ON mine.name = pages.wiki WHERE later.page_id = pages.page_id AND w.rank > mine.rank)"
            f" WHERE hidden != {MASKED} {some}",
            [()] if page_ids is None else [(id,) for id in page_ids],
        )

    def overrides(self) -> list[tuple[str, str, str]]:
        """(page id, wiki that is used, wiki that is hidden) where a later wiki overrides an earlier one."""
        rows = self.db.execute(
            "SELECT a.page_id, b.wiki, a.wiki FROM pages a JOIN pages b ON a.page_id = b.page_id"
            " WHERE a.hidden = 1 AND b.hidden = 0 ORDER BY 1"
        ).fetchall()
        return [(str(a), str(b), str(c)) for a, b, c in rows]

    def overridden_pages(self) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """(wiki, path) of each page that is used in place of others → their (wiki, path), the latest wiki's first."""
        found: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for wiki, path, hidden_wiki, hidden_path in self.db.execute(
            "SELECT b.wiki, b.path, a.wiki, a.path FROM pages a JOIN pages b ON a.page_id = b.page_id"
            " JOIN wikis w ON w.name = a.wiki WHERE a.hidden = 1 AND b.hidden = 0 ORDER BY w.rank DESC, a.path"
        ):
            found.setdefault((str(wiki), str(path)), []).append((str(hidden_wiki), str(hidden_path)))
        return found

    # --- sections ---------------------------------------------------------------------------------------------------

    def section(self, page_id: str, place: int, chosen: Chosen = ALL) -> Section | None:
        """A section by its page and its place in it; None if there is none that has text."""
        return next(iter(self._sections("p.page_id = ? AND t.place = ?", (page_id, place), chosen)), None)

    def sections(self, page_id: str, chosen: Chosen = ALL) -> list[Section]:
        """All sections of a page that have text, in its order."""
        return self._sections("p.page_id = ?", (page_id,), chosen)

    def every_section(self, chosen: Chosen = ALL) -> list[Section]:
        """All sections of the chosen pages that have text."""
        return self._sections("TRUE", (), chosen)

    def sections_at(self, spots: Iterable[Spot], chosen: Chosen = ALL) -> dict[tuple[str, int], Section]:
        """The sections in which some passages stand, by page and place."""
        named = ", ".join(f"({int(spot.page)}, {int(spot.place)})" for spot in spots)
        found = self._sections(f"(t.page, t.place) IN (VALUES {named})", (), chosen) if named else []
        return {(section.page_id, section.place): section for section in found}

    def _sections(self, where: str, values: Sequence[Any], chosen: Chosen) -> list[Section]:
        visible, more = chosen.where()
        query = f"SELECT {PASSAGE} WHERE t.asked = 0 AND {where} AND {visible} ORDER BY t.id"
        passages = map(passage_of, self.db.execute(query, (*values, *more)).fetchall())
        every = [tuple(some) for _, some in groupby(passages, key=lambda one: (one.page_id, one.place))]
        about = self.facets({some[0].page_id for some in every})
        return [
            Section(
                *(some[0].page_id, some[0].title, some[0].place, some[0].trail, some[0].asks, some),
                {facet: tuple(stated) for facet, stated in about.get(some[0].page_id, {}).items()},
            )
            for some in every
        ]

    def put_products(self, products: Iterable[Mapping[str, Any]]) -> None:
        """Replace the products that pages declare beside the vocabulary's."""
        self.db.execute("DELETE FROM products")
        self.db.executemany(
            "INSERT OR REPLACE INTO products VALUES (?, ?)", [(p["id"], json.dumps(p)) for p in products]
        )

    def products(self) -> list[dict[str, Any]]:
        """The products that pages declare beside the vocabulary's."""
        return [json.loads(data) for (data,) in self.db.execute("SELECT data FROM products ORDER BY id")]

    def page_ids(self, facet: str, value: str) -> list[str]:
        """Ids of visible pages that have a facet's value."""
        where, values = Chosen({facet: [value]}).where()
        rows = self.db.execute(f"SELECT p.page_id FROM pages p WHERE {where} ORDER BY p.page_id", values)
        return [str(row[0]) for row in rows]

    def facets(self, page_ids: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """page id → facet → values, of pages that are not hidden, in the order of the page."""
        found: dict[str, dict[str, list[str]]] = {}
        for some in batches(list(page_ids), 500):
            for page_id, facet, value in self.db.execute(
                "SELECT p.page_id, v.facet, v.value FROM pages p JOIN facets f ON f.page = p.id"
                " JOIN facet_values v ON v.id = f.value"
                f" WHERE p.page_id IN ({', '.join('?' * len(some))}) AND p.hidden != {HIDDEN} ORDER BY p.id, f.place",
                some,
            ):
                found.setdefault(str(page_id), {}).setdefault(str(facet), []).append(str(value))
        return found

    def values_of(self, facet: str) -> list[str]:
        """Every value that visible pages have of a facet."""
        if facet == "wiki":
            return sorted(name for name, *_ in self.wikis())
        rows = self.db.execute(
            "SELECT v.value FROM facet_values v WHERE v.facet = ? AND EXISTS (SELECT 1 FROM facets f"
            f" JOIN pages p ON p.id = f.page WHERE f.value = v.id AND p.hidden = {VISIBLE}) ORDER BY v.value",
            (facet,),
        )
        return [str(row[0]) for row in rows]

    def record_count(self) -> int:
        """How many records of the experience log the index holds, masked ones too."""
        return int(self.db.execute("SELECT count(*) FROM pages WHERE wiki = ?", (LOG,)).fetchone()[0])

    def counts(self) -> dict[str, int]:
        """How much of everything the index holds; records of the log are no pages, and have passages."""
        tables = ("pages", "passages", "specs", "rows", "broken")
        found = {table: int(self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]) for table in tables}
        return found | {"pages": found["pages"] - self.record_count(), "passages": self.passage_count()}
