"""Bringing the index up to date: what changed is read and embedded again, and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest.vectors
from ingest.carried import carried_vectors, write_carried_vectors
from ingest.progress import UpdateResult
from ingest.update import Index, problem_count
from kbs.common.errors import IndexBusyError
from kbs.common.ulid import new_ulid
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import Join
from kbs.experience.log import ExperienceLog, now_utc
from kbs.index.chroma import VectorIndex, VectorIndexError, Writer
from kbs.index.encoder import Vectors
from kbs.index.passages import Chosen
from kbs.index.search import Query
from kbs.index.sections import find_sections
from kbs.index.sqlite_file import DamagedIndexError, index_lock
from kbs.index.store import Store
from tests.kbs.experience.records import experiment
from wiki.library import Wiki, open_wiki

MakePage = Callable[..., str]


class WordHashes:
    """An encoder whose vectors are made from the text's hash; remembers what it was asked for."""

    def __init__(self, identity: str = "hashes:1") -> None:
        self.identity = identity
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:  # noqa: ARG002 - an encoder's
        self.asked += texts
        made = [np.frombuffer(hashlib.sha256((self.identity + t).encode()).digest(), np.uint8) for t in texts]
        vectors = np.stack(made).astype(np.float32) - 127.5
        lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / lengths


class Team:
    """A wiki on disk, its index, and an encoder."""

    def __init__(self, root: Path, home: Path, page: MakePage) -> None:
        self.root, self.page = root, page
        self.index = Index(home)
        self.encoder = WordHashes()
        for name in ("a", "b", "c"):
            self.write(name, f"# {name}\n\nLead of {name}.\n\n## More\n\nText of {name}.")

    def write(self, name: str, body: str, **more: str) -> None:
        file = self.root / "technique" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.page(f"technique/{name}", body, **more))

    @property
    def wiki(self) -> Wiki:
        return open_wiki(self.root)

    def update(self, wikis: Sequence[Wiki] = (), **more: Any) -> UpdateResult:
        self.encoder.asked.clear()
        return self.index.update(wikis or [self.wiki], vocabulary(), self.encoder, **more)

    def texts(self) -> list[str]:
        with self.index.open() as store:
            return sorted(p.text for p in store.passages(store.passage_ids()).values())

    def assert_sound(self, identity: str = "", *, pending: int = 0) -> None:
        """SQLite and Chroma hold the same passages, and Chroma finds every one."""
        model = identity or self.encoder.identity
        with self.index.open() as store:
            assert store.check() == ""
            assert store.meta("vector_model") == model
            assert store.pending_count() == pending
            have = dict(store.vectors(model))
            ids = {str(row[0]) for row in store.db.execute("SELECT passage FROM passages")}
            vectors, known = self.index.vectors(store), self.index.known(store)
        assert set(have) == ids
        vectors.check(known)
        assert vectors.ids() == ids
        near = dict(vectors.query(np.frombuffer(next(iter(have.values())), np.float32), len(ids), known))
        assert set(near) == ids
        assert len(list((self.index.folder / "chroma").iterdir())) == 1, "the collection before is gone"


def titles(store: Store) -> dict[str, str]:
    """page id → title of every visible page."""
    return dict(store.db.execute("SELECT page_id, title FROM pages WHERE hidden = 0"))


@pytest.fixture
def team(tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch) -> Team:
    def nothing_carried(model: str, keys: set[str]) -> Mapping[str, bytes]:
        return {}

    monkeypatch.setattr(ingest.vectors, "carried_vectors", nothing_carried)
    return Team(tmp_path / "team", tmp_path / "home", page)


def test_a_new_index_holds_every_page(team: Team) -> None:
    result = team.update()
    assert (result.pages_read, result.pages_removed, result.passages, result.embedded) == (3, 0, 6, 6)
    assert (result.generation, result.degraded, result.set_aside, result.problems) == (1, "", None, {})
    assert team.texts() == sorted([f"Lead of {n}." for n in "abc"] + [f"Text of {n}." for n in "abc"])
    team.assert_sound()


def test_nothing_changed_does_nothing(team: Team) -> None:
    team.update()
    with team.index.open() as store:
        assert team.index.is_fresh(store, [team.wiki], team.encoder.identity)
    result = team.update()
    assert (result.pages_read, result.embedded, result.generation, team.encoder.asked) == (0, 0, 1, [])


def test_a_touched_file_is_read_and_not_embedded(team: Team) -> None:
    team.update()
    os.utime(team.root / "technique/a.md", (1, 1))
    with team.index.open() as store:
        assert not team.index.is_fresh(store, [team.wiki], team.encoder.identity)
    result = team.update()
    assert (result.pages_read, result.generation, team.encoder.asked) == (0, 1, [])
    with team.index.open() as store:
        assert team.index.is_fresh(store, [team.wiki], team.encoder.identity)


ASKED = "# b\n\nLead of b.\n\n## How do I use b?\n<!-- asks: {} -->\n\nText of b."


def test_a_section_with_asks_has_a_vector_of_its_heading_and_of_each(team: Team) -> None:
    team.update()
    before = team.texts()
    team.write("b", ASKED.format("use of b · b in practice"))
    result = team.update()
    assert sorted(team.encoder.asked) == [
        *("How do I use b?", "b > How do I use b?\nText of b.", "b in practice", "use of b"),
    ]
    assert (result.passages, team.texts()) == (6, before)
    with team.index.open() as store:
        assert (store.asked_count(), store.vector_count()) == (3, 9)
        section = store.section("technique/b", 1)
        assert section is not None
        assert (section.heading, section.asks) == ("How do I use b?", ("use of b", "b in practice"))
    team.assert_sound()
    team.write("b", ASKED.format("b in practice · when b"))
    assert team.update().passages == 6
    assert team.encoder.asked == ["when b"]
    team.assert_sound()
    team.write("b", "# b\n\nLead of b.")
    assert (team.update().passages, team.encoder.asked) == (5, [])
    with team.index.open() as store:
        assert store.asked_count() == 0
    team.assert_sound()


def test_the_same_ask_in_two_sections_has_one_vector_and_finds_both(team: Team) -> None:
    for name in ("b", "c"):
        team.write(name, f"# {name}\n<!-- asks: what is it -->\n\nLead of {name}.")
    assert team.update().passages == 4
    assert team.encoder.asked.count("what is it") == 1
    with team.index.open() as store:
        vector = np.frombuffer(dict(store.vectors(team.encoder.identity))[store.vector_ids()[-1]], np.float32)
        query = Query("zzz", vector)
        found = find_sections(store, query, vocabulary(), team.encoder.identity, None, 2)
    assert {(hit.section.page_id, round(hit.asked, 5)) for hit in found.hits} == {
        ("technique/b", 1),
        ("technique/c", 1),
    }
    team.assert_sound()


def test_a_changed_page_replaces_its_passages_and_embeds_the_new_ones(team: Team) -> None:
    team.update()
    team.write("b", "# b\n\nLead of b.\n\n## More\n\nAnother text.")
    result = team.update()
    assert (result.pages_read, result.embedded, result.generation) == (1, 1, 2)
    assert team.encoder.asked == ["b > More\nAnother text."]
    assert "Text of b." not in team.texts()
    assert "Another text." in team.texts()
    team.assert_sound()


def test_moved_lines_keep_their_vectors_and_get_new_lines(team: Team) -> None:
    team.update()
    with team.index.open() as store:
        before = store.passages(store.passage_ids())
    team.write("a", "\n\n# a\n\n\n\nLead of a.\n\n## More\n\nText of a.")
    result = team.update()
    assert (result.pages_read, team.encoder.asked) == (1, [])
    with team.index.open() as store:
        after = store.passages(store.passage_ids())
    assert after.keys() == before.keys()
    moved = [id for id in after if after[id].citation.line_start != before[id].citation.line_start]
    assert {after[id].page_id for id in moved} == {"technique/a"}
    lines = team.wiki.read("technique/a.md")
    assert lines is not None
    for id in moved:
        assert lines.decode().split("\n")[after[id].citation.line_start - 1] == after[id].text
    team.assert_sound()


def test_a_removed_page_disappears(team: Team) -> None:
    team.update()
    (team.root / "technique/a.md").unlink()
    result = team.update()
    assert (result.pages_removed, result.pages_read, result.passages) == (1, 0, 4)
    with team.index.open() as store:
        assert "technique/a" not in titles(store)
        assert store.match_words(["a"], 10) == []
        assert store.db.execute("SELECT count(*) FROM embeddings WHERE unused IS NULL").fetchone()[0] == 4
    team.assert_sound()


def test_a_removed_wiki_disappears(team: Team, tmp_path: Path, page: MakePage) -> None:
    other = Team(tmp_path / "other", tmp_path / "unused", page)
    team.update([team.wiki, other.wiki])
    result = team.update()
    assert result.pages_removed == 3
    with team.index.open() as store:
        assert [name for name, *_ in store.wikis()] == ["team"]
    team.assert_sound()


def test_a_broken_page_is_told_with_its_line_and_comes_back_when_mended(team: Team) -> None:
    (team.root / "technique/b.md").write_text("---\nid: [\n---\n")
    result = team.update()
    assert list(result.problems) == ["team/technique/b.md"]
    assert problem_count(result.problems) == (1, 0)
    assert result.passages == 4
    with team.index.open() as store:
        assert [(w, p, found[0]["line"]) for w, p, found in store.broken()] == [("team", "technique/b.md", 3)]
    assert team.update().pages_read == 0
    team.write("b", "# b\n\nLead of b.")
    assert team.update().problems == {}
    with team.index.open() as store:
        assert store.broken() == []
    team.assert_sound()


def test_a_page_that_breaks_is_not_answered_from_any_more(team: Team) -> None:
    team.update()
    (team.root / "technique/b.md").write_bytes(b"\xff")
    team.update()
    assert not any("of b" in text for text in team.texts())
    team.assert_sound()


def test_a_page_that_is_just_being_saved_says_what_it_said(team: Team) -> None:
    team.update()
    file = team.root / "technique/b.md"
    file.write_bytes(b"")  # as an editor has it between emptying and writing a file
    team.update()
    assert "Lead of b." in team.texts()
    with team.index.open() as store:
        assert not team.index.is_fresh(store, [team.wiki], team.encoder.identity), "it is looked at again"
    team.write("b", "# b\n\nLater lead of b.")
    team.update()
    assert "Later lead of b." in team.texts()
    file.write_bytes(b"")
    os.utime(file, (1, 1))
    assert team.update().problems, "a page that stays empty is a broken one"
    assert not any("of b" in text for text in team.texts())
    team.assert_sound()


def test_a_later_wiki_overrides_a_page_and_gives_it_back(team: Team, tmp_path: Path, page: MakePage) -> None:
    other = Team(tmp_path / "other", tmp_path / "unused", page)
    for name in ("b", "c"):
        (other.root / f"technique/{name}.md").unlink()
    other.write("a", "# a\n\nThe other text.", title="Another a")
    team.update([team.wiki, other.wiki])
    with team.index.open() as store:
        assert store.overrides() == [("technique/a", "other", "team")]
        assert titles(store)["technique/a"] == "Another a"
        passages = store.passages(store.passage_ids())
        assert {p.citation.wiki for p in passages.values() if p.page_id == "technique/a"} == {"other"}
        assert store.match_words(["lead"], 10) != []
        assert all(id in passages for id, _ in store.match_words(["lead"], 10))
        assert store.hides()
    team.assert_sound()
    team.update([other.wiki, team.wiki])
    with team.index.open() as store:
        assert store.overrides() == [("technique/a", "team", "other")]
    team.update()
    assert "Lead of a." in team.texts()
    team.assert_sound()


def unused(team: Team) -> int:
    with team.index.open() as store:
        return int(store.db.execute("SELECT count(*) FROM embeddings WHERE unused IS NOT NULL").fetchone()[0])


def test_another_model_embeds_all_again_and_the_first_one_can_come_back(team: Team) -> None:
    team.update()
    team.encoder = WordHashes("hashes:2")
    with team.index.open() as store:
        assert not team.index.is_fresh(store, [team.wiki], "hashes:2")
    result = team.update()
    assert (result.pages_read, result.embedded, unused(team)) == (0, 6, 6)
    team.assert_sound("hashes:2")
    team.encoder = WordHashes("hashes:1")
    assert (team.update().embedded, unused(team)) == (0, 6)
    team.assert_sound("hashes:1")


def test_a_wiki_that_comes_back_within_thirty_days_is_not_embedded_again(
    team: Team, tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Team(tmp_path / "other", tmp_path / "unused", page)
    for name in ("a", "b", "c"):
        other.write(name, f"# {name}\n\nOther words of {name}.")
    both = [team.wiki, other.wiki]
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    assert team.update(both).embedded == 9
    team.update()
    assert unused(team) == 3
    now += ingest.vectors.KEPT_UNUSED - 1
    team.update()
    assert unused(team) == 3
    assert team.update(both).embedded == 0
    assert unused(team) == 0
    team.assert_sound()
    team.update()
    now += ingest.vectors.KEPT_UNUSED + 1
    team.write("a", "# a\n\nLead of a.")
    team.update()
    assert unused(team) == 1, "that of the text that has just gone"
    assert team.update(both).embedded == 3


def test_no_more_vectors_than_the_limit_are_kept_for_nothing(
    team: Team, tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Team(tmp_path / "other", tmp_path / "unused", page)
    other.write("a", "# a\n\nOther words of a.")
    monkeypatch.setattr(ingest.vectors, "MOST_UNUSED", 2)
    team.update([team.wiki, other.wiki])
    team.update([other.wiki])
    assert unused(team) == 2
    team.assert_sound()


def test_without_a_model_words_are_indexed_and_vectors_follow_later(team: Team) -> None:
    result = team.index.update([team.wiki], vocabulary(), None)
    assert (result.passages, result.embedded) == (6, 0)
    with team.index.open() as store:
        assert store.meta("vector_model") == ""
        assert store.match_words(["lead"], 10)
        assert team.index.is_fresh(store, [team.wiki], None)
        assert not team.index.is_fresh(store, [team.wiki], team.encoder.identity)
    assert team.update().embedded == 6
    team.assert_sound()


def test_rebuild_reads_every_page_and_embeds_no_text_again(team: Team) -> None:
    team.update()
    result = team.update(rebuild=True)
    assert (result.pages_read, result.set_aside, team.encoder.asked) == (3, None, [])
    team.assert_sound()


def test_a_damaged_index_is_set_aside_and_built_again(team: Team) -> None:
    team.update()
    (team.index.folder / "index.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(DamagedIndexError):
        team.index.open()
    result = team.update()
    assert result.set_aside is not None
    assert (result.set_aside / "index.sqlite").read_bytes().startswith(b"garbage")
    assert result.passages == 6
    team.assert_sound()


@pytest.mark.parametrize("damage", ["folder", "file", "garbage"])
def test_an_ordinary_update_mends_chroma(team: Team, damage: str) -> None:
    team.update()
    (collection,) = (team.index.folder / "chroma").iterdir()
    if damage == "folder":
        shutil.rmtree(collection.parent)
    elif damage == "file":
        (collection / "chroma.sqlite3").unlink()
    else:
        (collection / "chroma.sqlite3").write_bytes(b"garbage " * 1000)
    result = team.update()
    assert (result.degraded, team.encoder.asked) == ("", [])
    team.assert_sound()


def test_where_chroma_fails_the_vectors_are_kept_and_indexed_later(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: VectorIndex, *_: object) -> None:
        raise VectorIndexError("Chroma is away", code="chroma_failed", hint="wait")

    with monkeypatch.context() as patched:
        patched.setattr(VectorIndex, "filling", fails)
        result = team.update()
        assert result.degraded == "Chroma is away"
        assert team.update().degraded == "Chroma is away"
    with team.index.open() as store:
        assert store.meta("vector_model") == team.encoder.identity
        assert store.pending_count() == 6
        assert len(dict(store.vectors(team.encoder.identity))) == 6
    result = team.update()
    assert (result.degraded, team.encoder.asked) == ("", [])
    team.assert_sound()
    team.write("b", "# b\n\nLead of b.\n\n## More\n\nAnother text.")
    with monkeypatch.context() as patched:
        patched.setattr(VectorIndex, "writing", fails)
        assert team.update().degraded == "Chroma is away"
    with team.index.open() as store:
        assert store.pending_count() == 3, "the passages of the page, and the one that went"
        assert not team.index.is_fresh(store, [team.wiki], team.encoder.identity)
    assert (team.update().degraded, team.encoder.asked) == ("", [])
    team.assert_sound()


def test_updates_that_did_not_end_leave_the_collection_known(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise VectorIndexError("Chroma is away", code="chroma_failed", hint="wait")

    team.update()
    with team.index.open() as store:
        collection = store.meta("collection")
    team.write("b", "# b\n\nAnother text.")
    for step in ("kbs.index.chroma.Writer.put", "kbs.index.chroma._claim", "kbs.index.chroma.Writer.put"):
        with monkeypatch.context() as patched:
            patched.setattr(step, fails)
            assert team.update().degraded == "Chroma is away"
    assert team.update().degraded == ""
    with team.index.open() as store:
        assert (store.meta("collection"), store.meta("vector_next")) == (collection, "")
    team.assert_sound()


def test_an_update_writes_to_chroma_what_changed_and_nothing_else(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.update()
    put: list[str] = []
    removed: list[str] = []

    class Spy(Writer):
        def put(self, vectors: Sequence[tuple[str, bytes]]) -> None:
            put.extend(id for id, _ in vectors)
            super().put(vectors)

        def remove(self, ids: Sequence[str]) -> None:
            removed.extend(ids)
            super().remove(ids)

    monkeypatch.setattr("kbs.index.chroma.Writer", Spy)
    with team.index.open() as store:
        before, collection = set(store.passage_ids()), store.meta("collection")
    team.write("b", "# b\n\nLead of b.\n\n## More\n\nAnother text.")
    team.update()
    with team.index.open() as store:
        after, of_page = set(store.passage_ids()), set(store.passage_ids("technique/b"))
        assert store.meta("collection") == collection
    assert (set(put), set(removed)) == (of_page, before - after)
    assert (len(put), len(removed)) == (2, 1)
    team.update()
    assert (len(put), len(removed)) == (2, 1)
    team.update(rebuild=True)
    assert set(put[2:]) == after
    with team.index.open() as store:
        assert store.meta("collection") != collection
    team.assert_sound()


# --- the experience log -----------------------------------------------------------------------------------------------


@pytest.fixture
def log(tmp_path: Path) -> ExperienceLog:
    return ExperienceLog(tmp_path / "log", tmp_path / "home")


def take(team: Team, log: ExperienceLog | None, **more: Any) -> UpdateResult:
    if log is None:
        return team.update(**more)
    with log.index() as index:
        return team.update(log=index, **more)


def records(team: Team) -> dict[str, list[str]]:
    """id of a record that is not masked → what is told of it."""
    with team.index.open() as store:
        chosen = Chosen({"kind": ["experiment"]})
        found: dict[str, list[str]] = {}
        for passage in store.passages(store.passage_ids(chosen=chosen), chosen).values():
            found.setdefault(passage.page_id, []).append(passage.text)
        return found


def test_records_of_the_log_are_indexed_beside_the_pages(team: Team, log: ExperienceLog) -> None:
    one, two = experiment(lesson="Wider loads pay."), experiment(op="matmul", kernel="gemm")
    log.append([one, two])
    result = take(team, log)
    assert (result.pages_read, result.records, result.passages, result.embedded) == (3, 2, 9, 9)
    assert set(records(team)) == {f"log/{one.id}", f"log/{two.id}"}
    assert len(records(team)[f"log/{one.id}"]) == 2
    with team.index.open() as store:
        assert (store.record_count(), store.counts()["pages"]) == (2, 3)
        assert [name for name, *_ in store.wikis()] == ["team", "log"]
    team.assert_sound()
    assert (take(team, log).records, team.encoder.asked) == (0, [])


def test_only_the_records_that_changed_are_read_again(team: Team, log: ExperienceLog) -> None:
    first, second = experiment(lesson="One lesson."), experiment(optimization="Unroll the loop.")
    log.append([first, second])
    take(team, log)
    third = experiment(optimization="Split the sum.")
    log.append([third])
    with log.index() as index, team.index.open() as store:
        mark, _ = index.changed("")
        assert not team.index.is_fresh(store, [team.wiki], team.encoder.identity, mark)
    result = take(team, log)
    assert (result.records, result.pages_read) == (1, 0)
    assert team.encoder.asked == [text for text in team.encoder.asked if "Split the sum" in text] != []
    log.mask(second.id, True, "noisy")
    assert (take(team, log).embedded, set(records(team))) == (0, {f"log/{first.id}", f"log/{third.id}"})
    log.mask(second.id, False, "measured again")
    assert (take(team, log).embedded, len(records(team))) == (0, 3)
    join = Join(id=new_ulid(), time=now_utc(), joined=(first.id, second.id), why="the same")
    (log.files.root / "join.jsonl").write_text(join.model_dump_json() + "\n")
    take(team, log)
    assert set(records(team)) == {f"log/{first.id}", f"log/{third.id}"}
    team.assert_sound()


def test_another_index_of_the_log_is_taken_over_and_embeds_nothing(team: Team, log: ExperienceLog) -> None:
    one = experiment(lesson="One lesson.")
    log.append([one])
    take(team, log)
    before = records(team)
    with log.index() as index:
        index.path.unlink()
    two = experiment(optimization="Split the sum.")
    log.append([two])
    result = take(team, log)
    assert (result.records, result.embedded) == (2, 1)
    assert records(team) == before | {f"log/{two.id}": records(team)[f"log/{two.id}"]}
    team.assert_sound()


def test_a_log_that_cannot_be_read_keeps_its_records_and_one_that_is_gone_does_not(
    team: Team, log: ExperienceLog
) -> None:
    log.append([experiment()])
    take(team, log)
    take(team, None, keep_records=True)
    assert len(records(team)) == 1
    take(team, None)
    assert records(team) == {}
    with team.index.open() as store:
        assert [name for name, *_ in store.wikis()] == ["team"]
        assert store.record_count() == 0
    team.assert_sound()


def test_a_declared_product_goes_with_its_page(team: Team) -> None:
    file = team.root / "hardware/my-gpu.md"
    file.parent.mkdir()
    file.write_text(team.page("hardware/my-gpu", "# My GPU\n\nLead.", title="My GPU", more="vendor: nvidia"))
    team.update()
    with team.index.open() as store:
        assert [product["id"] for product in store.products()] == ["my-gpu"]
    team.write("a", "# a\n\nAnother lead.")
    team.update()
    with team.index.open() as store:
        assert [product["id"] for product in store.products()] == ["my-gpu"]
    file.unlink()
    team.update()
    with team.index.open() as store:
        assert store.products() == []


def test_one_writer_at_a_time_and_the_holder_is_named(team: Team) -> None:
    with index_lock(team.index.home, 0.0), pytest.raises(IndexBusyError, match=f"process {os.getpid()} on "):
        team.update()
    assert team.update().passages == 6


def test_progress_tells_each_step(team: Team) -> None:
    told: list[tuple[str, int, int]] = []
    team.index.update(
        [team.wiki], vocabulary(), team.encoder, progress=lambda step, done, total: told.append((step, done, total))
    )
    assert [step for step, done, total in told if done == total] == [
        *("reading pages", "embedding texts", "indexing vectors")
    ]


def test_carried_vectors_are_used_in_place_of_embedding(
    tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(tmp_path / "team", tmp_path / "home", page)
    encoder = team.encoder
    monkeypatch.setattr("ingest.carried.vectors_file", lambda: tmp_path / "data" / "vectors.npz")
    monkeypatch.setattr("ingest.carried.bundled_wiki", lambda: team.wiki)
    monkeypatch.setattr("ingest.carried.base_records", tuple)
    monkeypatch.setattr("ingest.carried.DefaultEncoder", lambda: encoder)
    assert write_carried_vectors() == 6
    result = team.update()
    assert (result.carried, result.embedded, encoder.asked) == (6, 0, [])
    with team.index.open() as store:
        for id, data in store.vectors(encoder.identity):
            text = store.passages([id])[id].embedded
            exact = encoder.encode([text])[0]
            assert float(np.frombuffer(data, np.float32) @ exact) == pytest.approx(1.0, abs=1e-3)
    team.assert_sound()
    assert carried_vectors("another model", {"0" * 64}) == {}
    assert carried_vectors(encoder.identity, {"0" * 64}) == {}


def test_progress_counts_what_is_embedded_and_nothing_that_was_carried(
    tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(tmp_path / "team", tmp_path / "home", page)
    team.write("new", "# New\n\nA sentence that no vector came with.")
    fresh: list[str] = []

    def all_but_the_new(model: str, keys: set[str]) -> Mapping[str, bytes]:
        with team.index.open() as store:
            texts = dict(store.missing_embeddings(model, 1000))
        fresh.extend(key for key in keys if "no vector came with" in texts[key])
        kept = sorted(keys - set(fresh))
        vectors = team.encoder.encode([texts[key] for key in kept])
        return dict(zip(kept, (vector.tobytes() for vector in vectors), strict=True))

    monkeypatch.setattr(ingest.vectors, "carried_vectors", all_but_the_new)
    told: list[tuple[str, int, int]] = []
    team.index.update(
        [team.wiki], vocabulary(), team.encoder, progress=lambda step, done, total: told.append((step, done, total))
    )
    count = len(fresh)
    assert count
    assert [one for one in told if one[0] == "embedding texts"] == [
        *(("embedding texts", 0, count), ("embedding texts", count, count))
    ]
    team.assert_sound()


@pytest.mark.parametrize("content", [None, b"", b"garbage", b"PK\x03\x04 no archive"])
def test_damaged_carried_vectors_are_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "vectors.npz"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr("ingest.carried.vectors_file", lambda: file)
    assert carried_vectors("hashes:1", {"0" * 64}) == {}
