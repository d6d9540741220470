"""The log's files: many writers, writers that were ended, and lines that nobody should have written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.common.errors import KoptError
from kbs.experience.experiment import Experiment
from kbs.experience.files import MAX_LINE, LogFiles
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from tests.kbs.experience.records import experiment

ROOT = Path(__file__).parents[3]
EVERY = Filter(masked=None)
APPEND = """
import sys
from pathlib import Path
from kbs.experience.log import ExperienceLog
from tests.kbs.experience.records import experiment
log = ExperienceLog(Path(sys.argv[1]), Path(sys.argv[2]))
for number in range(int(sys.argv[4])):
    log.files.append([experiment(optimization=f"{sys.argv[3]}:{number}", lesson="x" * 3900)])
"""
TORN = """
import os, sys, time
from pathlib import Path
import kbs.experience.files as files
from tests.kbs.experience.records import experiment
real = os.write
def half(file, data):
    real(file, data[: len(data) // 2])
    print("half", flush=True)
    time.sleep(60)
files.os.write = half
files.LogFiles(Path(sys.argv[1])).append([experiment(optimization="never finished")])
"""

SLOW = TORN.replace("time.sleep(60)", "time.sleep(1.5)\n    return len(data) // 2 + real(file, data[len(data) // 2 :])")


@pytest.fixture
def log(tmp_path: Path) -> ExperienceLog:
    """An empty log."""
    return ExperienceLog(tmp_path / "log", tmp_path / "home")


def found(log: ExperienceLog) -> list[str]:
    """What was changed, of every experiment in order."""
    with log.index() as index:
        return [entry.experiment.optimization for entry in index.entries(EVERY)]


def start(script: str, *words: str) -> subprocess.Popen[str]:
    """Run a script in a process of its own."""
    command = [sys.executable, "-c", script, *words]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )


@pytest.mark.processes
def test_eight_processes_append_at_once(log: ExperienceLog) -> None:
    started = [start(APPEND, str(log.files.root), str(log.home), str(writer), "12") for writer in range(8)]
    for one in started:
        one.communicate(timeout=120)
    assert [one.returncode for one in started] == [0] * 8
    assert sorted(found(log)) == sorted(f"{writer}:{number}" for writer in range(8) for number in range(12))
    assert log.problems() == []
    assert len(log.files.names()) == 1


@pytest.mark.processes
def test_a_writer_waits_for_one_that_is_in_mid_line(log: ExperienceLog) -> None:
    writer = start(SLOW, str(log.files.root))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "half\n"
    log.append([experiment(optimization="meanwhile")])
    writer.communicate(timeout=60)
    assert found(log) == ["never finished", "meanwhile"]
    assert log.problems() == []


@pytest.mark.processes
def test_a_writer_that_was_killed_in_mid_line(log: ExperienceLog) -> None:
    log.append([experiment(optimization="before")])
    writer = start(TORN, str(log.files.root))
    assert writer.stdout is not None
    assert writer.stdout.readline() == "half\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait(30)
    writer.stdout.close()
    assert found(log) == ["before"]
    (problem,) = log.problems()
    assert "not complete" in problem.why

    log.append([experiment(optimization="after")])
    assert found(log) == ["before", "after"]
    (note,) = log.files.notes
    (aside,) = log.files.torn()
    assert aside in note
    assert b"never" in (log.files.root / aside).read_bytes() or (log.files.root / aside).stat().st_size > 100
    assert [problem.file for problem in log.problems()] == [aside]


def test_what_was_torn_is_never_overwritten(log: ExperienceLog) -> None:
    log.append([experiment()])
    path = log.files.root / log.files.names()[0]
    for number in (1, 2, 3):
        with path.open("ab") as stream:
            stream.write(b"torn %d" % number)
        log.files.settle()
    kept = [(log.files.root / name).read_bytes() for name in log.files.torn()]
    assert kept == [b"torn 1", b"torn 2", b"torn 3"]
    assert len(found(log)) == 1


def test_a_record_that_lacks_only_its_line_end_is_kept(log: ExperienceLog) -> None:
    log.append([experiment(optimization="one")])
    path = log.files.root / log.files.names()[0]
    with path.open("a") as stream:
        stream.write(experiment(optimization="two").model_dump_json())
    log.append([experiment(optimization="three")])
    assert found(log) == ["one", "two", "three"]
    assert log.files.torn() == []


def test_a_full_disk_leaves_the_file_as_it_was(log: ExperienceLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append([experiment(optimization="one")])
    before = (log.files.root / log.files.names()[0]).read_bytes()
    real = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) < 200:
            raise OSError(28, "No space left on device")
        return real(file, data[:-100])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(KoptError) as caught:
        log.append([experiment(optimization="two")])
    assert caught.value.code == "disk_full"
    assert (log.files.root / log.files.names()[0]).read_bytes() == before


def test_what_is_set_aside_on_a_full_disk_is_set_aside_whole_or_not_at_all(
    log: ExperienceLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append([experiment(optimization="one")])
    path = log.files.root / log.files.names()[0]
    with path.open("ab") as stream:
        stream.write(b'{"kind":"experiment","half of a line":')
    before = path.read_bytes()
    real, left = os.write, 10

    def full(file: int, data: bytes) -> int:
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        written = real(file, data[:left])
        left -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(KoptError) as caught:
        log.append([experiment(optimization="two")])
    assert caught.value.code == "disk_full"
    assert (path.read_bytes(), log.files.torn()) == (before, [])
    left = 10**6
    log.append([experiment(optimization="three")])
    (aside,) = log.files.torn()
    assert (log.files.root / aside).read_bytes() == b'{"kind":"experiment","half of a line":'
    assert found(log) == ["one", "three"]


def test_a_copy_of_the_folder_is_another_writer(log: ExperienceLog, tmp_path: Path) -> None:
    log.append([experiment(optimization="one")])
    (tmp_path / "other").mkdir()
    for path in log.files.root.rglob("*"):
        target = tmp_path / "other" / path.relative_to(log.files.root)
        target.mkdir() if path.is_dir() else target.write_bytes(path.read_bytes())
    other = ExperienceLog(tmp_path / "other", tmp_path / "home")
    other.append([experiment(optimization="two")])
    assert len(other.files.names()) == 2


def test_what_is_no_regular_file_is_reported_and_not_read(log: ExperienceLog, tmp_path: Path) -> None:
    log.append([experiment()])
    (tmp_path / "secret").write_text(experiment(optimization="secret").model_dump_json() + "\n")
    (log.files.root / "link.jsonl").symlink_to(tmp_path / "secret")
    os.mkfifo(log.files.root / "pipe.jsonl")
    (log.files.root / "folder.jsonl").mkdir()
    began = time.monotonic()
    assert "secret" not in found(log)
    assert {problem.file for problem in log.problems()} == {"link.jsonl", "pipe.jsonl", "folder.jsonl"}
    assert time.monotonic() - began < 20


def test_a_line_that_is_too_long_is_reported(log: ExperienceLog) -> None:
    log.append([experiment(optimization="before")])
    (log.files.root / "other.jsonl").write_bytes(
        b'{"a": "' + b"x" * MAX_LINE + b'"}\n' + experiment(optimization="after").model_dump_json().encode() + b"\n"
    )
    assert sorted(found(log)) == ["after", "before"]
    assert [(problem.file, problem.line) for problem in log.problems()] == [("other.jsonl", 1)]
    with pytest.raises(KoptError) as caught:
        log.append([experiment(evidence=[f"{number}" + "\x01" * 3900 for number in range(60)])])
    assert caught.value.code == "record_too_long"


HOSTILE = st.one_of(
    st.binary(max_size=200).filter(lambda data: b"\n" not in data),
    st.sampled_from(
        [
            b"<<<<<<< HEAD",
            b"=======",
            b"null",
            b"[]",
            b"[" * 5000,
            b'{"kind": "experiment"}',
            b'{"kind": "mask", "id": 1}',
            b'{"kind": "other"}',
            b'{"kind": "experiment", "id": "' + b"9" * 26 + b'"}',
            b'{"kind":"join","schema_version":9,"id":"","time":"","joined":[],"why":""}',
            b"\xef\xbb\xbf{}",
            b'{"a": 1' + b"0" * 5000 + b"}",
            b'{"kind": NaN}',
            b"\x00",
        ]
    ),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(HOSTILE, max_size=6), st.integers(0, 6))
def test_hostile_lines_lose_nothing_but_themselves(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], place: int
) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    good = experiment(optimization="good")
    place = min(place, len(lines))
    lines = [*lines[:place], good.model_dump_json().encode(), *lines[place:]]
    (folder / "w.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    chunk = LogFiles(folder).read("w.jsonl")
    assert (place + 1, good) in chunk.records
    written = [line for line in lines if line.strip()]
    assert len(chunk.records) + len(chunk.problems) == len(written)
    assert chunk.lines == len(lines)
    for problem in chunk.problems:
        assert str(problem).isprintable()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_changed_record_is_read_as_a_record_or_reported(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(experiment().model_dump_json().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255).filter(lambda byte: byte != 10))
    folder = tmp_path_factory.mktemp("changed")
    (folder / "w.jsonl").write_bytes(bytes(text) + b"\n")
    log = ExperienceLog(folder, folder / "home")
    with log.index() as index:
        read, problems = list(index.entries()), index.problems()
    assert len(read) + len(problems) == 1
    assert all(isinstance(entry.experiment, Experiment) for entry in read)
