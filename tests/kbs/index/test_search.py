"""Search: filters, words, vectors, identifiers, names, and at most so many passages of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kbs.evidence.citation import Citation, lines_hash
from kbs.evidence.passage import PageEntry, Passage, passage_id
from kbs.evidence.vocabulary import vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Vectors
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


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "index", create=True) as made, made.transaction():
        made.set_wikis([("w", "/w", "rev")])
        for page, texts in TEXTS.items():
            kind, name = page.split("/")
            path = f"{page}.md"
            passages = []
            for line, text in enumerate(texts, start=1):
                citation = Citation("w", path, line, line, "rev", lines_hash([text]), text)
                passages.append(Passage(passage_id("w", path, text, 0), page, name, (), text, text, citation))
            facet = {"kernel": "operation", "hardware": "product"}[kind]
            facets = {"kind": (kind,), facet: (name,)}
            made.put_page(PageEntry("w", path, page, kind, name, "verified", 1, 1, "aa", facets), passages, (), ())
            made.put_embeddings(MODEL, ((p.embedding_key, VECTORS[p.text].tobytes()) for p in passages))
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


def test_the_vector_index_gives_what_a_scan_gives(store: Store) -> None:
    ids = {passage.text: id for id, passage in store.passages(store.passage_ids()).items()}
    asked: list[int] = []

    def nearest(vector: Vectors, count: int) -> list[tuple[str, float]]:
        asked.append(count)
        scored = [(ids[text], float(found @ vector)) for text, found in VECTORS.items()]
        return sorted(scored, key=lambda pair: -pair[1])[:count]

    query = Query("softmax memory", unit(1, 0.5, 0.2))
    scanned, indexed = (search(store, query, V, MODEL, use) for use in (None, nearest))
    assert asked
    assert [(h.passage.id, round(h.score, 5)) for h in scanned.hits] == [
        (h.passage.id, round(h.score, 5)) for h in indexed.hits
    ]


def test_a_failing_vector_index_degrades_and_says_so(store: Store) -> None:
    def fail(vector: Vectors, count: int) -> list[tuple[str, float]]:
        raise VectorIndexError("Chroma cannot be used: broken", code="chroma_failed", hint="Mend it.")

    query = Query("softmax", unit(1, 0, 0))
    found = search(store, query, V, MODEL, fail)
    assert texts(found) == texts(search(store, query, V, MODEL, None))
    assert found.degraded == ["Chroma cannot be used: broken; vectors were compared one by one. Mend it."]


def test_an_index_that_changed_meanwhile_is_not_believed(store: Store) -> None:
    def outdated(vector: Vectors, count: int) -> list[tuple[str, float]]:
        store.bump_generation()
        return [("gone", 1.0)]

    query = Query("softmax", unit(1, 0, 0))
    assert texts(search(store, query, V, MODEL, outdated)) == texts(search(store, query, V, MODEL, None))


@pytest.mark.parametrize("dims", [(1.0,), (1.0, 0.0, 0.0, 0.0)])
def test_vectors_of_another_size_are_not_compared(store: Store, dims: Sequence[float]) -> None:
    found = search(store, Query("softmax", unit(*dims)), V, MODEL, None)
    assert found.hits
    assert all(hit.cosine == 0 for hit in found.hits)
