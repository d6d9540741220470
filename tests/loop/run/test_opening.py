"""What is found when a run is opened, and a disk that is full."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import kbs.common.files
from evaluator.store.seal import ensure_key
from kbs.common.errors import KoptError, UsageError
from kbs.experience.files import LogFiles
from loop.journal import journal
from loop.journal.events import Closed, Evaluated, FinalMeasured
from loop.journal.folder import RunFolder
from loop.journal.state import Phase
from loop.run.driver import Driver, create_run, read_run
from tests.loop import crashes, tools
from tests.loop.driving import drive, faster, opened, propose

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_hints_that_change_are_read_again(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
    with opened(root) as driver:
        assert driver.notes == []
        (root / "HINTS.md").write_text("- forbid: cuda_graphs\n")
        propose(driver, tools.kernel(1))
        assert driver.state.hints is not None
        assert driver.state.hints.directives == ("- forbid: cuda_graphs",)
    kinds = [entry.event.kind for entry in read_run(root).state.entries]
    assert kinds.count("hints_read") == 2


def test_a_torn_line_is_set_aside_and_said(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
    with (root / "journal.jsonl").open("ab") as stream:
        stream.write(b'{"n": 99, "ti')
    assert read_run(root).torn
    with opened(root) as driver:
        assert any("journal.torn-1" in note for note in driver.notes)
        assert drive(driver, faster) is Phase.FINISHED
    assert (root / "journal.torn-1").read_bytes() == b'{"n": 99, "ti'


def test_a_changed_record_and_a_shortened_journal_are_refused(root: Path) -> None:
    with opened(root) as driver:
        drive(driver, faster)
    lines = (root / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (root / "journal.jsonl").write_bytes(b"".join(lines[:-2]))
    with pytest.raises(KoptError) as caught, opened(root):
        pytest.fail("history was cut")
    assert caught.value.code == "journal_edited"
    (root / "journal.jsonl").write_bytes(b"".join(lines))
    record = (root / "run.json").read_bytes()
    (root / "run.json").write_bytes(record.replace(b'"iterations": 3', b'"iterations": 9'))
    with pytest.raises(KoptError) as caught, opened(root):
        pytest.fail("the record was changed")
    assert caught.value.code == "record_changed"
    (root / "run.json").write_bytes(b"{")
    with pytest.raises(KoptError) as caught:
        read_run(root)
    assert caught.value.code == "record_damaged"
    (root / "run.json").unlink()
    with pytest.raises(KoptError) as caught:
        read_run(root)
    assert caught.value.code == "record_missing"


def test_another_home_has_no_seed_for_the_run(root: Path, tmp_path: Path) -> None:
    with opened(root) as driver:
        record = driver.record
    bench = tools.FakeTools(tmp_path / "other", record)
    parts = tools.FakeParts(RunFolder(root), record, bench)
    with pytest.raises(KoptError) as caught, Driver.open(root, bench, tmp_path / "other", parts):
        pytest.fail("there is no seed")
    assert caught.value.code == "seed_missing"


def test_a_folder_that_is_there_is_not_overwritten(root: Path) -> None:
    home = root.parent / "home"
    record = tools.run_record(home)
    root.mkdir()
    (root / "mine.txt").write_text("mine")
    with pytest.raises(UsageError) as caught:
        create_run(root, record, tools.run_files(), home)
    assert caught.value.code == "out_exists"
    assert [path.name for path in root.iterdir()] == ["mine.txt"]
    shutil.rmtree(root)
    left = root.with_name(".run.softmax-20200101-000000-aaaa.tmp")
    left.mkdir()
    create_run(root, record, tools.run_files(), home)
    assert not left.exists()


def test_a_run_in_the_user_s_repository_touches_its_folder_alone(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    crashes.git(work, "init", "-q", "-b", "trunk")
    (work / "softmax.py").write_bytes(tools.kernel(0, us=100).encode())
    crashes.git(work, "add", ".")
    crashes.git(work, "-c", "user.name=U", "-c", "user.email=u@example.org", "commit", "-q", "-m", "first")
    root, home = work / "runs" / "softmax-001", tmp_path / "home"
    create_run(root, tools.run_record(home, in_place=True, branch="opt/softmax"), tools.run_files(), home)
    record = read_run(root).record
    bench = tools.FakeTools(home, record)
    with Driver.open(root, bench, home, tools.FakeParts(RunFolder(root), record, bench)) as driver:
        assert drive(driver, faster) is Phase.FINISHED
    assert crashes.git(work, "symbolic-ref", "--short", "HEAD").strip() == "opt/softmax"
    assert crashes.git(work, "status", "--porcelain") == ""
    assert crashes.git(work, "log", "--format=%s", "trunk").splitlines() == ["first"]
    changed = crashes.git(work, "diff", "--name-only", "trunk", "opt/softmax").splitlines()
    assert changed
    assert all(name.startswith("runs/softmax-001/") for name in changed)


def test_a_disk_that_is_full_at_any_write_loses_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file, each line of the journal and each record of the experience log cannot be written once; the run is
    opened again, and goes on."""
    seen: set[str] = set()
    said: set[tuple[str, str]] = set()

    def fails(what: str) -> None:
        if what not in seen:
            seen.add(what)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    class Full(io.FileIO):
        def write(self, data: Any) -> int:
            place = Path(f"/proc/self/fd/{self.fileno()}").readlink()
            fails(f"{place.parent}/{place.name.split('.')[1]} {hashlib.sha256(data).hexdigest()}")
            return super().write(data)

    write = os.write

    def line_write(descriptor: int, data: bytes) -> int:
        line = json.loads(bytes(data))
        fails(str(line.get("n", line.get("id"))))
        return write(descriptor, data)

    log = LogFiles(root.parent / "home" / "experience")
    with opened(root, device="cuda:0"), log.writing():
        ensure_key(root.parent / "home")  # as the log's writer, drawn at random: it would never be the same file again
    monkeypatch.setattr(kbs.common.files, "open", lambda descriptor, mode: Full(descriptor, mode), raising=False)
    monkeypatch.setattr(journal.os, "write", line_write)
    ended = None
    for _ in range(600):
        try:
            with opened(root) as driver:
                ended = drive(driver, faster)
        except KoptError as error:
            said.add((error.code, error.message.partition(" for ")[0]))
            continue
        break
    full = "there is no space left on the disk"
    late = f"is not in the experience log yet: {full}"
    assert said == {("disk_full", full)} | {("disk_full", f"v{number} {late}") for number in (1, 2, 3)}
    assert [record.iteration for name in log.names() for _, record in log.read(name).records] == [1, 2, 3]
    assert ended is Phase.FINISHED
    assert len(seen) > 100
    state = read_run(root).state
    kinds = [type(entry.event) for entry in state.entries]
    assert (kinds.count(Evaluated), kinds.count(Closed), kinds.count(FinalMeasured)) == (4, 4, 1)
    assert state.best == 3
    assert crashes.git(root, "status", "--porcelain") == ""
    assert not list(root.rglob("*.tmp"))
    assert not list(root.glob("journal.torn-*"))
