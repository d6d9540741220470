"""Receipts on disk: whole or not at all, and nothing else is overwritten."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.receipt.receipt import parse, render
from evaluator.store import seal
from evaluator.store.store import check_chosen, read_receipt, save_plan, save_receipt
from kbs.common import canonical_json as canonical
from kbs.common.errors import ExitCode, KoptError, UsageError
from tests.evaluator.receipts import content, plan, receipt

OTHER = receipt(reason="right in both calls")


def test_a_receipt_is_saved_under_its_id(tmp_path: Path) -> None:
    made = receipt()
    path = save_receipt(tmp_path / "home", made)
    assert path == tmp_path / "home" / "receipts" / f"{made.id[:16]}.json"
    assert path.read_bytes() == render(made) == read_receipt(path)
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_plan_is_saved_under_its_hash(tmp_path: Path) -> None:
    made = plan()
    path = save_plan(tmp_path, made)
    assert path == tmp_path / "receipts" / f"{made.hash[:16]}.plan.json"
    assert type(made).model_validate_json(path.read_bytes()) == made
    assert canonical.digest(json.loads(path.read_bytes())) == made.hash
    assert save_plan(tmp_path, made) == path


def test_the_same_receipt_can_be_saved_again(tmp_path: Path) -> None:
    path = save_receipt(tmp_path, receipt())
    assert save_receipt(tmp_path, seal.seal(receipt(), bytes(32))) == path
    assert parse(path.read_bytes()).seal is not None


@pytest.mark.processes
def test_another_receipt_of_the_same_name_is_kept(tmp_path: Path) -> None:
    path = save_receipt(tmp_path, receipt())
    path.write_bytes(render(OTHER))
    assert refused(tmp_path, None) == "receipt_exists"
    assert path.read_bytes() == render(OTHER)


def test_the_user_names_the_file(tmp_path: Path) -> None:
    chosen = tmp_path / "a b.json"
    check_chosen(chosen)
    assert save_receipt(tmp_path / "home", receipt(), chosen) == chosen
    check_chosen(chosen)
    assert save_receipt(tmp_path / "home", OTHER, chosen) == chosen
    assert parse(chosen.read_bytes()).id == OTHER.id
    assert not (tmp_path / "home").exists()


@pytest.mark.processes
@pytest.mark.parametrize("there", [b"", b"my thesis", b"{}", render(receipt())[:-40]])
def test_a_file_that_is_no_receipt_is_kept(tmp_path: Path, there: bytes) -> None:
    chosen = tmp_path / "thesis.txt"
    chosen.write_bytes(there)
    assert refused(tmp_path, chosen) == "receipt_exists"
    with pytest.raises(UsageError):
        check_chosen(chosen)
    assert chosen.read_bytes() == there


@pytest.mark.processes
@pytest.mark.parametrize("chosen", ["/dev/null", "/dev/full", "/", "."])
def test_what_is_no_file_is_kept(tmp_path: Path, chosen: str) -> None:
    before = Path(chosen).stat().st_mode
    assert refused(tmp_path, Path(chosen)) == "receipt_exists"
    assert Path(chosen).stat().st_mode == before


def refused(home: Path, chosen: Path | None) -> str:
    """The code of the error that saving ends with."""
    with pytest.raises(UsageError) as caught:
        save_receipt(home, receipt(), chosen)
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint
    return caught.value.code


def test_a_folder_that_is_not_there_is_told_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder") as caught:
        check_chosen(tmp_path / "missing" / "receipt.json")
    assert caught.value.code == "receipt_folder"
    with pytest.raises(KoptError):
        save_receipt(tmp_path, receipt(), tmp_path / "missing" / "receipt.json")


@pytest.mark.parametrize("name", ["n" * 300, "file/receipt.json"])
def test_places_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    attempts: list[Callable[[], Path]] = [
        lambda: save_receipt(tmp_path, receipt(), tmp_path / name),
        lambda: save_receipt(tmp_path / name, receipt()),
        lambda: save_plan(tmp_path / name, plan()),
    ]
    for attempt in attempts:
        with pytest.raises(KoptError) as caught:
            attempt()
        assert caught.value.hint
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_name_of_the_longest_kind_can_be_written(tmp_path: Path) -> None:
    chosen = tmp_path / ("核" * 85)
    assert save_receipt(tmp_path, receipt(), chosen).read_bytes() == render(receipt())


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_receipt(tmp_path, receipt())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(KoptError) as caught:
        save_receipt(tmp_path, seal.seal(receipt(), bytes(32)))
    assert caught.value.code == "disk_full"
    assert path.read_bytes() == render(receipt())
    assert list(path.parent.iterdir()) == [path]


KILLED = """
import os, signal, sys
from pathlib import Path
from kbs.common import files
from evaluator.receipt.receipt import parse
from evaluator.store.store import save_receipt
files.os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
save_receipt(Path(sys.argv[1]), parse(sys.stdin.buffer.read()), Path(sys.argv[2]))
"""
BUSY = """
import sys
from pathlib import Path
from evaluator.receipt.receipt import parse
from evaluator.store.store import save_receipt
receipts = [parse(Path(name).read_bytes()) for name in sys.argv[2:]]
print("ready", flush=True)
while True:
    for receipt in receipts:
        save_receipt(Path("/"), receipt, Path(sys.argv[1]))
"""


@pytest.mark.processes
@pytest.mark.parametrize("there", [None, render(OTHER)])
def test_a_writer_killed_before_the_end_leaves_what_was_there(tmp_path: Path, there: bytes | None) -> None:
    chosen = tmp_path / "receipt.json"
    if there is not None:
        chosen.write_bytes(there)
    words = [sys.executable, "-c", KILLED, str(tmp_path), str(chosen)]
    done = subprocess.run(words, input=render(receipt()), check=False)
    assert done.returncode == -9
    assert (chosen.read_bytes() if chosen.exists() else None) == there


@pytest.mark.processes
def test_a_writer_killed_anywhere_leaves_a_whole_receipt(tmp_path: Path) -> None:
    large = [render(receipt(not_checked=("n" * 3000,) * size)) for size in (300, 700)]
    names = [tmp_path / f"{n}.json" for n in range(2)]
    for name, data in zip(names, large, strict=True):
        name.write_bytes(data)
    chosen = tmp_path / "receipt.json"
    for pause in (0.05, 0.11, 0.18):
        with subprocess.Popen(
            [sys.executable, "-c", BUSY, str(chosen), *map(str, names)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            limit = time.monotonic() + 30
            while not chosen.exists() and time.monotonic() < limit:
                time.sleep(0.001)
            time.sleep(pause)
            writer.kill()
        assert chosen.read_bytes() in large
        chosen.unlink()


def test_reading_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "large.json").write_bytes(b" " * 100)
    monkeypatch.setattr(canonical, "MAX_BYTES", 99)
    for place, code in (
        (tmp_path / "missing.json", "file_not_found"),
        (tmp_path, "file_unreadable"),
        (Path("/dev/zero"), "file_unreadable"),
        (tmp_path / "large.json", "receipt_invalid"),
    ):
        with pytest.raises(UsageError) as caught:
            read_receipt(place)
        assert caught.value.code == code
        assert caught.value.hint


def test_an_unsealed_receipt_is_saved_as_it_is(tmp_path: Path) -> None:
    assert parse(save_receipt(tmp_path, receipt()).read_bytes()) == type(receipt()).of(content())
