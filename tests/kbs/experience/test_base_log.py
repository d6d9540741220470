"""Records that ship with kopt beside the user's own: they count, and nothing that a user does changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kbs.common.ulid import new_ulid
from kbs.experience.experiment import Experiment, Join, Mask, Provenance
from kbs.experience.files import base_log, base_records
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog, now_utc
from kbs.experience.transfer.import_export import to_csv, to_json
from tests.kbs.experience.records import experiment, measured

EVERY, OWN, SHIPPED = Filter(masked=None), Filter(shipped=False), Filter(shipped=True)


@pytest.fixture
def base(tmp_path: Path) -> tuple[Path, list[Experiment]]:
    """A base log of two records."""
    records = [measured("a"), experiment(run="r", iteration=2, methods=("split_k",))]
    path = tmp_path / "base_log.jsonl"
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in records), "utf-8")
    return path, records


@pytest.fixture
def log(tmp_path: Path, base: tuple[Path, list[Experiment]]) -> ExperienceLog:
    """A log of a user who has nothing yet."""
    return ExperienceLog(tmp_path / "log", tmp_path / "home", shipped=base[0])


def test_it_counts_and_is_told_apart(log: ExperienceLog, base: tuple[Path, list[Experiment]]) -> None:
    own = experiment(optimization="Unrolled the loop.")
    log.append([own])
    with log.index() as index:
        assert [index.count(wanted) for wanted in (EVERY, OWN, SHIPPED)] == [3, 1, 2]
        assert index.shipped() == {one.id for one in base[1]}
        assert {one.experiment.id: one.origin for one in index.entries()} == {
            own.id: "own", **dict.fromkeys((one.id for one in base[1]), "shipped with kopt"),
        }  # fmt: skip
        assert len(index.trials().rows) == 3
        entries = list(index.entries())
    assert to_json(entries).count('"origin": "shipped with kopt"') == 2
    assert to_csv(entries).count("shipped with kopt") == 2
    without = ExperienceLog(log.files.root, log.home)
    with without.index() as index:
        assert [entry.experiment for entry in index.entries()] == [own], "switched off, in the same index"
    with log.index() as index:
        assert index.count() == 3, "and on again"


def test_neither_masks_nor_merges_touch_it(log: ExperienceLog, base: tuple[Path, list[Experiment]]) -> None:
    before, shipped = base[0].read_bytes(), base[1]
    with pytest.raises(UsageError) as caught:
        log.mask(shipped[0].id, True, "I do not like it")
    assert caught.value.code == "log_shipped"
    assert "base_log = false" in caught.value.hint
    assert log.append([shipped[0]]).added == (), "it is there already"
    own = experiment(optimization="Mine.")
    mask = Mask(id=new_ulid(), time=now_utc(), target=shipped[0].id, masked=True, why="from elsewhere")
    join = Join(id=new_ulid(), time=now_utc(), joined=(own.id, shipped[1].id), why="one receipt")
    twin = measured("a", id=new_ulid())
    log.files.append([own, mask, join, twin])
    assert log.merge() == [], "a record of the same receipt stays the user's own"
    with log.index() as index:
        assert [one.masked for one in index.entries(Filter(masked=None, shipped=True))] == [False, False]
        assert {one.experiment.id for one in index.entries(OWN)} == {own.id, twin.id}
        assert [one.ids for one in index.entries(SHIPPED)] == [(one.id,) for one in sorted(shipped, key=lambda o: o.id)]
    assert base[0].read_bytes() == before
    assert base[0].name not in log.files.names()


def test_a_record_that_the_user_has_too_is_the_users(tmp_path: Path, base: tuple[Path, list[Experiment]]) -> None:
    ExperienceLog(tmp_path / "log", tmp_path / "home").append(base[1][:1])
    log = ExperienceLog(tmp_path / "log", tmp_path / "home", shipped=base[0])
    log.mask(base[1][0].id, True, "it was noise")
    with log.index() as index:
        assert [(one.shipped, one.masked) for one in index.entries(EVERY)] == [(False, True), (True, False)]


def test_what_ships_is_measured_and_names_its_receipt() -> None:
    records = base_records()
    assert len(records) == len(base_log().read_text("utf-8").splitlines()) > 0
    for one in records:
        assert one.provenance is Provenance.MEASURED
        assert one.source.endswith("receipt.json")
        assert one.op
        assert one.gpu
