"""The index on disk."""

from __future__ import annotations

import sqlite3
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest.passages import passages_of
from kbs.evidence.passage import PageEntry, Passage, passage_id
from kbs.evidence.table_rows import TableRow
from kbs.index.passages import HIDDEN, MASKED, VISIBLE, Chosen
from kbs.index.sqlite_file import FILE_NAME, DamagedIndexError
from kbs.index.store import Store
from wiki.library import Wiki, Wikis
from wiki.page import Page

H100, SOFTMAX = "hardware/h100-sxm.md", "kernel/softmax.md"


def page_of(library: Wikis, path: str, wiki: str = "gpu-wiki") -> Page:
    page = library.page(wiki, path)
    assert isinstance(page, Page)
    return page


def entry_of(page: Page, **more: object) -> PageEntry:
    facets = {"kind": (page.meta.kind,), "operation": page.meta.operations}
    if page.product:
        facets["product"] = (page.product,)
    made = PageEntry(
        page.wiki, page.path, page.meta.id, page.meta.kind, page.meta.title, page.meta.confidence, 10, 20, "aa", facets
    )
    return replace(made, **more)  # type: ignore[arg-type]  # any field


def put(store: Store, page: Page, **more: object) -> list[Passage]:
    passages = passages_of(page, "rev")
    rows: list[TableRow] = [*page.costs, *page.advice, *page.thresholds, *page.measured]
    with store.transaction():
        store.remove_page(page.wiki, page.path)
        store.put_page(entry_of(page, **more), passages, page.specs, rows)
    return passages


def titles(store: Store) -> dict[str, str]:
    """page id → title of every visible page."""
    return dict(store.db.execute("SELECT page_id, title FROM pages WHERE hidden = 0"))


@pytest.fixture
def store(tmp_path: Path, library: Wikis) -> Iterator[Store]:
    """An index of the small wiki."""
    with Store(tmp_path / "index", create=True) as made:
        with made.transaction():
            made.set_wikis([("gpu-wiki", "wiki", "/wiki", "rev")])
        for path in (H100, SOFTMAX):
            put(made, page_of(library, path))
        yield made


def test_a_missing_index_is_not_made_by_reading(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Store(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_what_is_put_comes_back(store: Store, library: Wikis) -> None:
    for path in (H100, SOFTMAX):
        passages = passages_of(page_of(library, path), "rev")
        assert passages
        assert store.passages([p.id for p in passages]) == {p.id: p for p in passages}
    page = page_of(library, H100)
    found = store.specs("h100-sxm")
    assert [(s.metric, s.value, s.qualifier, s.source, s.recommended) for s in found] == [
        (s.metric, s.value, s.qualifier, s.source, s.recommended) for s in page.specs
    ]
    assert [s.citation.hash for s in found] == [s.citation.hash for s in page.specs]
    costs = store.rows("cost", "softmax")
    assert [(r.cost, r.count, r.dims) for r in costs] == [
        (r.cost, r.count, r.dims) for r in page_of(library, SOFTMAX).costs
    ]
    assert store.rows("cost", "matmul") == []
    assert store.rows("cost", page_id="kernel/softmax") == costs


def test_specs_by_product_and_metric(store: Store) -> None:
    assert [s.value for s in store.specs("h100-sxm", "tdp")] == ["700"]
    assert [s.value for s in store.specs(metric="pcie_bandwidth")] == ["128", "64"]
    assert store.specs("h100-pcie") == []


def test_counts_and_titles(store: Store) -> None:
    assert store.counts()["pages"] == 2
    assert store.counts()["specs"] == 13
    assert store.counts()["rows"] == 3
    assert titles(store) == {"hardware/h100-sxm": "H100 SXM", "kernel/softmax": "Softmax"}
    assert store.page_ids("operation", "softmax") == ["kernel/softmax"]
    assert store.facets(["hardware/h100-sxm"])["hardware/h100-sxm"]["product"] == ["h100-sxm"]


def test_a_page_that_is_put_again_is_replaced_whole(store: Store, library: Wikis) -> None:
    before = store.counts()
    put(store, page_of(library, SOFTMAX))
    assert store.counts() == before
    assert store.db.execute("SELECT count(*) FROM words").fetchone()[0] == before["passages"]


def test_a_page_that_is_removed_leaves_nothing(store: Store) -> None:
    with store.transaction():
        store.remove_page("gpu-wiki", H100)
        store.remove_page("gpu-wiki", SOFTMAX)
    assert set(store.counts().values()) == {0}
    for table in ("words", "facets"):
        assert store.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
    assert store.match_words(["softmax"], 10) == []


def test_words_whole_and_in_parts(store: Store) -> None:
    def found(term: str) -> set[str]:
        ids = [id for id, _ in store.match_words([term], 10)]
        return {passage.page_id for passage in store.passages(ids).values()}

    for term in ("ld_global_nc", "smsp_inst_executed", "long_scoreboard", "scoreboard", "stalls"):
        assert found(term) == {"kernel/softmax"}, term
    assert found("h100") == {"hardware/h100-sxm"}
    assert found("absent") == set()


@pytest.mark.parametrize(
    "term", ['"', '""', "a OR b", "NEAR(", "*", "", "-softmax", "title:softmax", "'; DROP TABLE pages; --"]
)
def test_no_word_is_an_operator(store: Store, term: str) -> None:
    store.match_words([term], 10)
    store.word_frequency(term)
    assert store.counts()["pages"] == 2


def test_words_and_passages_of_chosen_pages(store: Store) -> None:
    kernels, hardware = Chosen({"kind": ["kernel"]}), Chosen({"kind": ["hardware"]})
    both, none = Chosen({"kind": ["kernel", "hardware"]}), Chosen({"kind": ["kernel"], "product": ["h100-sxm"]})
    assert not Chosen({}).filtered
    assert not Chosen({"kind": []}).filtered
    assert kernels.filtered
    assert store.passage_ids(chosen=kernels) == store.passage_ids("kernel/softmax")
    assert set(store.passage_ids(chosen=both)) == {*store.passage_ids(chosen=kernels), *store.passage_ids()}
    assert store.passage_ids(chosen=none) == []
    for chosen in (kernels, hardware, both, none):
        assert store.passage_count(chosen) == len(store.passage_ids(chosen=chosen))
        assert set(store.passages(store.passage_ids(), chosen)) == set(store.passage_ids(chosen=chosen))
    everywhere = store.match_words(["h100", "softmax"], 10)
    there = store.match_words(["h100", "softmax"], 10, kernels)
    assert 0 < len(there) < len(everywhere)
    assert {id for id, _ in there} <= set(store.passage_ids(chosen=kernels))
    every = store.match_words(["softmax", "rows"], 10, every=True)
    assert 0 < len(every) <= len(store.match_words(["softmax", "rows"], 10))


def record(id: str, text: str, **more: Any) -> tuple[PageEntry, list[Passage]]:
    """A record of the log."""
    entry = PageEntry("log", id, f"log/{id}", "experiment", id, "measured", 0, 0, "", {"kind": ("experiment",)}, **more)
    return entry, [Passage(passage_id("log", id, text, 0), f"log/{id}", id, (), text, text, None)]


def test_records_of_the_log_stand_beside_pages(store: Store) -> None:
    before = store.counts()
    with store.transaction():
        store.set_wikis([*store.wikis(), ("log", "log", "/log", "")])
        for one in (record("A", "softmax was unrolled"), record("B", "softmax was tiled", masked=True)):
            store.put_page(*one, (), ())
    assert store.record_count() == 2
    assert store.counts() == before | {"passages": before["passages"] + 2}
    kind = {"kind": ["experiment"]}
    for hidden, found in (((VISIBLE,), ["log/A"]), ((MASKED,), ["log/B"]), ((VISIBLE, MASKED), ["log/A", "log/B"])):
        chosen = Chosen(kind, hidden)
        passages = store.passages(store.passage_ids(chosen=chosen), chosen).values()
        assert [passage.page_id for passage in passages] == found
        assert all(passage.cited is None and passage.reference == passage.page_id for passage in passages)
        assert len(store.match_words(["softmax"], 10, chosen)) == len(found)
    assert store.hides()
    with store.transaction():
        store.hide_overridden()
    assert store.passage_count(Chosen(kind, (MASKED,))) == 1
    assert "experiment" in store.values_of("kind")
    assert store.values_of("wiki") == ["gpu-wiki", "log"]


def test_a_later_wiki_hides_the_page_of_an_earlier_one(store: Store, library: Wikis) -> None:
    page = replace(page_of(library, SOFTMAX), wiki="ours")
    with store.transaction():
        store.set_wikis([("gpu-wiki", "wiki", "/wiki", "rev"), ("ours", "wiki", "/ours", "rev2")])
    put(store, page)
    with store.transaction():
        store.hide_overridden()
    assert store.overrides() == [("kernel/softmax", "ours", "gpu-wiki")]
    assert {row.citation.wiki for row in store.rows("cost", "softmax")} == {"ours"}
    everything = Chosen({}, (VISIBLE, HIDDEN))
    there = store.passages(store.passage_ids(chosen=everything), everything).values()
    assert {p.citation.wiki for p in there if p.page_id == "kernel/softmax"} == {"gpu-wiki", "ours"}
    visible = store.passages(store.passage_ids()).values()
    assert {p.citation.wiki for p in visible if p.page_id == "kernel/softmax"} == {"ours"}
    assert store.hides()
    with store.transaction():
        assert store.remove_page("ours", SOFTMAX) == "kernel/softmax"
        store.hide_overridden(["kernel/softmax"])
    assert store.overrides() == []
    assert not store.hides()
    assert {row.citation.wiki for row in store.rows("cost", "softmax")} == {"gpu-wiki"}


def test_broken_pages(store: Store) -> None:
    with store.transaction():
        store.remove_page("gpu-wiki", SOFTMAX)
        entry = PageEntry("gpu-wiki", SOFTMAX, "", "", "", "", 1, 2, "bb", {})
        store.put_broken(entry, [{"line": 3, "message": "no"}])
    assert store.broken() == [("gpu-wiki", SOFTMAX, [{"line": 3, "message": "no"}])]
    assert store.files("gpu-wiki")[SOFTMAX] == (1, 2, "bb")
    assert store.rows("cost", "softmax") == []
    with store.transaction():
        store.touch("gpu-wiki", SOFTMAX, 3, 4)
        store.touch("gpu-wiki", H100, 5, 6)
    assert store.files("gpu-wiki") == {SOFTMAX: (3, 4, "bb"), H100: (5, 6, "aa")}
    with store.transaction():
        assert store.remove_page("gpu-wiki", SOFTMAX) == ""
    assert store.broken() == []


def test_a_failed_transaction_changes_nothing(store: Store) -> None:
    def fail() -> None:
        with store.transaction():
            store.remove_page("gpu-wiki", H100)
            store.bump_generation()
            raise KeyError("stop")

    with pytest.raises(KeyError):
        fail()
    assert store.counts()["pages"] == 2
    assert store.generation == 0


def test_generation_and_meta(store: Store) -> None:
    assert store.meta("model", "none") == "none"
    with store.transaction():
        assert store.bump_generation() == 1
        store.set_meta("model", "x")
    assert (store.generation, store.meta("model")) == (1, "x")


def test_a_reader_sees_the_index_before_or_after_a_write(store: Store, tmp_path: Path) -> None:
    with Store(tmp_path / "index") as reader, reader.snapshot():
        assert reader.counts()["pages"] == 2
        with store.transaction():
            store.remove_page("gpu-wiki", H100)
        assert reader.counts()["pages"] == 2
        assert reader.specs("h100-sxm")
    with Store(tmp_path / "index") as reader:
        assert reader.counts()["pages"] == 1


def test_two_writers_wait_for_each_other(store: Store, tmp_path: Path) -> None:
    def add() -> None:
        with Store(tmp_path / "index") as other:
            for _ in range(20):
                with other.transaction():
                    other.bump_generation()

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.generation == 60


def embed(store: Store, model: str = "m") -> dict[str, bytes]:
    """Give every text that has none a vector: key → vector."""
    missing = store.missing_embeddings(model, 1000)
    vectors = {key: struct.pack("<2f", number, 1) for number, (key, _) in enumerate(missing)}
    with store.transaction():
        store.put_embeddings(model, vectors.items())
    return vectors


def keys(store: Store, condition: str = "TRUE") -> set[str]:
    return {str(key) for (key,) in store.db.execute(f"SELECT key FROM embeddings WHERE {condition}")}


def embedding_keys(store: Store) -> dict[str, str]:
    """id → hash of its text, of passages, headings and asks."""
    return dict(store.db.execute("SELECT passage, embedding_key FROM passages"))


def test_vectors_are_kept_by_the_text(store: Store) -> None:
    of = embedding_keys(store)
    wanted = set(of.values())
    assert {key for key, _ in store.missing_embeddings("m", 1000)} == wanted
    assert store.missing_count("m") == len(wanted)
    assert len(store.missing_embeddings("m", 2)) == 2
    keys = store.missing_keys("m", "", 1000)
    assert keys == sorted(wanted)
    assert [*store.missing_keys("m", "", 2), *store.missing_keys("m", keys[1], 1000)] == keys
    vectors = embed(store)
    assert store.missing_embeddings("m", 1000) == []
    assert store.missing_count("other") == len(wanted)
    assert dict(store.vectors("m")) == {id: vectors[key] for id, key in of.items()}
    some = sorted(of)[:2]
    assert dict(store.vectors("m", some)) == {id: vectors[of[id]] for id in some}
    assert dict(store.vectors("other")) == {}


def test_vectors_that_nothing_needs_are_kept_for_a_time(store: Store, library: Wikis) -> None:
    vectors = embed(store)
    with store.transaction():
        store.set_meta("vector_model", "m")
        store.remove_page("gpu-wiki", SOFTMAX)
    left = set(embedding_keys(store).values())
    assert keys(store) == vectors.keys()
    assert keys(store, "unused IS NULL") == left
    (since,) = store.db.execute("SELECT DISTINCT unused FROM embeddings WHERE unused IS NOT NULL").fetchone()
    with store.transaction():
        store.forget_embeddings(since, 1000)
    assert keys(store) == vectors.keys(), "not yet"
    put(store, page_of(library, SOFTMAX))
    assert keys(store, "unused IS NULL") == vectors.keys(), "it came back"
    assert store.missing_count("m") == 0
    with store.transaction():
        store.remove_page("gpu-wiki", SOFTMAX)
        store.forget_embeddings(since, 1)
    assert len(keys(store)) == len(left) + 1, "no more than the limit"
    with store.transaction():
        store.forget_embeddings(int(time.time()) + 1, 1000)
    assert keys(store) == left


def test_a_vector_that_another_page_needs_is_not_unused(store: Store, library: Wikis) -> None:
    page = page_of(library, SOFTMAX)
    put(store, replace(page, wiki="ours"))
    vectors = embed(store)
    with store.transaction():
        store.remove_page("ours", SOFTMAX)
    assert keys(store, "unused IS NULL") == vectors.keys()


def test_pending_is_what_the_vector_index_may_not_hold(store: Store, library: Wikis) -> None:
    ids = set(store.vector_ids())
    assert set(store.pending()) == ids
    assert (store.pending_count(), len(store.pending(2))) == (len(ids), 2)
    with store.transaction():
        store.settle("m")
    assert set(store.pending()) == ids, "none has a vector that the vector index could hold"
    embed(store)
    with store.transaction():
        store.set_meta("vector_model", "m")
        store.settle("m")
    assert store.pending() == []
    gone = {id for id, spot in store.spots(ids).items() if spot.page_id == "kernel/softmax"}
    with store.transaction():
        store.remove_page("gpu-wiki", SOFTMAX)
    assert set(store.pending()) == gone
    put(store, page_of(library, SOFTMAX))
    assert set(store.pending()) == gone
    assert set(store.vector_ids(pending=True)) == gone
    assert set(store.vector_ids(pending=False)) == ids - gone
    assert store.vector_count(settled=True) == store.vector_count(Chosen({}), settled=True) == len(ids - gone)
    with store.transaction():
        store.settle("m")
    assert store.pending() == []
    with store.transaction():
        store.retire_model("other", 1)
    assert set(store.pending()) == ids
    assert keys(store, "unused = 1") == keys(store)
    with store.transaction():
        store.retire_model("m", 2)
    assert keys(store, "unused IS NULL") == keys(store)


def test_a_foreign_or_older_database_is_said_to_be(tmp_path: Path, store: Store) -> None:
    with sqlite3.connect(tmp_path / FILE_NAME) as foreign:
        foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    with pytest.raises(DamagedIndexError, match="another program"):
        Store(tmp_path)
    with pytest.raises(DamagedIndexError, match="another program"):
        Store(tmp_path, create=True)
    store.db.execute("PRAGMA user_version = 999")
    with pytest.raises(DamagedIndexError, match="another version"):
        Store(store.folder)


def test_damage_inside_is_found(store: Store) -> None:
    assert store.check() == ""
    store.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    data = bytearray(store.path.read_bytes())
    data[4096 : 4096 * 6] = b"\xa5" * (4096 * 5)
    store.path.write_bytes(data)
    try:
        with Store(store.folder) as again:
            assert again.check() != ""
    except DamagedIndexError:
        pass  # damage that shows when the file is opened


def test_a_full_disk_leaves_what_was_stored(store: Store) -> None:
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count = {pages}")

    def fill() -> None:
        with store.transaction():
            store.put_embeddings("m", ((str(n), b"x" * 4000) for n in range(500)))

    with pytest.raises(Exception, match="no space left") as caught:
        fill()
    assert getattr(caught.value, "code", "") == "disk_full"
    assert store.counts()["pages"] == 2
    assert store.check() == ""


def test_products_that_pages_declare(store: Store, wiki: Wiki) -> None:
    with store.transaction():
        store.put_products([{"id": "b"}, {"id": "a", "name": "A"}])
        store.put_products([{"id": "a", "name": "A2"}])
    assert store.products() == [{"id": "a", "name": "A2"}]
