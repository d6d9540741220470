"""Ready-made vectors of the bundled wiki, so that the first answer need not wait for embedding.

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

from ingest.passages import passages_of
from kbs.evidence.vocabulary import vocabulary
from kbs.index.encoder import DefaultEncoder
from wiki.library import bundled_wiki
from wiki.page import Page

_KEY_BYTES = 16


def vectors_file() -> Path:
    return Path(str(resources.files("ingest") / "data" / "vectors.npz"))


def carried_vectors(model: str, keys: set[str]) -> Mapping[str, bytes]:
    """key → float32 bytes of those `keys` (hashes of embedded texts) that ship with kopt for this model."""
    try:
        with vectors_file().open("rb") as stream, np.load(stream, allow_pickle=False) as data:
            if str(data["model"]) != model:
                return {}
            known = {bytes(key).hex(): row for row, key in enumerate(data["keys"])}
            vectors = data["vectors"].astype(np.float32)
    except (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error):  # none, or a damaged one
        return {}
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {key: vectors[known[key[: 2 * _KEY_BYTES]]].tobytes() for key in keys if key[: 2 * _KEY_BYTES] in known}


def bundled_texts() -> dict[str, str]:
    """key → embedded text of every passage of the bundled wiki."""
    wiki = bundled_wiki()
    return {
        passage.embedding_key: passage.embedded
        for page in wiki.pages(vocabulary())
        if isinstance(page, Page)
        for passage in passages_of(page, wiki.revision)
    }


def write_carried_vectors() -> int:
    """Embed the bundled wiki and write the file; returns the number of vectors."""
    texts = bundled_texts()
    encoder = DefaultEncoder()
    keys = sorted(texts)
    vectors = encoder.encode([texts[key] for key in keys])
    vectors_file().parent.mkdir(exist_ok=True)
    np.savez_compressed(
        vectors_file(),
        model=np.array(encoder.identity),
        keys=np.array([list(bytes.fromhex(key)[:_KEY_BYTES]) for key in keys], np.uint8),
        vectors=vectors.astype(np.float16),
    )
    return len(keys)


if __name__ == "__main__":
    sys.stdout.write(f"{write_carried_vectors()} vectors written to {vectors_file()}\n")
