"""Ready-made vectors of the bundled wiki and the base log, so that the first answer need not wait for embedding.

`ingest/data/vectors.npz` holds, for one model identity, the hashes of embedded texts and their vectors in float16.
A text or model that is not there is embedded in the ordinary way. `python -m ingest.carried` writes the file again.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ingest.passages import passages_of
from ingest.records import page_of
from kbs.evidence.passage import asked_as
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.entry import Entry
from kbs.experience.files import base_records
from kbs.index.encoder import DefaultEncoder
from wiki.library import bundled_wiki
from wiki.page import Page

_KEY_BYTES = 16


def vectors_file() -> Path:
    return Path(str(resources.files("ingest") / "data" / "vectors.npz"))


def carried_vectors(model: str, keys: set[str]) -> Mapping[str, bytes]:
    """key → float32 bytes of those `keys` (hashes of embedded texts) that ship with kopt for this model."""
    known, halves = _file(model)
    vectors = halves.astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {key: vectors[known[key[: 2 * _KEY_BYTES]]].tobytes() for key in keys if key[: 2 * _KEY_BYTES] in known}


def _file(model: str) -> tuple[dict[str, int], NDArray[np.float16]]:
    """(key, shortened → row, vectors in float16) of the file; nothing where it is of another model."""
    try:
        with vectors_file().open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            if str(data["model"]) == model:
                return {bytes(key).hex(): row for row, key in enumerate(data["keys"])}, data["vectors"]
    except (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error):  # none, or a damaged one
        pass
    return {}, np.zeros((0, 1), np.float16)


def bundled_texts() -> dict[str, str]:
    """key → embedded text of every passage of the bundled wiki, of every heading and ask that has a vector, and of the
    records that ship with kopt."""
    wiki = bundled_wiki()
    texts: dict[str, str] = {}
    for page in wiki.pages(vocabulary()):
        if isinstance(page, Page):
            passages = passages_of(page, wiki.revision)
            texts |= {passage.embedding_key: passage.embedded for passage in passages}
            texts |= {asked.embedding_key: asked.text for asked in asked_as(passages)}
    for one in base_records():
        texts |= {passage.embedding_key: passage.embedded for passage in page_of(Entry(one))[1]}
    return texts


def write_carried_vectors() -> int:
    """Embed what is new in the bundled wiki and write the file; returns the number of vectors."""
    texts = bundled_texts()
    encoder = DefaultEncoder()
    known, held = _file(encoder.identity)
    keys = sorted(texts)
    new = [key for key in keys if key[: 2 * _KEY_BYTES] not in known]
    made = dict(zip(new, encoder.encode([texts[key] for key in new]), strict=True)) if new else {}
    vectors = np.array([made[key] if key in made else held[known[key[: 2 * _KEY_BYTES]]] for key in keys], np.float16)
    vectors_file().parent.mkdir(exist_ok=True)
    np.savez_compressed(
        vectors_file(),
        model=np.array(encoder.identity),
        keys=np.array([list(bytes.fromhex(key)[:_KEY_BYTES]) for key in keys], np.uint8),
        vectors=vectors,
    )
    return len(keys)


if __name__ == "__main__":
    sys.stdout.write(f"{write_carried_vectors()} vectors written to {vectors_file()}\n")
