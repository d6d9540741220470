"""Chroma, the vector index."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from kbs.common.errors import ConfigurationError
from kbs.index.chroma import VectorIndex, VectorIndexError


def made(count: int, seed: int = 7) -> dict[str, bytes]:
    vectors = np.random.default_rng(seed).standard_normal((count, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {f"p{number:04}": vector.tobytes() for number, vector in enumerate(vectors)}


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", "", "model:0123")


def test_sync_holds_exactly_what_is_wanted(index: VectorIndex) -> None:
    wanted = made(60)
    assert index.sync(wanted) == 60
    assert index.ids() == wanted.keys()
    assert index.sync(wanted) == 0
    fewer = {id: vector for id, vector in wanted.items() if id < "p0050"} | {"new": wanted["p0000"]}
    assert index.sync(fewer) == 11
    assert index.ids() == fewer.keys()


def test_query_finds_the_nearest_with_their_cosine(index: VectorIndex) -> None:
    wanted = made(60)
    index.sync(wanted)
    asked = np.frombuffer(wanted["p0007"], np.float32)
    found = index.query(asked, 5)
    exact = sorted(((float(np.frombuffer(v, np.float32) @ asked), id) for id, v in wanted.items()), reverse=True)[:5]
    assert [id for id, _ in found] == [id for _, id in exact]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for cosine, _ in exact], abs=1e-5)
    assert found[0] == ("p0007", pytest.approx(1, abs=1e-5))


def test_what_another_process_would_see(index: VectorIndex, tmp_path: Path) -> None:
    wanted = made(10)
    index.sync(wanted)
    again = VectorIndex(tmp_path / "chroma", "", "model:0123")
    assert again.ids() == wanted.keys()
    assert len(again.query(np.frombuffer(wanted["p0003"], np.float32), 20)) == 10


def test_models_do_not_mix(index: VectorIndex, tmp_path: Path) -> None:
    index.sync(made(5))
    other = VectorIndex(tmp_path / "chroma", "", "model:4567")
    with pytest.raises(VectorIndexError):
        other.ids()
    other.sync(made(3))
    assert len(index.ids()) == 5
    assert len(other.ids()) == 3


def test_a_missing_index_is_said_to_be_and_is_not_made(index: VectorIndex) -> None:
    assert "missing" in index.broken(1)
    with pytest.raises(VectorIndexError) as caught:
        index.query(np.zeros(16, np.float32), 1)
    assert caught.value.code == "chroma_missing_index"
    assert not index.folder.exists()


def test_an_index_that_holds_too_little_is_broken(index: VectorIndex) -> None:
    index.sync(made(5))
    assert index.broken(5) == ""
    assert index.broken(6) == "the Chroma index holds 5 of 6 passages"


@pytest.mark.parametrize("content", [b"", b"no database" * 500])
def test_a_damaged_folder_is_found_and_rebuilt(index: VectorIndex, content: bytes) -> None:
    wanted = made(12)
    index.sync(wanted)
    for file in index.folder.rglob("*"):
        if file.is_file():
            file.write_bytes(content)
    if content:
        assert "damaged" in index.broken(12) or "cannot be read" in index.broken(12)
    with pytest.raises(VectorIndexError) as caught:
        index.query(np.frombuffer(wanted["p0000"], np.float32), 3)
    assert caught.value.hint
    index.discard()
    assert not index.folder.exists()
    assert index.sync(wanted) == 12
    assert index.ids() == wanted.keys()
    assert index.query(np.frombuffer(wanted["p0000"], np.float32), 1)[0][0] == "p0000"


@pytest.mark.parametrize("url", ["ftp://host:1", "no address", "http://"])
def test_an_address_that_is_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        VectorIndex(tmp_path, url, "m").ids()
    assert caught.value.code == "chroma_url"


@pytest.mark.processes
def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(VectorIndexError) as caught:
        VectorIndex(tmp_path, "http://127.0.0.1:9", "m").ids()
    assert "http://127.0.0.1:9" in caught.value.hint


def test_telemetry_is_off(index: VectorIndex) -> None:
    index.sync(made(1))
    assert os.environ["ANONYMIZED_TELEMETRY"] == "False"
