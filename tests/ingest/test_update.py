"""Bringing the index up to date: what changed is read and embedded again, and nothing else."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import ingest.update
from ingest.carried import carried_vectors, write_carried_vectors
from ingest.update import Index, UpdateResult, problem_count
from kbs.common.errors import IndexBusyError
from kbs.evidence.vocabulary import vocabulary
from kbs.index.chroma import VectorIndex, VectorIndexError
from kbs.index.encoder import Vectors
from kbs.index.sqlite_file import DamagedIndexError, index_lock
from kbs.index.store import Store
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
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


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

    def update(self, wikis: Sequence[Wiki] = (), **more: bool) -> UpdateResult:
        self.encoder.asked.clear()
        return self.index.update(wikis or [self.wiki], vocabulary(), self.encoder, **more)

    def texts(self) -> list[str]:
        with self.index.open() as store:
            return sorted(p.text for p in store.passages(store.passage_ids()).values())

    def assert_sound(self, identity: str = "") -> None:
        """SQLite and Chroma hold the same passages, and Chroma finds every one."""
        model = identity or self.encoder.identity
        with self.index.open() as store:
            assert store.check() == ""
            assert store.meta("vector_model") == model
            assert self.index.vectors_current(store)
            have = dict(store.vectors(model))
            ids = {str(row[0]) for row in store.db.execute("SELECT passage FROM passages")}
        assert set(have) == ids
        vectors = self.index.vectors(model)
        assert vectors.ids() == ids
        near = vectors.query(np.frombuffer(next(iter(have.values())), np.float32), len(ids))
        assert {id for id, _ in near} == ids


def titles(store: Store) -> dict[str, str]:
    """page id → title of every visible page."""
    return dict(store.db.execute("SELECT page_id, title FROM pages WHERE hidden = 0"))


@pytest.fixture
def team(tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch) -> Team:
    def nothing_carried(model: str, keys: set[str]) -> Mapping[str, bytes]:
        return {}

    monkeypatch.setattr(ingest.update, "carried_vectors", nothing_carried)
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
        assert store.db.execute("SELECT count(*) FROM embeddings").fetchone()[0] == 4
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
    team.assert_sound()
    team.update([other.wiki, team.wiki])
    with team.index.open() as store:
        assert store.overrides() == [("technique/a", "team", "other")]
    team.update()
    assert "Lead of a." in team.texts()
    team.assert_sound()


def test_another_model_embeds_all_again_and_keeps_nothing_of_the_first(team: Team) -> None:
    team.update()
    team.encoder = WordHashes("hashes:2")
    with team.index.open() as store:
        assert not team.index.is_fresh(store, [team.wiki], "hashes:2")
    result = team.update()
    assert (result.pages_read, result.embedded) == (0, 6)
    with team.index.open() as store:
        assert {row[0] for row in store.db.execute("SELECT model FROM embeddings")} == {"hashes:2"}
    team.assert_sound("hashes:2")
    team.encoder = WordHashes("hashes:1")
    assert team.update().embedded == 6
    team.assert_sound("hashes:1")


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
    chroma = team.index.folder / "chroma"
    if damage == "folder":
        shutil.rmtree(chroma)
    elif damage == "file":
        (chroma / "chroma.sqlite3").unlink()
    else:
        (chroma / "chroma.sqlite3").write_bytes(b"garbage " * 1000)
    result = team.update()
    assert (result.degraded, team.encoder.asked) == ("", [])
    team.assert_sound()


def test_where_chroma_fails_the_vectors_are_kept_and_indexed_later(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: VectorIndex, wanted: Mapping[str, bytes]) -> int:
        raise VectorIndexError("Chroma is away", code="chroma_failed", hint="wait")

    with monkeypatch.context() as patched:
        patched.setattr(VectorIndex, "sync", fails)
        result = team.update()
        assert result.degraded == "Chroma is away"
        assert team.update().degraded == "Chroma is away"
    with team.index.open() as store:
        assert store.meta("vector_model") == team.encoder.identity
        assert not team.index.vectors_current(store)
        assert len(dict(store.vectors(team.encoder.identity))) == 6
    result = team.update()
    assert (result.degraded, team.encoder.asked) == ("", [])
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
        *("reading pages", "embedding passages", "indexing vectors")
    ]


def test_carried_vectors_are_used_in_place_of_embedding(
    tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = Team(tmp_path / "team", tmp_path / "home", page)
    encoder = team.encoder
    monkeypatch.setattr("ingest.carried.vectors_file", lambda: tmp_path / "data" / "vectors.npz")
    monkeypatch.setattr("ingest.carried.bundled_wiki", lambda: team.wiki)
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


@pytest.mark.parametrize("content", [None, b"", b"garbage", b"PK\x03\x04 no archive"])
def test_damaged_carried_vectors_are_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    file = tmp_path / "vectors.npz"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr("ingest.carried.vectors_file", lambda: file)
    assert carried_vectors("hashes:1", {"0" * 64}) == {}
