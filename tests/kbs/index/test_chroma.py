"""Chroma, the vector index: a collection of its own for each index, which only its index knows."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kbs.common.errors import ConfigurationError
from kbs.index.chroma import OPEN, Known, LostCollectionError, VectorIndex, VectorIndexError, close_all
from kbs.index.chroma_server import Server
from kbs.index.encoder import Vectors

ABOUT = {"model": "m"}
FIRST = Known(("first",), 0)


def made(count: int, seed: int = 7, dims: int = 16) -> dict[str, bytes]:
    vectors = np.random.default_rng(seed).standard_normal((count, dims)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {f"p{number:04}": vector.tobytes() for number, vector in enumerate(vectors)}


def read(data: bytes) -> Vectors:
    return np.frombuffer(data, np.float32)


def fill(index: VectorIndex, vectors: Mapping[str, bytes], token: str = "first") -> None:
    index.folder.parent.mkdir(exist_ok=True)
    with index.filling(ABOUT, token) as writer:
        writer.put(list(vectors.items()))


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", "ONE")


def test_query_finds_the_nearest_with_their_cosine(index: VectorIndex) -> None:
    vectors = made(60)
    fill(index, vectors)
    asked = read(vectors["p0007"])
    found = index.query(asked, 5, FIRST)
    exact = sorted(((float(read(v) @ asked), id) for id, v in vectors.items()), reverse=True)[:5]
    assert [id for id, _ in found] == [id for _, id in exact]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for cosine, _ in exact], abs=1e-5)
    assert found[0][0] == "p0007"
    chosen = sorted(vectors)[10:20]
    there = index.query(asked, 3, FIRST, chosen)
    assert [id for id, _ in there] == sorted(chosen, key=lambda id: -float(read(vectors[id]) @ asked))[:3]


def test_one_thread_closes_when_the_query_of_another_is_over(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = made(10)
    fill(index, vectors)
    asked = read(vectors["p0003"])
    index.query(asked, 1, FIRST)
    there = OPEN[index.place, index.name]
    under_way, go_on, order = threading.Event(), threading.Event(), list[str]()
    query, close = there.collection.query, there.client.close

    def slow_query(**words: Any) -> Any:
        under_way.set()
        assert go_on.wait(30)
        order.append("asked")
        return query(**words)

    def noted_close() -> None:
        order.append("closed")
        close()

    monkeypatch.setattr(there, "collection", SimpleNamespace(query=slow_query))
    monkeypatch.setattr(there.client, "close", noted_close)
    with ThreadPoolExecutor(2) as threads:
        found = threads.submit(index.query, asked, 1, FIRST)
        assert under_way.wait(30)
        closed = threads.submit(close_all)
        with pytest.raises(TimeoutError):
            closed.result(0.2)
        go_on.set()
        assert found.result(30)[0][0] == "p0003"
        closed.result(30)
    assert order == ["asked", "closed"]
    assert not OPEN
    assert index.query(asked, 1, FIRST)[0][0] == "p0003"


def test_what_is_changed_is_changed_and_the_rest_stays(index: VectorIndex) -> None:
    vectors = made(60)
    fill(index, vectors)
    assert index.ids() == vectors.keys()
    with index.writing(FIRST, "second") as writer:
        writer.put([("p0003", vectors["p0004"]), ("new", vectors["p0000"])])
        writer.remove(["p0001", "p0002", "never there"])
    assert index.ids() == vectors.keys() - {"p0001", "p0002"} | {"new"}
    found = dict(index.query(read(vectors["p0004"]), 2, Known(("second",), 59)))
    assert found == {"p0003": pytest.approx(1, abs=1e-5), "p0004": pytest.approx(1, abs=1e-5)}


def test_a_reader_sees_what_was_written_since_it_opened_the_collection(index: VectorIndex, tmp_path: Path) -> None:
    vectors = made(10)
    fill(index, vectors)
    reader = VectorIndex(tmp_path / "chroma", "ONE")
    assert len(reader.query(read(vectors["p0003"]), 20, FIRST)) == 10
    with index.writing(FIRST, "second") as writer:
        writer.put([("new", vectors["p0003"])])
    assert "new" in dict(reader.query(read(vectors["p0003"]), 2, Known(("second",), 11)))


def test_a_collection_of_another_index_is_not_touched(index: VectorIndex) -> None:
    vectors = made(5)
    fill(index, vectors)
    mine, other = FIRST, Known(("a token", "that is not there"), 0)
    for use in (
        lambda: index.query(read(vectors["p0000"]), 1, other),
        lambda: index.check(other),
        lambda: index.writing(other, "third").__enter__(),
    ):
        with pytest.raises(LostCollectionError) as caught:
            use()
        assert caught.value.code == "chroma_foreign"
        assert caught.value.hint
    index.check(mine)
    assert index.ids() == vectors.keys()


def test_a_collection_that_another_index_took_while_it_was_written_is_lost(index: VectorIndex) -> None:
    vectors = made(5)
    fill(index, vectors)

    def write() -> None:
        with index.writing(FIRST, "second") as writer:
            writer.collection.modify(metadata={**ABOUT, "token": "another's"})

    with pytest.raises(LostCollectionError):
        write()


def test_a_token_that_was_begun_is_known_too(index: VectorIndex) -> None:
    vectors = made(5)
    fill(index, vectors)

    def interrupted() -> None:
        with index.writing(FIRST, "second") as writer:
            writer.put([("new", vectors["p0000"])])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    both = Known(("first", "second"), 5)
    assert len(index.query(read(vectors["p0000"]), 10, both)) == 6
    with pytest.raises(LostCollectionError):
        index.check(FIRST)
    with index.writing(both, "third") as writer:
        writer.remove(["new"])
    assert index.ids() == vectors.keys()


def test_a_missing_index_is_said_to_be_and_is_not_made(index: VectorIndex) -> None:
    with pytest.raises(LostCollectionError) as caught:
        index.query(np.zeros(16, np.float32), 1, FIRST)
    assert caught.value.code == "chroma_missing_index"
    assert not index.folder.exists()


def test_an_index_that_holds_too_little_is_lost(index: VectorIndex) -> None:
    fill(index, made(5))
    index.check(Known(("first",), 5))
    with pytest.raises(LostCollectionError, match="holds 5 of 6 vectors"):
        index.check(Known(("first",), 6))


@pytest.mark.parametrize("content", [b"", b"no database" * 500])
def test_a_damaged_folder_is_told_and_another_can_be_filled(index: VectorIndex, content: bytes) -> None:
    vectors = made(12)
    fill(index, vectors)
    for file in index.folder.rglob("*"):
        if file.is_file():
            file.write_bytes(content)
    with pytest.raises(LostCollectionError) as caught:
        index.query(read(vectors["p0000"]), 3, FIRST)
    assert caught.value.hint
    index.discard()
    assert not index.folder.exists()
    other = VectorIndex(index.folder.parent, "TWO")
    fill(other, vectors)
    assert other.query(read(vectors["p0000"]), 1, FIRST)[0][0] == "p0000"


def test_a_folder_that_is_mended_is_opened_again(index: VectorIndex, tmp_path: Path) -> None:
    vectors = made(12)
    fill(index, vectors)
    good = shutil.copytree(index.folder, tmp_path / "good")
    (index.folder / "chroma.sqlite3").write_bytes(b"no database" * 500)
    with pytest.raises(LostCollectionError):
        index.query(read(vectors["p0000"]), 1, FIRST)
    shutil.rmtree(index.folder)
    shutil.copytree(good, index.folder)
    assert index.query(read(vectors["p0000"]), 1, FIRST)[0][0] == "p0000"


@pytest.mark.parametrize("url", ["ftp://host:1", "no address", "http://", "http://user:secret@host:1"])
def test_an_address_that_is_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        VectorIndex(tmp_path, "ONE", Server(url)).ids()
    assert caught.value.code == "chroma_url"
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.processes
def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(VectorIndexError) as caught:
        VectorIndex(tmp_path, "ONE", Server("http://127.0.0.1:9", token="secret")).ids()
    assert not isinstance(caught.value, LostCollectionError)
    assert "http://127.0.0.1:9" in caught.value.hint
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_what_a_server_is_asked_with_is_not_shown() -> None:
    assert "secret" not in repr(Server("http://127.0.0.1:9", token="secret", headers={"X-Key": "secret"}))


@pytest.mark.parametrize(
    ("asked_with", "setting"),
    [
        ({"token": "secret\nword"}, "chroma_token"),
        ({"token": "secr\u00e9t secret"}, "chroma_token"),
        ({"headers": {"X-Key": "secret\r\nX-Other: 1"}}, "chroma_headers"),
        ({"headers": {"X Key": "secret"}}, "chroma_headers"),
    ],
)
def test_what_no_header_can_carry_is_refused_without_being_told(
    tmp_path: Path, asked_with: dict[str, Any], setting: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        VectorIndex(tmp_path, "ONE", Server("http://127.0.0.1:9", **asked_with)).ids()
    assert caught.value.code == "chroma_header"
    assert setting in caught.value.message
    assert "secr" not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("secret", ["plain", "two\nlines", 'with "quotes"', "back\\slash", "ends\n"])
def test_a_secret_that_is_quoted_is_left_out_too(secret: str) -> None:
    server = Server("http://127.0.0.1:9", token=secret)
    for text in (secret, repr(secret), json.dumps(secret), repr(f"Bearer {secret}".encode()), f"[{secret.strip()}]"):
        assert not any(word in server.without_secrets(text) for word in secret.replace('"', " ").split())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Known]:
    """A folder with an index of so many vectors that Chroma writes files of them."""
    index = VectorIndex(tmp_path_factory.mktemp("chroma"), "ONE")
    fill(index, made(1200))
    return index.folder, Known(("first",), 1200, index.stamp())


FILES = ("data_level0.bin", "header.bin", "index_metadata.pickle", "length.bin", "link_lists.bin")


@pytest.mark.parametrize("how", ["truncated", "zeroed", "deleted", "random", "one byte"])
@pytest.mark.parametrize("name", FILES)
def test_damaged_files_of_vectors_are_not_opened(
    many: tuple[Path, Known], index: VectorIndex, name: str, how: str
) -> None:
    folder, known = many
    shutil.copytree(folder, index.folder)
    asked = read(made(1)["p0000"])
    assert len(index.query(asked, 5, known)) == 5, "a copy, whose files have other times, is opened"
    index.close()
    (file,) = index.folder.glob(f"*/{name}")
    data = bytearray(file.read_bytes())
    if how == "truncated":
        del data[len(data) // 2 :]
    elif how == "one byte":
        data[len(data) // 2] ^= 1
    else:
        data[:] = bytes(len(data)) if how == "zeroed" else random.Random(5).randbytes(len(data))
    file.write_bytes(data)
    if how == "deleted":
        file.unlink()
    with pytest.raises(LostCollectionError, match="not those that were written"):
        index.query(asked, 5, known)


def test_a_damaged_list_of_tables_does_not_end_the_process(index: VectorIndex) -> None:
    fill(index, made(5))
    file = index.folder / "chroma.sqlite3"
    file.write_bytes(file.read_bytes().replace(b"CREATE TABLE", b"CR\xceATE T\xffBLE"))
    with pytest.raises(LostCollectionError, match="its database is damaged"):
        index.query(read(made(1)["p0000"]), 5, FIRST)


def test_damage_of_the_index_that_is_written_is_not_taken_for_damage_of_chroma(index: VectorIndex) -> None:
    fill(index, made(1))
    with pytest.raises(sqlite3.DatabaseError), index.writing(FIRST, "second"):
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_telemetry_is_off(index: VectorIndex) -> None:
    fill(index, made(1))
    assert os.environ["ANONYMIZED_TELEMETRY"] == "False"
