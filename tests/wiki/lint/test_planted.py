"""Faults and harmless edits, planted into the bundled pages one at a time: faults are told of, and nothing else is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from kbs.evidence.vocabulary import vocabulary
from tests.wiki.lint.faults import FAULTS
from tests.wiki.lint.harmless import HARMLESS
from tests.wiki.lint.places import Body
from wiki.library import bundled_wiki
from wiki.lint import read_wiki, relint
from wiki.lint.view import WikiView

RECORD = Path(__file__).parents[3] / "docs" / "sources.md"
SEED = 20261122
LEAST = 0.95
"""The share of faults that must be told of."""
OFTEN = 3
"""How many times each harmless edit is made."""


@pytest.fixture(scope="module")
def view() -> WikiView:
    return read_wiki(bundled_wiki(), vocabulary(), datetime.date.today(), RECORD)


def _places(name: str, number: int, view: WikiView) -> Iterator[tuple[Random, Body]]:
    """Pages in an order that depends on the edit alone."""
    rng = Random(f"{SEED} {name} {number}")
    paths = [page.path for page in view.pages]
    for path in rng.sample(paths, len(paths)):
        yield rng, Body(path, view.texts[path])


def planted(view: WikiView) -> Iterator[tuple[str, Mapping[str, bytes]]]:
    """Each fault as often as its weight says, with the files that have it."""
    for name, (weight, plant) in FAULTS.items():
        for number in range(weight):
            for rng, page in _places(name, number, view):
                made = plant(rng, page, view.texts)
                files = made if isinstance(made, Mapping) else {page.path: made}
                if made is not None and any(text != view.texts.get(path) for path, text in files.items()):
                    yield (
                        name,
                        {p: text.encode() if isinstance(text, str) else text or b"" for p, text in files.items()},
                    )
                    break
            else:
                raise AssertionError(f"no page has a place for {name}")


@pytest.mark.slow
def test_planted_faults_are_told_of(view: WikiView) -> None:
    assert relint(view, {}) == []
    missed, count = [], 0
    for name, files in planted(view):
        count += 1
        if not relint(view, files):
            missed.append(f"{name}: {', '.join(files)}")
    assert count >= 200
    assert len(missed) <= count * (1 - LEAST), "\n".join(missed)


@pytest.mark.slow
def test_harmless_edits_are_let_be(view: WikiView) -> None:
    alarms, count = [], 0
    for name, edit in HARMLESS.items():
        for number in range(OFTEN):
            for rng, page in _places(name, number, view):
                text = edit(rng, page)
                if text and text != view.texts[page.path]:
                    found = relint(view, {page.path: text.encode()})
                    # `--fix` writes the index, which has the first sentence of each page.
                    alarms += [f"{name}: {one}" for one in found if one.rule != "index-entry"]
                    count += 1
                    break
            else:
                raise AssertionError(f"no page has a place for {name}")
    assert count >= 100
    assert alarms == [], "\n".join(alarms)
