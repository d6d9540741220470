"""Seeds of a run: secret until a receipt reveals its own, and the same when an evaluation is done again."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from kbs.common.errors import ConfigurationError
from loop.journal import registry as known
from loop.journal import seeds


def test_a_master_is_drawn_once_and_only_its_commitment_is_told(tmp_path: Path) -> None:
    committed = seeds.create(tmp_path, "run-a")
    master = seeds.load(tmp_path, "run-a", committed)
    assert seeds.create(tmp_path, "run-a") == committed == hashlib.sha256(master).hexdigest()
    assert len(master) == 32
    assert seeds.create(tmp_path, "run-b") != committed
    assert stat.S_IMODE(seeds.seed_file(tmp_path, "run-a").stat().st_mode) == 0o600


def test_every_evaluation_has_seeds_of_its_own_that_can_be_derived_again() -> None:
    master = bytes(32)
    asked = [(version, attempt, what) for version in range(3) for attempt in (1, 2) for what in ("verdict", "final")]
    made = {seeds.schedule(master, *one).commitment for one in asked}
    assert len(made) == len(asked)
    assert seeds.schedule(master, 1, 2, "final") == seeds.schedule(master, 1, 2, "final")
    assert seeds.schedule(master, 1, 1, "final").origin == "secret"
    assert seeds.schedule(b"\1" * 32, 1, 1, "final") != seeds.schedule(master, 1, 1, "final")
    assert seeds.schedule(master, 1, 1, "final").master != master


@pytest.mark.parametrize(
    ("text", "code"),
    [(None, "seed_missing"), ("xyz\n", "seed_missing"), ("00\n", "seed_missing"), ("00" * 32, "seed_changed")],
)
def test_a_seed_that_is_gone_or_another_is_said(tmp_path: Path, text: str | None, code: str) -> None:
    committed = seeds.create(tmp_path, "run-a")
    path = seeds.seed_file(tmp_path, "run-a")
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        seeds.load(tmp_path, "run-a", committed)
    assert caught.value.code == code
    assert str(path) in caught.value.message


def test_runs_that_were_begun_are_known_with_their_places(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "a run\udcff"
    assert known.known_runs(home) == ()
    known.remember(home, "run-b", tmp_path)
    known.remember(home, "run-a", root)
    known.remember(home, "run-a", root)
    assert [(run.id, run.root, run.there) for run in known.known_runs(home)] == [
        ("run-a", root, False),
        ("run-b", tmp_path, False),
    ]
    (tmp_path / "journal.jsonl").touch()
    assert known.known_runs(home)[1].there
