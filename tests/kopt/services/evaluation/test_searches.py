"""Searches without a stage, and planted citations, on the bundled wiki."""

from __future__ import annotations

import pytest

from kbs.evidence.checking import CheckedCitation, Status
from kbs.index.search import Query
from kbs.index.sections import SectionResult
from kbs.index.store import Store
from kbs.questions.question import understand
from kopt.services.engine import Engine
from kopt.services.evaluation import planted, retrieval
from kopt.services.evaluation.planted import plant
from kopt.services.evaluation.questions import Question
from kopt.services.evaluation.quiet import QuietEngine

pytestmark = pytest.mark.processes
TEXT = "why does cp.async need a barrier"


def test_a_search_lacks_what_it_is_said_to_lack(engine: Engine) -> None:
    def look(store: Store) -> dict[str, SectionResult]:
        kinds, vectors = retrieval._kinds(store), dict(store.vectors(store.meta("vector_model")))
        assert set(kinds.values()) == {"text", "headings", "asks"}
        assert kinds.keys() == vectors.keys()
        found = {}
        for name, stages in {**retrieval.LACKING, "nothing": frozenset[str]()}.items():
            view = retrieval._Lacking.of(store, stages, kinds, vectors, {})
            found[name] = engine.find_sections(view, understand(TEXT, engine.terms), Query(count=8, records=0), 8)
        found["engine"] = engine.find_sections(store, understand(TEXT, engine.terms), Query(count=8, records=0), 8)
        return found

    found = engine.with_store(look, vectors=True)
    scores = {name: [(hit.text, hit.words, hit.asked) for hit in result.hits] for name, result in found.items()}
    assert [pytest.approx(one) for one in scores["nothing"]] == scores["engine"]
    assert all(len(some) == 8 for some in scores.values())
    assert all(text == asked == 0 < words for text, words, asked in scores["words alone"])
    assert all(words == asked == 0 < text for text, words, asked in scores["text vectors alone"])
    assert all(words == 0 for _, words, _ in scores["without words"])
    assert all(text == 0 for text, _, _ in scores["without text"])
    assert scores["without asks"] != scores["nothing"]


def test_found_sections_of_questions(engine: Engine) -> None:
    gold = "technique/software-pipelining#How does cp.async (LDGSTS) work?"
    asked = [
        Question(id="a", question="How does cp.async (LDGSTS) work?", by="section", gold=(gold,)),
        Question(id="b", question="What is the L2 size of the H200?", by="solver"),
    ]
    told: list[int] = []
    one, other = retrieval.search_all(QuietEngine(engine.settings), asked, told.append)
    assert told == [1, 2]
    assert list(one.ranks) == ["sections", "passages", *retrieval.LACKING]
    assert (one.ranks["sections"], one.nearest[0]) == (1, gold)
    assert (other.ranks, len(other.nearest)) == ({}, 3)
    assert list(one.scores) == sorted(one.scores, reverse=True)


def test_no_planted_citation_is_accepted(engine: Engine) -> None:
    found = plant(engine.library, engine.specs(), 140)
    assert [one.planted for one in found] == [20] * 7
    assert [one.accepted for one in found] == [0] * 7
    assert found == plant(engine.library, engine.specs(), 140)
    assert plant(engine.library, engine.specs(), 0) == []


def test_an_accepted_one_is_counted_and_shown(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def all_is_well(text: str, *_: object) -> list[CheckedCitation]:
        return [CheckedCitation(1, text, "", Status.OK, "", "")]

    monkeypatch.setattr(planted, "check_text", all_is_well)
    for one in plant(engine.library, engine.specs(), 70):
        assert one.accepted == 10 or one.kind == "another hash"
        assert len(one.examples) == 5 or one.kind == "another hash"


def test_questions_leave_no_trace(engine: Engine) -> None:
    quiet = QuietEngine(engine.settings)
    quiet.log_gap("a question of this test alone?", "not_in_wiki", ["x"])
    gaps = engine.settings.home / "gaps.jsonl"  # others of this process may have written it
    assert not gaps.exists() or "a question of this test alone?" not in gaps.read_text()
    encoder = quiet._encoder("stamp")
    first = encoder.encode(["a question"])
    assert (encoder.encode(["a question"]) == first).all()
    assert quiet._encoder("stamp") is encoder
