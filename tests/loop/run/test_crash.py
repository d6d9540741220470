"""A kill at any point of a run: the run that goes on ends as if there had been none."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pytest

from evaluator.receipt.receipt import parse
from evaluator.store.seal import ensure_key
from loop.journal.record import RunRecord
from tests.loop import crashes, tools

pytestmark = pytest.mark.processes

AGAIN = (("inside write 12", 0), ("after replace 40", -1), ("after git 11", 0))
"""States that are gone on from, and killed once more: in a torn line, before a file is in its place, and after a commit
without its event. By the call, and how many states before or after it."""


@dataclass
class Recorded:
    """One run, and every state in which a kill could have left it."""

    base: Path
    record: RunRecord
    camera: crashes.Camera
    ended: crashes.Ended
    kept: list[tuple[Path, str]]
    """Copies of some of the states, for a second kill."""


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    """A run of three iterations on a device that is timed."""
    with crashes.fast_folder() as folder:
        base = folder / "base"
        base.mkdir()
        record = tools.run_record(base / "home", device="cuda:0", branches=4)
        ensure_key(base / "home")  # so that receipts are the same, whenever they are made
        album = folder / "album"
        album.mkdir()
        camera = crashes.Camera(base, album)
        with crashes.watched(camera):
            found = crashes.drive(base, record)
        kept = []
        called = [what for _, what in camera.points]
        for what, offset in AGAIN:
            copy, kind = camera.points[called.index(what) + offset]
            crashes.copy_links(copy, folder / f"again-{copy.name}")
            kept.append((folder / f"again-{copy.name}", kind))
        yield Recorded(base, record, camera, found, kept)


def test_every_kind_of_call_was_watched(recorded: Recorded) -> None:
    assert len(recorded.ended.events) == 51
    assert recorded.camera.calls["write"] >= 51 + 3 - 1  # the first event comes with the folder; a record an iteration
    assert [(one["iteration"], one["outcome"]) for one in recorded.ended.recorded] == [
        (1, "success"),
        (2, "success"),
        (3, "regression"),
    ]
    assert recorded.camera.calls["git"] > 15
    assert recorded.camera.calls["replace"] > 60
    assert recorded.camera.calls["rename"] == 1
    assert recorded.camera.calls["fsync"] > 2 * recorded.camera.calls["replace"]
    assert recorded.ended.status == ""
    assert recorded.ended.log == [
        "[final] restore v2 (1.67x): cap",
        "[iter 3] Load four words at once, variant 3.",
        "[iter 2] Load four words at once, variant 2.",
        "[iter 1] Load four words at once, variant 1.",
        "[baseline] softmax.py",
    ]


def test_a_run_that_is_killed_anywhere_ends_as_if_it_had_not_been(recorded: Recorded) -> None:
    points = [(copy, what) for copy, what in recorded.camera.points]
    with ProcessPoolExecutor(min(4, os.cpu_count() or 1), get_context("fork")) as pool:
        jobs = [pool.submit(_differences, copy, recorded.record, recorded.ended) for copy, _ in points]
        found = {f"{copy.name} {what}": job.result() for (copy, what), job in zip(points, jobs, strict=True)}
    assert len(found) > 200
    assert {name: said for name, said in found.items() if said} == {}


def _differences(copy: Path, record: RunRecord, whole: crashes.Ended) -> list[str]:
    """What differs where the run in a copy goes on, from the run that was not killed."""
    measured = _measured(copy / "run")
    try:
        resumed = crashes.drive(copy, record)
    except Exception as error:  # whatever it is, the test says at which point it came
        return [f"{type(error).__name__}: {error}"]
    said = []
    if resumed.events != whole.events:
        said.append(f"events: {[e['kind'] for e in resumed.events]}")
    names = set(resumed.files) ^ set(whole.files)
    changed = [name for name in resumed.files if name in whole.files and resumed.files[name] != whole.files[name]]
    if names or changed:
        said.append(f"files: {sorted(names)} {changed}")
    if resumed.log != whole.log or resumed.status:
        said.append(f"git: {resumed.log} {resumed.status}")
    if resumed.recorded != whole.recorded:
        said.append(f"experience: {[one['iteration'] for one in resumed.recorded]}")
    if measured & set(resumed.asked):
        said.append("measured again what had a receipt")
    if len(set(resumed.asked)) < len(resumed.asked) - 1:  # the final measurement is of a version again
        said.append("measured a kernel twice")
    shutil.rmtree(copy)
    return said


def _measured(root: Path) -> set[str]:
    """Evaluations that have a receipt; the one of the end is of a version that has one too."""
    ended = set(map(_asked, root.glob("final/*/receipt.json")))
    tried = set(map(_asked, root.glob("v*/branches/*/*/*/receipt.json")))
    tried |= set(map(_asked, root.glob("v*/ablations/*/receipt.json")))
    texts = (tools.kernel(22, us=60), tools.kernel(1, us=80))  # the best version of the one run and of the other
    best = {f"verdict {hashlib.sha256(text.encode()).hexdigest()}" for text in texts}
    return tried - (best - ended)


def _asked(receipt: Path) -> str:
    found = parse(receipt.read_bytes())
    return f"{found.plan.name} {found.candidate.hash}"


def test_a_kill_while_a_kill_is_made_good_changes_nothing_either(recorded: Recorded) -> None:
    """What was left by three kinds of kills is opened, and killed again at every point up to a few events later."""
    found: dict[str, list[str]] = {}
    assert (recorded.kept[0][0] / "run" / "journal.jsonl").read_bytes()[-1:] != b"\n"
    assert list((recorded.kept[1][0] / "run").rglob("*.tmp"))
    for copy, kind in recorded.kept:
        with crashes.fast_folder() as folder:
            (folder / "album").mkdir()
            crashes.copy_links(copy, folder / "base")
            camera = crashes.Camera(folder / "base", folder / "album", most=30)
            with crashes.watched(camera):
                crashes.drive(folder / "base", recorded.record)
            for point, what in camera.points:
                found[f"{kind}, then {what}"] = _differences(point, recorded.record, recorded.ended)
    assert len(found) > 80
    assert {name: said for name, said in found.items() if said} == {}


def test_a_run_that_is_killed_during_an_ablation_ends_as_if_it_had_not_been() -> None:
    """Each state from the kernel's own verdict on to the attribution of its methods."""
    with crashes.fast_folder() as folder:
        base, album = folder / "base", folder / "album"
        album.mkdir()
        base.mkdir()
        record = tools.run_record(base / "home", device="cuda:0", discipline="budget", iterations=1)
        ensure_key(base / "home")
        camera = crashes.Camera(base, album)
        with crashes.watched(camera):
            whole = crashes.drive(base, record)
        measured = [name for name in whole.files if name.startswith("v1/ablations/") and name.endswith("receipt.json")]
        assert len(measured) == 2
        assert "v1/attribution.json" in whole.files
        during = [
            (copy, what)
            for copy, what in camera.points
            if (copy / "run/v1/branches/a1").exists() and not (copy / "run/v1/attribution.json").exists()
        ]
        states = {sum((copy / "run" / name).exists() for name in measured) for copy, _ in during}
        assert states == {0, 1, 2}, "before, between and after the two measurements"
        found = {f"{copy.name} {what}": _differences(copy, record, whole) for copy, what in during}
        assert {name: said for name, said in found.items() if said} == {}
