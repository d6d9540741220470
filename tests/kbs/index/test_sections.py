"""Sections: found by their headings and asks, read whole, scored so that questions compare."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.evidence.citation import Citation, lines_hash
from kbs.evidence.passage import PageEntry, Passage, asked_as, passage_id
from kbs.evidence.vocabulary import vocabulary
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Vectors
from kbs.index.passages import HIDDEN, VISIBLE
from kbs.index.search import Query, search
from kbs.index.sections import SECTION_WORDS, SectionResult, find_sections
from kbs.index.store import Store

V = vocabulary()
MODEL = "m:1"


def unit(*values: float) -> Vectors:
    vector = np.array(values, np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class Book:
    """A store of pages that are made of sections; every text has a vector."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.vectors: dict[str, Vectors] = {}

    def put(
        self,
        page: str,
        sections: Sequence[tuple[str, Sequence[str], Sequence[str]]],
        facets: Mapping[str, tuple[str, ...]] | None = None,
        wiki: str = "w",
    ) -> None:
        """Put a page of (heading, asks, texts): one passage a text, a blank line between two."""
        kind, name = page.split("/")
        record = kind == "log"
        path = name if record else f"{page}.md"
        wiki = "log" if record else wiki
        passages, line = [], 1
        for place, (heading, asks, texts) in enumerate(sections):
            for text in texts:
                line += 2
                cited = None if record else Citation(wiki, path, line, line, "rev", lines_hash([text]), text)
                trail = (heading,) if heading else ()
                id = passage_id(wiki, path, text, line)
                passages.append(Passage(id, page, name, trail, text, text, cited, 0 if record else place, tuple(asks)))
        facets = {"kind": ("experiment" if record else kind,), **(facets or {})}
        entry = PageEntry(wiki, path, page, facets["kind"][0], name, "verified", 1, 1, "aa", facets)
        with self.store.transaction():
            self.store.put_page(entry, passages, (), ())

    def embed(self, vectors: Mapping[str, Vectors], seed: int = 0) -> None:
        """Give each text its vector, or a random one."""
        dice = np.random.default_rng(seed)
        with self.store.transaction():
            for key, text in self.store.missing_embeddings(MODEL, 10_000):
                self.vectors[text] = vectors.get(text, unit(*dice.normal(size=8)))
                self.store.put_embeddings(MODEL, [(key, self.vectors[text].tobytes())])
            self.store.settle(MODEL)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    with Store(tmp_path / "index", create=True) as store:
        with store.transaction():
            store.set_wikis([("w", "wiki", "/w", "rev"), ("log", "log", "/log", "")])
        yield Book(store)


AXIS = np.eye(8, dtype=np.float32)
BANKS = (
    "How do I get rid of bank conflicts?",
    ("why pad a tile to 33 columns", "32-way conflict"),
    ("Pad each row of the tile by one element.", "Or swizzle the column index."),
)


@pytest.fixture
def shelf(book: Book) -> Book:
    book.put("technique/banks", [("", (), ("The lead of the page.",)), BANKS], {"product": ("h100-sxm",)})
    book.put("technique/other", [("Spills", (), ("Registers spill to local memory.",))])
    book.put("log/01", [("", (), ("softmax kernel: Tried padding.", "Padding pays."))])
    book.embed({
        "why pad a tile to 33 columns": AXIS[0],
        "32-way conflict": unit(0.8, 0.6, 0, 0, 0, 0, 0, 0),
        BANKS[0]: unit(0.8, 0, 0.6, 0, 0, 0, 0, 0),
        "Pad each row of the tile by one element.": unit(0.5, 1, 0, 0, 0, 0, 0, 0),
        "Registers spill to local memory.": unit(0.6, 0, 0.8, 0, 0, 0, 0, 0),
    })  # fmt: skip
    return book


def sections(found: SectionResult) -> list[tuple[str, int]]:
    return [(hit.section.page_id, hit.section.place) for hit in found.hits]


def find(book: Book, text: str, vector: Vectors | None, count: int = 5, **more: Any) -> SectionResult:
    return find_sections(book.store, Query(text, vector, **more), V, MODEL, None, count)


def test_an_ask_finds_its_section_whole(shelf: Book) -> None:
    best = find(shelf, "zzz", AXIS[0]).hits[0]
    assert (best.section.page_id, best.section.place, best.section.heading) == ("technique/banks", 1, BANKS[0])
    assert [passage.text for passage in best.section.passages] == list(BANKS[2])
    assert (best.section.asks, best.section.title) == (BANKS[1], "banks")
    assert best.section.about == {"kind": ("technique",), "product": ("h100-sxm",)}
    assert (best.asked, best.text) == (pytest.approx(1.0), pytest.approx(float(shelf.vectors[BANKS[2][0]] @ AXIS[0])))
    mean = float(np.mean([shelf.vectors[one] @ AXIS[0] for one in (BANKS[0], *BANKS[1])]))
    assert best.dense == best.score == pytest.approx(best.text / 2 + best.asked / 4 + mean / 4)
    assert best.best.text == BANKS[2][0]
    assert best.section.reference == "w/technique/banks.md:L5-L7"
    assert best.section.citation.quote == f"{BANKS[2][0]}\n\n{BANKS[2][1]}"


def test_scores_are_the_sum_of_their_stages(shelf: Book) -> None:
    query = "why pad a row of a tile against registers"
    for vector in (AXIS[0], None):
        found = find(shelf, query, vector)
        assert found.hits
        assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
        for hit in found.hits:
            assert hit.score == pytest.approx(hit.dense + SECTION_WORDS * hit.words)
            assert 0 <= hit.words < 1
            if vector is None:
                assert (hit.dense, hit.asked, hit.text) == (0, 0, 0)
                continue
            text = max(float(shelf.vectors[passage.text] @ vector) for passage in hit.section.passages)
            named = (hit.section.heading, *hit.section.asks) if hit.section.asks else ()
            of_asks = [float(shelf.vectors[one] @ vector) for one in named] or [0.0]
            assert (hit.text, hit.asked) == (pytest.approx(text), pytest.approx(max(of_asks)))
            both = (max(of_asks) + sum(of_asks) / len(of_asks)) / 2
            assert hit.dense == pytest.approx((text + both) / 2 if named else text, abs=1e-6)


def test_the_words_of_asks_are_words_of_the_section(shelf: Book) -> None:
    found = find(shelf, "columns", None)
    assert sections(found) == [("technique/banks", 1)]
    assert shelf.store.match_words(["33"], 9)


def test_a_question_lifts_the_passages_of_its_section(shelf: Book) -> None:
    found = search(shelf.store, Query("zzz", AXIS[0]), V, MODEL, None)
    lifted = {hit.passage.text: hit for hit in found.hits if hit.passage.text in BANKS[2]}
    assert len(lifted) == 2
    for hit in lifted.values():
        own = float(shelf.vectors[hit.passage.text] @ AXIS[0])
        assert (hit.asked, hit.cosine) == (pytest.approx(1.0), pytest.approx((1 + own) / 2))
        assert hit.found_by == "vectors"
    assert {hit.asked for hit in found.hits if hit.passage.text not in BANKS[2]} == {0.0}
    assert all(hit.passage.text for hit in found.hits)


def test_headings_and_asks_are_no_passages(shelf: Book) -> None:
    store = shelf.store
    asked = {one.id for one in asked_as(store.passages(store.passage_ids()).values())}
    assert len(asked) == store.asked_count() == 3
    assert (store.passage_count(), store.counts()["passages"], store.vector_count()) == (6, 6, 9)
    assert not asked & set(store.passage_ids())
    assert not asked & set(store.passage_ids("technique/banks"))
    assert store.passages(asked) == {}
    assert asked < set(store.vector_ids())
    assert asked < set(dict(store.vectors(MODEL)))
    assert store.db.execute("SELECT count(*) FROM words").fetchone()[0] == 6
    assert store.word_frequency("swizzle") == 1
    with store.transaction():
        store.remove_page("w", "technique/banks.md")
    assert asked < set(store.pending())
    assert store.asked_count() == 0


def test_sections_by_their_place(shelf: Book) -> None:
    store = shelf.store
    lead, banks = store.sections("technique/banks")
    assert (lead.heading, lead.place, lead.asks) == ("banks", 0, ())
    assert store.section("technique/banks", 1) == banks
    assert store.section("technique/banks", 2) is None
    assert store.section("nothing", 0) is None
    (record,) = store.sections("log/01")
    assert (record.reference, record.cited, len(record.passages)) == ("log/01", None, 2)
    with pytest.raises(ValueError, match="has no lines"):
        _ = record.citation


def test_filters_other_products_and_counts(shelf: Book) -> None:
    near = sections(find(shelf, "zzz", AXIS[0]))
    assert near[:2] == [("technique/banks", 1), ("technique/other", 0)]
    assert {page for page, _ in near} == {"technique/banks", "technique/other", "log/01"}
    assert sections(find(shelf, "zzz", AXIS[0], filters={"product": ["h100-sxm"]})) == [
        ("technique/banks", 1),
        ("technique/banks", 0),
    ]
    others = find(shelf, "zzz", AXIS[0], other_products=frozenset({"h100-sxm"}))
    assert {hit.section.page_id for hit in others.hits} == {"technique/other", "log/01"}
    assert {hit.passage.page_id for hit in others.passages.hits} == {"technique/other", "log/01"}
    assert len(find(shelf, "zzz", AXIS[0], 1).hits) == 1
    split = find(shelf, "zzz", AXIS[0], 1, records=1)
    assert [hit.section.page_id for hit in split.pages] == ["technique/banks"]
    assert [hit.section.page_id for hit in split.records] == ["log/01"]
    assert find(shelf, "zzz", AXIS[0], records=0).records == []
    assert find(shelf, "zzz", AXIS[0], filters={"kind": ["experiment"]}).pages == []


def test_nothing_to_search_for(shelf: Book) -> None:
    assert find(shelf, "", None).hits == []
    assert find(shelf, "zzzz", None).hits == []


def test_a_failing_vector_index_gives_the_same_sections(shelf: Book) -> None:
    def fail(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
        raise VectorIndexError("Chroma cannot be used: broken", code="chroma_failed", hint="Mend it.")

    query = Query("pad rows", AXIS[0])
    found = find_sections(shelf.store, query, V, MODEL, fail, 5)
    assert shown(found) == shown(find_sections(shelf.store, query, V, MODEL, None, 5))
    assert len(found.degraded) == 1


def shown(found: SectionResult) -> list[tuple[Any, ...]]:
    return [
        *((h.section.page_id, h.section.place, round(h.score, 5), round(h.asked, 5), h.best.id) for h in found.hits),
        *((h.passage.id, round(h.score, 5), round(h.asked, 5), h.found_by) for h in found.passages.hits),
    ]


TEXT = st.sampled_from(["tile of rows", "bank conflict", "registers spill", "rows of a tile spill", "warp", "swizzle"])
SECTIONS = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.lists(TEXT, min_size=1, max_size=3)), max_size=3)
PAGES = st.lists(st.tuples(st.booleans(), st.sampled_from([VISIBLE, HIDDEN]), SECTIONS), max_size=8)


@settings(deadline=None, max_examples=60)
@given(
    pages=PAGES, seed=st.integers(0, 999), share=st.sampled_from([0.0, 0.4, 1.0]), text=TEXT, few=st.booleans(),
    filters=st.sampled_from([{}, {"kind": ["technique"]}, {"operation": ["softmax"]}, {"wiki": ["log"]}]),
    narrow=st.booleans(),
)  # fmt: skip
def test_sections_equal_those_of_exact_comparison(
    pages: list[tuple[Any, ...]], seed: int, share: float, text: str, few: bool,
    filters: dict[str, list[str]], narrow: bool,
) -> None:  # fmt: skip
    dice = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr("kbs.index.search.FAR", 0 if narrow else 1500)
        patched.setattr("kbs.index.search.CANDIDATES", 3 if few else 60)
        with Store(Path(folder), create=True) as store:
            with store.transaction():
                store.set_wikis([("w", "wiki", "/w", "rev"), ("log", "log", "/log", "")])
            book = Book(store)
            for number, (record, state, parts) in enumerate(pages):
                name = f"log/{number}" if record else f"technique/{number}"
                made = [
                    (
                        f"Heading {number} {place}" if heading else "",
                        [f"ask {number} {place} {n}" for n in range(asks)],
                        [f"{text}, {number} {place} {n}" for n, text in enumerate(texts)],  # none is as near as another
                    )
                    for place, (heading, asks, texts) in enumerate(parts)
                ]
                facets = {"operation": ("softmax",)} if number % 2 else {}
                book.put(name, made[:1] if record else made, facets)
                store.db.execute("UPDATE pages SET hidden = ? WHERE page_id = ?", (state, name))
            book.embed({}, seed)
            held = {id: np.frombuffer(data, np.float32) for id, data in store.vectors(MODEL)}
            late = [id for id in held if dice.random() < share]
            with store.transaction():
                store.db.executemany("INSERT INTO pending VALUES (?)", [(id,) for id in [*late, "gone"]])
            for id in late:
                if dice.random() < 0.5:
                    del held[id]

            def nearest(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
                scored = [(id, float(one @ vector)) for id, one in held.items() if ids is None or id in ids]
                return sorted(scored, key=lambda pair: -pair[1])[:count]

            query = Query(text, unit(*dice.normal(size=8)), filters)
            found, exact = (find_sections(store, query, V, MODEL, use, 4) for use in (nearest, None))
            assert shown(found) == shown(exact)
            assert found.degraded == []
            for hit in found.hits:
                assert hit.section == store.section(hit.section.page_id, hit.section.place)
                assert 0 <= hit.words < 1


@given(
    texts=st.lists(st.lists(TEXT, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=12),
    asked=st.lists(TEXT, min_size=1, max_size=4),
)
@settings(deadline=None, max_examples=60)
def test_no_passage_reaches_the_ideal_of_the_words(texts: list[str], asked: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder), create=True) as store:
        with store.transaction():
            store.set_wikis([("w", "wiki", "/w", "rev")])
        for number, text in enumerate(texts):
            Book(store).put(f"technique/{number}", [("", (), (text,))])
        terms = list(dict.fromkeys(" ".join(asked).split()))
        scores = [score for _, score in store.match_words(terms, 99)]
        assert all(score < store.ideal_words(terms) for score in scores)


def test_a_passage_that_says_little_else_comes_near_the_ideal(book: Book) -> None:
    book.put("technique/a", [("", (), ("swizzle " * 300,))])
    for number in range(9):
        book.put(f"technique/b{number}", [("", (), ("other words " * 300,))])
    ((_, score),) = book.store.match_words(["swizzle"], 9)
    assert 0.95 < score / book.store.ideal_words(["swizzle"]) < 1
