"""Search: filters, words, vectors, identifiers, names, and at most so many passages of a page."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.evidence.citation import Citation, lines_hash
from kbs.evidence.passage import PageEntry, Passage, passage_id
from kbs.evidence.vocabulary import vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Vectors
from kbs.index.passages import HIDDEN, MASKED, VISIBLE, Chosen
from kbs.index.search import IDENTIFIER_BONUS, NAME_BONUS, WORD_WEIGHT, Query, SearchResult, search
from kbs.index.store import Store

V = vocabulary()
MODEL = "m:1"
TEXTS = {
    "kernel/softmax": ["softmax rows are read once", "softmax writes its rows once", "softmax of rows in registers"],
    "kernel/matmul": ["matrix products use tensor cores", "wgmma.mma_async feeds tensor cores"],
    "hardware/h100-sxm": ["the board has fast memory"],
    "hardware/h100-pcie": ["the card has slower memory"],
}


def unit(*values: float) -> Vectors:
    vector = np.array(values, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


VECTORS = {
    "softmax rows are read once": unit(1, 0, 0),
    "softmax writes its rows once": unit(1, 0.2, 0),
    "softmax of rows in registers": unit(1, 0.4, 0),
    "matrix products use tensor cores": unit(0, 1, 0),
    "wgmma.mma_async feeds tensor cores": unit(0, 1, 0.5),
    "the board has fast memory": unit(0, 0, 1),
    "the card has slower memory": unit(0, 0.1, 1),
}


def put(
    store: Store, page: str, texts: Sequence[str], facets: Mapping[str, tuple[str, ...]], vectors: Sequence[Any]
) -> None:
    """Put a page, or a record of the log, one passage a text, with their vectors."""
    kind, name = page.split("/")
    record = kind == "log"
    wiki, path, kind = ("log", name, "experiment") if record else ("w", f"{page}.md", kind)
    passages = []
    for line, text in enumerate(texts, start=1):
        cited = None if record else Citation("w", path, line, line, "rev", lines_hash([text]), text)
        passages.append(Passage(passage_id(wiki, path, text, 0), page, name, (), text, text, cited))
    entry = PageEntry(wiki, path, page, kind, name, "verified", 1, 1, "aa", {"kind": (kind,), **facets})
    store.put_page(entry, passages, (), ())
    with_vector = zip(passages, vectors, strict=True) if vectors else ()
    made = ((one.embedding_key, unit(*vector).tobytes()) for one, vector in with_vector)
    store.put_embeddings(MODEL, made)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "index", create=True) as made:
        with made.transaction():
            made.set_wikis([("w", "wiki", "/w", "rev")])
            for page, texts in TEXTS.items():
                kind, name = page.split("/")
                facet = {"kernel": "operation", "hardware": "product"}[kind]
                put(made, page, texts, {facet: (name,)}, [VECTORS[text] for text in texts])
            made.settle(MODEL)
        yield made


def texts(result: SearchResult) -> list[str]:
    return [hit.passage.text for hit in result.hits]


def test_by_words_alone(store: Store) -> None:
    found = search(store, Query("how is softmax written in registers?"), V, MODEL, None)
    assert texts(found)[0] == "softmax of rows in registers"
    assert "how" not in found.terms
    assert all(hit.cosine == 0 for hit in found.hits)
    assert found.degraded == []


def test_by_vectors_alone(store: Store) -> None:
    found = search(store, Query("zzz", unit(0, 0, 1)), V, MODEL, None)
    assert texts(found)[:2] == ["the board has fast memory", "the card has slower memory"]
    assert found.hits[0].cosine == pytest.approx(1, abs=1e-6)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)


def test_scores_are_the_sum_of_their_stages(store: Store) -> None:
    query = Query("softmax wgmma.mma_async", unit(1, 1, 0), names={"operation": ["softmax"]})
    for hit in search(store, query, V, MODEL, None).hits:
        assert hit.score == pytest.approx(hit.cosine + WORD_WEIGHT * hit.words + hit.identifier + hit.names)
        assert hit.cosine == pytest.approx(float(VECTORS[hit.passage.text] @ unit(1, 1, 0)))
        assert hit.names == (NAME_BONUS if hit.passage.page_id == "kernel/softmax" else 0)
        assert hit.identifier == (IDENTIFIER_BONUS if "wgmma" in hit.passage.text else 0)


def test_what_has_no_vector_yet_is_found_by_its_words(store: Store) -> None:
    """A search while its ingest is under way, among passages that are a little near."""
    with store.transaction():
        put(store, "kernel/zebra", ["the zebra number of the doors"], {}, [])
    found = search(store, Query("zebra number of the doors", unit(1, 1, 1), count=2), V, MODEL, None)
    assert texts(found)[0] == "the zebra number of the doors"
    assert "vectors" not in found.hits[0].found_by


def test_a_rare_identifier_wins_over_meaning(store: Store) -> None:
    found = search(store, Query("wgmma.mma_async", unit(0, 1, 0.2)), V, MODEL, None)
    assert texts(found)[0] == "wgmma.mma_async feeds tensor cores"


def test_at_most_so_many_of_a_page_and_in_all(store: Store) -> None:
    query = Query("softmax rows", unit(1, 0, 0))
    pages = [hit.passage.page_id for hit in search(store, query, V, MODEL, None).hits]
    assert pages.count("kernel/softmax") == 2
    assert len(search(store, replace(query, count=1), V, MODEL, None).hits) == 1
    assert texts(search(store, replace(query, per_page=3), V, MODEL, None)).count("softmax of rows in registers") == 1


def test_filters(store: Store) -> None:
    query = Query("memory", unit(0, 0, 1), filters={"kind": ["kernel"]})
    found = search(store, query, V, MODEL, None)
    assert found.hits
    assert {hit.passage.page_id.split("/")[0] for hit in found.hits} == {"kernel"}
    assert search(store, replace(query, filters={"kind": ["nothing"]}), V, MODEL, None).hits == []
    assert search(store, replace(query, filters={"kind": []}), V, MODEL, None).hits


def test_pages_of_other_products_are_left_out(store: Store) -> None:
    query = Query("memory", unit(0, 0, 1), other_products=frozenset({"h100-pcie"}))
    assert "the card has slower memory" not in texts(search(store, query, V, MODEL, None))


def test_nothing_to_search_for(store: Store) -> None:
    assert search(store, Query(""), V, MODEL, None).hits == []
    assert search(store, Query("zzzz"), V, MODEL, None).hits == []


class Nearest:
    """A vector index that holds some passages, exactly; remembers what it was asked."""

    def __init__(self, store: Store, without: Collection[str] = ()) -> None:
        self.held = {id: read(data) for id, data in store.vectors(MODEL) if id not in without}
        self.asked: list[tuple[int, Sequence[str] | None]] = []

    def __call__(self, vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        self.asked.append((count, ids))
        assert ids is None or set(ids) <= self.held.keys(), "Chroma fails when it is to choose what it does not hold"
        scored = [(id, float(found @ vector)) for id, found in self.held.items() if ids is None or id in ids]
        return sorted(scored, key=lambda pair: -pair[1])[:count]


def read(data: bytes) -> Vectors:
    return np.frombuffer(data, np.float32)


def scores(result: SearchResult) -> list[tuple[str, float]]:
    return [(hit.passage.id, round(hit.score, 5)) for hit in result.hits]


def settle(store: Store) -> None:
    with store.transaction():
        store.settle(MODEL)


def test_the_vector_index_gives_what_a_scan_gives(store: Store) -> None:
    nearest = Nearest(store)
    query = Query("softmax memory", unit(1, 0.5, 0.2))
    scanned, indexed = (search(store, query, V, MODEL, use) for use in (None, nearest))
    assert nearest.asked == [(7, None)]
    assert scores(scanned) == scores(indexed)
    assert (scanned.asked, indexed.asked) == (["vectors compared one by one"], ["Chroma, 7 nearest of 7 vectors"])
    assert indexed.degraded == []


def test_a_failing_vector_index_degrades_and_says_so(store: Store) -> None:
    def fail(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        raise VectorIndexError("Chroma cannot be used: broken", code="chroma_failed", hint="Mend it.")

    query = Query("softmax", unit(1, 0, 0))
    found = search(store, query, V, MODEL, fail)
    assert texts(found) == texts(search(store, query, V, MODEL, None))
    assert found.degraded == ["Chroma cannot be used: broken; vectors were compared one by one. Mend it."]


@pytest.mark.parametrize("how", ["others", "too few", "other distances"])
def test_a_vector_index_that_tells_what_cannot_be_is_not_believed(store: Store, how: str) -> None:
    nearest = Nearest(store)

    def wrong(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        found = nearest(vector, count, ids)
        if how == "others":
            return [("gone", 1.0)]
        return found[:3] if how == "too few" else [(id, cosine - 0.02) for id, cosine in found]

    query = Query("softmax", unit(1, 0, 0))
    found = search(store, query, V, MODEL, wrong)
    assert scores(found) == scores(search(store, query, V, MODEL, None))
    assert len(found.degraded) == 1


def test_what_is_pending_is_compared_beside_the_vector_index(store: Store) -> None:
    ids = store.passage_ids()
    with store.transaction():
        store.db.execute("INSERT INTO pending VALUES (?), ('gone')", (ids[0],))
    nearest = Nearest(store, without=[ids[0]])
    nearest.held["gone"] = unit(1, 0, 0)
    query = Query("zzz", unit(1, 0, 0))
    found = search(store, query, V, MODEL, nearest)
    assert scores(found) == scores(search(store, query, V, MODEL, None))
    assert found.hits[0].passage.id == ids[0]
    assert found.degraded == []


def test_a_wide_filter_asks_for_more_and_a_narrow_one_names_the_passages(tmp_path: Path) -> None:
    dice = np.random.default_rng(5)
    with Store(tmp_path / "many", create=True) as store:
        with store.transaction():
            store.set_wikis([("w", "wiki", "/w", "rev")])
            for number in range(2000):
                product = "h100-sxm" if number < 1900 else "h200-sxm" if number < 1998 else "b200"
                put(store, f"hardware/p{number}", [f"text {number}"], {"product": (product,)}, [dice.normal(size=8)])
        settle(store)
        nearest = Nearest(store)
        vector = unit(*dice.normal(size=8))

        def asked(product: str) -> list[tuple[int, Sequence[str] | None]]:
            nearest.asked.clear()
            query = Query("zzz", vector, filters={"product": [product]})
            found = search(store, query, V, MODEL, nearest)
            assert scores(found) == scores(search(store, query, V, MODEL, None))
            assert found.degraded == []
            return list(nearest.asked)

        ((count, ids),) = asked("h100-sxm")
        assert ids is None
        assert 60 < count < 100
        *_, (count, ids) = asked("h200-sxm")
        assert (count, len(ids or ())) == (60, 98)
        *_, (count, ids) = asked("b200")
        assert (count, len(ids or ())) == (2, 2)


FILTERS: list[dict[str, list[str]]] = [
    {},
    {"kind": ["experiment"]},
    {"operation": ["softmax"]},
    {"operation": ["matmul", "softmax"], "dtype": ["bf16"]},
    {"wiki": ["w"]},
    {"wiki": ["log", "w"], "outcome": ["success"]},
    {"method": ["tiling"]},
    {"kind": ["poem"]},
]
PAGES = st.lists(
    st.tuples(
        st.booleans(),  # a record of the log
        st.integers(1, 3),
        st.sampled_from([VISIBLE, HIDDEN, MASKED]),
        st.sampled_from(["", "softmax", "matmul"]),
        st.sampled_from(["", "bf16"]),
        st.sampled_from(["", "success"]),
        st.sampled_from(["", "tiling"]),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=60)
@given(
    pages=PAGES, seed=st.integers(0, 999), filters=st.sampled_from(FILTERS), share=st.sampled_from([0.0, 0.3, 1.0]),
    hidden=st.sampled_from([(VISIBLE,), (MASKED,), (VISIBLE, MASKED)]), few=st.booleans(), narrow=st.booleans(),
)  # fmt: skip
def test_hits_equal_those_of_exact_comparison(
    pages: list[tuple[Any, ...]], seed: int, filters: dict[str, list[str]], share: float,
    hidden: tuple[int, ...], few: bool, narrow: bool,
) -> None:  # fmt: skip
    dice = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr("kbs.index.search.FAR", 0 if narrow else 1500)
        patched.setattr("kbs.index.search.CANDIDATES", 3 if few else 60)
        with Store(Path(folder), create=True) as store:
            with store.transaction():
                store.set_wikis([("w", "wiki", "/w", "rev"), ("log", "log", "/log", "")])
                for number, (record, count, state, *stated) in enumerate(pages):
                    facets = dict(
                        zip(("operation", "dtype", "outcome", "method"), ((one,) for one in stated), strict=True)
                    )
                    facets = {name: values for name, values in facets.items() if values != ("",)}
                    name = f"log/{number}" if record else f"kernel/{number}"
                    body = [f"text {number} {part}" for part in range(count)]
                    put(store, name, body, facets, [dice.normal(size=8) for _ in body])
                    store.db.execute("UPDATE pages SET hidden = ? WHERE page_id = ?", (state, name))
            settle(store)
            late = [id for id in store.passage_ids(chosen=Chosen({}, (0, 1, 2))) if dice.random() < share]
            gone = [f"gone {number}" for number in range(int(10 * share))]
            with store.transaction():
                store.db.executemany("INSERT INTO pending VALUES (?)", [(id,) for id in [*late, *gone]])
            nearest = Nearest(store, without=[id for id in late if dice.random() < 0.5])
            nearest.held |= {id: unit(*dice.normal(size=8)) for id in gone}
            query = Query("text 1", unit(*dice.normal(size=8)), filters, count=2 if few else 8, hidden=hidden)
            found, exact = (search(store, query, V, MODEL, use) for use in (nearest, None))
            assert scores(found) == scores(exact)
            assert found.degraded == []


@pytest.mark.parametrize("dims", [(1.0,), (1.0, 0.0, 0.0, 0.0)])
def test_vectors_of_another_size_are_not_compared(store: Store, dims: Sequence[float]) -> None:
    found = search(store, Query("softmax", unit(*dims)), V, MODEL, None)
    assert found.hits
    assert all(hit.cosine == 0 for hit in found.hits)
