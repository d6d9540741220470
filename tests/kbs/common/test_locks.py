"""One writer at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbs.common.errors import ExitCode, IndexBusyError, KoptError
from kbs.index.sqlite_file import index_lock

HOLD = """
import sys
from pathlib import Path
from kbs.index.sqlite_file import index_lock
with index_lock(Path(sys.argv[1]), 0):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock of `tmp_path`."""
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_lock_can_be_taken_again_and_again(tmp_path: Path) -> None:
    for _ in range(3):
        with index_lock(tmp_path / "home", 0):
            note = json.loads((tmp_path / "home" / "index.lock.holder").read_text("utf-8"))
            assert note["pid"] == os.getpid()
        assert not (tmp_path / "home" / "index.lock.holder").exists()


@pytest.mark.processes
def test_a_held_lock_names_its_holder(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(IndexBusyError, match=f"process {holder.pid} on ") as caught, index_lock(tmp_path, 0):
        pytest.fail("two hold the lock")
    assert caught.value.code == "index_busy"
    assert caught.value.exit_code is ExitCode.FAILURE
    assert caught.value.hint


@pytest.mark.processes
@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": 1}', '{"pid": 1, "host": 2, "command": 3, "since": "x"}'])
def test_an_unreadable_note_does_not_hide_that_it_is_held(
    tmp_path: Path, holder: subprocess.Popen[str], note: str
) -> None:
    (tmp_path / "index.lock.holder").write_text(note)
    with pytest.raises(IndexBusyError, match="another process"), index_lock(tmp_path, 0):
        pytest.fail("two hold the lock")


@pytest.mark.processes
def test_a_killed_holder_leaves_no_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "index.lock.holder").exists()
    with index_lock(tmp_path, 0):
        assert json.loads((tmp_path / "index.lock.holder").read_text("utf-8"))["pid"] == os.getpid()


@pytest.mark.processes
def test_a_waiting_writer_gets_the_lock(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    holder.stdin.close()
    with index_lock(tmp_path, 60):
        pass


def test_the_lock_is_released_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), index_lock(tmp_path, 0):
        raise KeyError("stop")
    with index_lock(tmp_path, 0):
        pass


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KoptError, match="cannot be written"), index_lock(tmp_path / "file" / "home", 0):
        pytest.fail("there is no such folder")
