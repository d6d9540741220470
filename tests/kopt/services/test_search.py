"""One search of pages and past experiments, which asks Chroma."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chromadb.api.models.Collection import Collection

from kbs.common.errors import UsageError
from kbs.common.ulid import new_ulid
from kbs.evidence.checking import Status, check_citation
from kbs.experience.experiment import Experiment, Join
from kbs.experience.filters import Filter
from kbs.experience.index import ExperienceIndex
from kbs.experience.log import ExperienceLog, now_utc
from kbs.index.chroma import VectorIndex
from kbs.index.search import Query, SearchResult
from kbs.questions.question import understand
from kopt.services.engine import Engine
from kopt.services.experience.log import open_log
from kopt.services.knowledge import answers
from kopt.services.knowledge.log_search import search_log, searched_log
from kopt.services.settings import load_settings
from tests.conftest import Run
from tests.kbs.experience.records import experiment

pytestmark = pytest.mark.processes
SLOW = "why is my softmax slow"


@pytest.fixture
def engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine on an index of its own."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    return Engine(load_settings(workspace=home))


@pytest.fixture
def log(engine: Engine) -> ExperienceLog:
    return open_log(engine.settings)


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """What Chroma's collections are asked."""
    asked: list[dict[str, Any]] = []
    query = Collection.query

    def spy(self: Collection, *words: Any, **more: Any) -> Any:
        asked.append(more)
        return query(self, *words, **more)

    monkeypatch.setattr(Collection, "query", spy)
    return asked


def find(engine: Engine, text: str, **filters: list[str]) -> SearchResult:
    """A search as the next command makes it: nothing is kept of the one before."""
    fresh = Engine(engine.settings)
    found = answers.search(fresh, text, filters)
    assert (found.degraded, fresh.warnings) == ([], [])
    return found


def record_ids(found: SearchResult) -> list[str]:
    return [hit.passage.reference.partition("/")[2] for hit in found.records]


def test_a_search_and_a_question_ask_chroma(engine: Engine, queries: list[dict[str, Any]]) -> None:
    found = find(engine, SLOW)
    [wanted] = [one["n_results"] for one in queries]
    assert 60 <= wanted <= 180
    assert found.asked == [f"Chroma, {wanted} nearest of {vectors(engine)} vectors"]
    assert any("vectors" in hit.found_by for hit in found.hits)
    queries.clear()
    answer = answers.ask(Engine(engine.settings), answers.Asked("What is a shared memory bank conflict?")).answer
    assert queries
    assert any("Chroma" in line for line in answer.asked)


def test_one_search_finds_sections_and_passages(engine: Engine, queries: list[dict[str, Any]]) -> None:
    question = understand("why do I pad a shared memory tile to 33 columns", engine.terms)
    wanted = Query(filters={"kind": ["technique", "method"]}, count=3)
    found = engine.with_store(lambda store: engine.find_sections(store, question, wanted, 4), vectors=True)
    plain = engine.with_store(lambda store: engine.find(store, question, wanted), vectors=True)
    assert (found.degraded, engine.warnings) == ([], [])
    assert len(found.hits) == 4
    assert {hit.section.about["kind"][0] for hit in found.hits} <= {"technique", "method"}
    assert [(hit.passage.id, hit.score) for hit in found.passages.hits] == [(h.passage.id, h.score) for h in plain.hits]
    assert len(found.passages.hits) == 3
    assert len(queries) == 2
    for hit in found.hits:
        cited = hit.section.citation
        assert check_citation(cited, engine.library).status is Status.OK
        assert "asks:" not in cited.quote


def vectors(engine: Engine) -> int:
    with engine.index.open() as store:
        return store.vector_count()


def test_explain_says_what_was_asked(kopt: Callable[..., Run]) -> None:
    for command in ("search", "ask"):
        shown = kopt(command, "what is a bank conflict", "--explain").out
        assert re.search(r"Chroma, \d+ nearest of", shown)
        assert re.search(r"cosine 0\.\d+, asked 0\.[1-9]\d+, words", shown)
    data = kopt("search", SLOW, "--json").json["data"]
    assert re.match(r"Chroma, \d+ nearest of", data["asked"][0])


def test_one_search_finds_pages_and_records(engine: Engine, log: ExperienceLog, queries: list[dict[str, Any]]) -> None:
    one = experiment(optimization="Keep the rows of the softmax in registers.")
    other = experiment(optimization="Keep the rows of the softmax in shared memory.")
    log.append([one, other])
    log.mask(other.id, True, "another program ran")
    found = find(engine, "softmax rows in registers")
    assert record_ids(found) == [one.id]
    assert found.pages
    assert found.records[0].found_by == "vectors and words"
    assert len(queries) == 1


def made() -> dict[str, Experiment]:
    return {
        "softmax": experiment(dtype="fp16", methods=("tiling",), optimization="Tile the rows."),
        "matmul": experiment(op="matmul", kernel="gemm", gpu="h100-sxm", outcome="failed", speedup=None),
        "layernorm": experiment(op="layernorm", kernel="layernorm", gpu="a100-sxm-80gb", dtype="fp32"),
    }


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"kind": ["experiment"]}, {"softmax", "matmul", "layernorm"}),
        ({"kind": ["kernel"]}, set()),
        ({"operation": ["softmax"]}, {"softmax"}),
        ({"operation": ["softmax"], "kind": ["experiment", "kernel"]}, {"softmax"}),
        ({"dtype": ["fp16"]}, {"softmax"}),
        ({"dtype": ["fp16", "fp32"]}, {"softmax", "layernorm"}),
        ({"product": ["h100-sxm"]}, {"matmul"}),
        ({"method": ["tiling"]}, {"softmax"}),
        ({"outcome": ["failed"]}, {"matmul"}),
        ({"outcome": ["success"], "operation": ["matmul"]}, set()),
        ({"wiki": ["log"]}, {"softmax", "matmul", "layernorm"}),
        ({"wiki": ["gpu-wiki"]}, set()),
    ],
    ids=lambda value: str(sorted(value)) if isinstance(value, set) else str(value),
)
def test_filters_hold_for_pages_and_records(
    engine: Engine, log: ExperienceLog, queries: list[dict[str, Any]], filters: dict[str, list[str]], wanted: set[str]
) -> None:
    records = made()
    log.append([*records.values()])
    found = find(engine, SLOW, **filters)
    assert set(record_ids(found)) == {records[name].id for name in wanted}
    paged = not {"dtype", "method", "outcome"} & filters.keys() and filters.get("wiki") != ["log"]
    assert bool(found.pages) == (paged and filters.get("kind") != ["experiment"])
    assert len(queries) <= 4
    if set(filters) == {"kind"} or "gpu-wiki" in filters.get("wiki", ()):
        assert found.hits


def test_a_narrow_filter_names_the_passages_and_a_wide_one_asks_for_more(
    engine: Engine, log: ExperienceLog, queries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([*made().values()])
    wide = find(engine, SLOW, wiki=["gpu-wiki"])
    assert "ids" not in queries[0]
    assert queries[0]["n_results"] > 60
    queries.clear()
    monkeypatch.setattr("kbs.index.search.FAR", 100)
    narrow = find(engine, SLOW, kind=["experiment"])
    assert len(queries[-1]["ids"]) == queries[-1]["n_results"] == 3
    assert len(narrow.records) == 3
    assert wide.pages


def test_a_filter_that_nothing_has_is_an_error(engine: Engine) -> None:
    with pytest.raises(UsageError, match="no page has the outcome"):
        find(engine, SLOW, outcome=["splendid"])


def test_a_search_that_an_update_overtakes_is_made_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = find(engine, SLOW)
    rebuilt: list[bool] = []
    query = VectorIndex.query

    def late(self: VectorIndex, *words: Any, **more: Any) -> list[tuple[str, float]]:
        if not rebuilt:
            rebuilt.append(True)
            assert Engine(engine.settings).update(rebuild=True).degraded == ""
        return query(self, *words, **more)

    monkeypatch.setattr(VectorIndex, "query", late)
    assert find(engine, SLOW).hits == expected.hits
    assert rebuilt


# --- the log as it is now -------------------------------------------------------------------------------------------

ZORBL = "zorbl the frobnicated warps"


def in_log(engine: Engine, text: str) -> list[str]:
    fresh = Engine(engine.settings)
    entries, _ = search_log(fresh, open_log(engine.settings), text, Filter(), 5)
    assert fresh.warnings == []
    return [entry.experiment.id for entry in entries]


def test_a_record_is_found_by_the_next_command_until_it_is_masked(engine: Engine, log: ExperienceLog) -> None:
    assert record_ids(find(engine, ZORBL)) == in_log(engine, ZORBL) == []
    one = experiment(op="", kernel="zorbl.py", optimization=f"We {ZORBL}.", lesson="Warps like it.")
    log.append([one])
    assert record_ids(find(engine, ZORBL)) == in_log(engine, ZORBL) == [one.id]
    assert [entry.experiment.id for entry in searched_log(Engine(engine.settings)).search(ZORBL, 3)] == [one.id]
    question = "has anyone tried to zorbl the frobnicated warps"
    assert one.id in str(answers.ask(Engine(engine.settings), answers.Asked(question)).answer)
    log.mask(one.id, True, "another program ran")
    assert record_ids(find(engine, ZORBL)) == in_log(engine, ZORBL) == []
    assert one.id not in str(answers.ask(Engine(engine.settings), answers.Asked(question)).answer)
    masked, _ = search_log(Engine(engine.settings), log, ZORBL, Filter(masked=True), 5)
    assert [entry.experiment.id for entry in masked] == [one.id]
    log.mask(one.id, False, "measured again")
    assert record_ids(find(engine, ZORBL)) == in_log(engine, ZORBL) == [one.id]


def test_a_join_changes_what_a_record_tells(engine: Engine, log: ExperienceLog) -> None:
    one, two = experiment(optimization="Load wider."), experiment(optimization="Load wider.", lesson=f"Do {ZORBL}.")
    log.append([one, two])
    assert record_ids(find(engine, ZORBL, kind=["experiment"]))[0] == two.id
    join = Join(id=new_ulid(), time=now_utc(), joined=(one.id, two.id), why="the same")
    (log.files.root / "join.jsonl").write_text(join.model_dump_json() + "\n")
    found = find(engine, ZORBL, kind=["experiment"])
    assert record_ids(found) == [one.id]
    assert ZORBL in found.hits[0].passage.text
    (log.files.root / "join.jsonl").unlink()
    assert record_ids(find(engine, ZORBL, kind=["experiment"]))[0] == two.id


def test_a_new_index_of_the_log_is_taken_over(engine: Engine, log: ExperienceLog) -> None:
    first, second = experiment(optimization=f"{ZORBL} once"), experiment(optimization=f"{ZORBL} twice")
    log.append([first, second])
    assert set(record_ids(find(engine, ZORBL))) == {first.id, second.id}
    for file in engine.settings.home.glob("experience-*.sqlite*"):
        file.unlink()
    path = log.files.root / log.files.names()[0]
    path.write_text(first.model_dump_json() + "\n")
    assert record_ids(find(engine, ZORBL)) == in_log(engine, ZORBL) == [first.id]
    path.unlink()
    assert record_ids(find(engine, ZORBL)) == []


def test_a_log_that_cannot_be_read_is_said_and_its_records_stay(
    engine: Engine, log: ExperienceLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = experiment(optimization=ZORBL)
    log.append([one])
    find(engine, ZORBL)

    def fails(*_: object) -> None:
        raise UsageError("the log is locked", code="index_busy", hint="Wait.")

    monkeypatch.setattr(ExperienceIndex, "__enter__", fails)
    fresh = Engine(engine.settings)
    found = answers.search(fresh, ZORBL, {})
    assert record_ids(found) == [one.id]
    assert fresh.warnings == ["the experience log could not be read: the log is locked"]
