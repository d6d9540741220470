"""The vectors that ship with kopt: complete, and those that the model gives."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.carried import bundled_texts, carried_vectors
from kbs.index.encoder import DefaultEncoder, default_identity
from tests.bundled_pages import bundled_pages


@pytest.mark.slow
def test_every_passage_heading_and_ask_has_its_vector() -> None:
    texts = bundled_texts()
    carried = carried_vectors(default_identity(), set(texts))
    assert carried.keys() == texts.keys(), "run `just vectors`"
    some = sorted(texts)[:: len(texts) // 5]
    fresh = DefaultEncoder().encode([texts[key] for key in some])
    for key, vector in zip(some, fresh, strict=True):
        assert float(np.frombuffer(carried[key], np.float32) @ vector) > 0.999


def test_headings_and_asks_are_carried() -> None:
    texts = set(bundled_texts().values())
    asked = [ask for page in bundled_pages() for section in page.sections for ask in section.asks]
    assert asked
    assert texts.issuperset(asked)


def test_another_model_gets_none() -> None:
    assert carried_vectors("another:0123", {"00" * 32}) == {}
