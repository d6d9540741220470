"""What a run's records are worth, and what does not go unnoticed in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.store.seal import ensure_key
from kbs.experience.log import ExperienceLog
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.run.verification import Verification, verify_run
from tests.loop.driving import drive, faster, opened

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run that has ended, on a GPU that is made up."""
    with opened(tmp_path / "run", device="cuda:0", device_name="NVIDIA H200", iterations=2) as driver:
        assert drive(driver, faster) is Phase.FINISHED
    return tmp_path / "run"


def verified(root: Path, home: Path | None = None) -> Verification:
    home = home or root.parent / "home"
    return verify_run(RunFolder(root), home, ExperienceLog(home / "experience", home))


def wrong(found: Verification) -> list[str]:
    """What is not right."""
    return [part.what for part in found.parts if not part.ok]


def test_an_untouched_run_is_as_it_was_recorded(root: Path) -> None:
    found = verified(root)
    assert (found.ok, found.seal, wrong(found)) == (True, "own key", [])
    said = {part.what: part.detail for part in found.parts}
    assert said["experience log"] == "records of this run: 2"
    assert said["receipts"].endswith("own key")
    assert "forge" in found.worth


def edits(path: str, old: str, new: str) -> Callable[[Path], object]:
    def act(root: Path) -> None:
        (file,) = root.parent.glob(path)
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")

    return act


@pytest.mark.parametrize(
    ("act", "parts"),
    [
        (edits("run/run.json", '"iterations": 2', '"iterations": 9'), ["run.json"]),
        (edits("run/v1/kernel.py", "us=90", "us=50"), ["files"]),
        (edits("run/v1/receipt.json", "accepted", "perfect"), ["receipts", "files", "experience log"]),
        (edits("run/journal.jsonl", '"outcome":"success"', '"outcome":"neutral"'), ["journal.jsonl"]),
        (edits("home/experience/*.jsonl", '"outcome":"success"', '"outcome":"neutral"'), ["experience log"]),
        (lambda root: (root / "journal.jsonl").write_bytes(b"{}\n"), ["journal.jsonl"]),
        (lambda root: (root / "run.json").write_bytes(b"{}"), ["run.json"]),
    ],
)
def test_an_edit_is_found(root: Path, act: Callable[[Path], object], parts: list[str]) -> None:
    act(root)
    found = verified(root)
    assert not found.ok
    assert wrong(found) == parts


def test_with_another_key_it_cannot_be_checked(root: Path) -> None:
    home = root.parent / "their-home"
    ensure_key(home)
    found = verified(root, home)
    assert (found.ok, found.seal) == (False, "foreign key")
    assert wrong(found) == ["journal.jsonl", "receipts"]
    assert json.loads((root / "journal.jsonl").read_text().splitlines()[0])["seal"]["key_id"]
