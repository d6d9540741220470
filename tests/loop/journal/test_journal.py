"""The journal: one line an event, chained, and nothing guessed where a line is not whole."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.common.errors import KoptError
from loop.journal import journal
from loop.journal.events import Created, Event, Extended, HintsRead, Masked
from loop.journal.journal import Journal
from loop.journal.seals import Sealer

EVENTS = st.one_of(
    st.builds(Extended, iterations=st.integers(1, 1000)),
    st.builds(Masked, version=st.integers(0, 99), masked=st.booleans(), why=st.text(max_size=40)),
    st.builds(
        HintsRead,
        file=st.none(),
        directives=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        passed_on=st.just(()),
    ),
)
CREATED = Created(record="0" * 64, files={})
SEALER = Sealer("run-a", b"\1" * 32, began=True)


def new(folder: Path) -> Journal:
    """A journal with its first line."""
    path = folder / "journal.jsonl"
    path.write_bytes(journal.first_line(CREATED, SEALER))
    return Journal.open(path, SEALER)


@settings(max_examples=40, deadline=None)
@given(events=st.lists(EVENTS, max_size=8))
def test_what_is_appended_is_read_again(tmp_path_factory: pytest.TempPathFactory, events: list[Event]) -> None:
    written = new(tmp_path_factory.mktemp("journal"))
    for event in events:
        written.append(event)
    found = journal.read(written.path.read_bytes())
    assert [entry.event for entry in found.entries[1:]] == events
    assert [entry.n for entry in found.entries] == list(range(1, len(events) + 2))
    assert (found.head, found.length, found.torn) == (written.head, written.length, b"")
    assert written.path.read_bytes().count(b"\n") == len(events) + 1


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_changed_line_is_found_by_the_next_one(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    written = new(tmp_path_factory.mktemp("journal"))
    for number in range(1, 5):
        written.append(Masked(version=number, masked=True, why="It is slow."))
    lines = written.path.read_bytes().splitlines()
    number = data.draw(st.integers(0, len(lines) - 2))
    place = data.draw(st.integers(0, len(lines[number]) - 1))
    changed = bytearray(lines[number])
    changed[place] = data.draw(st.integers(32, 126).filter(lambda byte: byte != changed[place]))
    lines[number] = bytes(changed)
    with pytest.raises(KoptError) as caught:
        journal.read(b"\n".join(lines) + b"\n")
    assert caught.value.code == "journal_edited"
    said = {f"line {number + 1} of", f"line {number + 2} of"}
    assert any(one in caught.value.message for one in said)


@pytest.mark.parametrize("change", ["out", "twice", "swapped"])
def test_lines_that_are_left_out_or_moved_are_found(tmp_path: Path, change: str) -> None:
    written = new(tmp_path)
    for number in range(1, 4):
        written.append(Extended(iterations=number))
    lines = written.path.read_bytes().splitlines()
    if change == "out":
        del lines[2]
    elif change == "twice":
        lines.insert(2, lines[2])
    else:
        lines[1], lines[2] = lines[2], lines[1]
    with pytest.raises(KoptError, match="is not as kopt wrote it"):
        journal.read(b"\n".join(lines) + b"\n")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_journal_that_is_cut_anywhere_loses_its_last_line_alone(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    written = new(tmp_path_factory.mktemp("journal"))
    for number in range(1, 4):
        written.append(Extended(iterations=number))
    whole = written.path.read_bytes()
    kept = data.draw(st.integers(0, len(whole)))
    written.path.write_bytes(whole[:kept])
    opened = Journal.open(written.path, SEALER)
    torn = whole[: whole[:kept].rfind(b"\n") + 1], whole[whole[:kept].rfind(b"\n") + 1 : kept]
    assert written.path.read_bytes() == torn[0]
    assert len(opened.entries) == torn[0].count(b"\n")
    if torn[1]:
        assert opened.set_aside is not None
        assert opened.set_aside.name == "journal.torn-1"
        assert opened.set_aside.read_bytes() == torn[1]
    else:
        assert opened.set_aside is None
    opened.append(Extended(iterations=9))
    assert journal.read(written.path.read_bytes()).torn == b""


def test_torn_lines_get_names_of_their_own_and_the_same_one_is_kept_once(tmp_path: Path) -> None:
    written = new(tmp_path)
    for torn in (b'{"n": 2', b'{"n": 2, "time"', b'{"n": 2'):
        with written.path.open("ab") as stream:
            stream.write(torn)
        assert Journal.open(written.path, SEALER).set_aside is not None
    assert sorted(path.name for path in tmp_path.glob("*torn*")) == ["journal.torn-1", "journal.torn-2"]


def test_a_last_line_of_zeros_is_torn(tmp_path: Path) -> None:
    written = new(tmp_path)
    with written.path.open("ab") as stream:
        stream.write(b"\0" * 40 + b"\n")
    assert len(Journal.open(written.path, SEALER).entries) == 1


@pytest.mark.parametrize("line", [b"{}", b"[]", b'{"n":2,"time":"x","prev":"0","event":{"kind":"no"}}'])
def test_a_whole_line_that_is_no_event_is_an_edit(tmp_path: Path, line: bytes) -> None:
    written = new(tmp_path)
    with pytest.raises(KoptError, match=r"line 2 of journal\.jsonl is not as kopt wrote it: it is not an event"):
        journal.read(written.path.read_bytes() + line + b"\n")


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_full_disk_leaves_the_journal_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    written = new(tmp_path)
    before = written.path.read_bytes()

    def full(descriptor: int, data: bytes = b"") -> int:
        if data:
            os.pwrite(descriptor, data[:7], 0)  # O_APPEND: it goes to the end all the same
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, failing, full)
        with pytest.raises(KoptError) as caught:
            written.append(Extended(iterations=1))
    assert caught.value.code == "disk_full"
    assert written.path.read_bytes() == before
    written.append(Extended(iterations=2))
    assert [entry.event for entry in journal.read(written.path.read_bytes()).entries[1:]] == [Extended(iterations=2)]


def test_a_short_write_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = new(tmp_path)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
        with pytest.raises(KoptError, match="no space left"):
            written.append(Extended(iterations=1))
    assert journal.read(written.path.read_bytes()).torn == b""


def test_another_program_that_writes_is_noticed(tmp_path: Path) -> None:
    written = new(tmp_path)
    other = Journal.open(written.path, SEALER)
    other.append(Extended(iterations=1))
    with pytest.raises(KoptError) as caught:
        written.append(Extended(iterations=2))
    assert caught.value.code == "journal_changed"
    assert len(journal.read(written.path.read_bytes()).entries) == 2


def test_a_folder_without_a_journal_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(KoptError, match="is not a run") as caught:
        journal.load(tmp_path / "journal.jsonl")
    assert caught.value.code == "journal_missing"
    (tmp_path / "journal.jsonl").mkdir()
    with pytest.raises(KoptError) as caught:
        journal.load(tmp_path / "journal.jsonl")
    assert caught.value.code == "journal_unreadable"


def test_text_that_no_file_can_hold_is_written_all_the_same(tmp_path: Path) -> None:
    written = new(tmp_path)
    entry = written.append(Masked(version=0, masked=True, why="half \ud800 of a pair, and a\nbreak"))
    line = written.path.read_bytes().splitlines()[1]
    assert json.loads(line)["event"]["why"] == "half � of a pair, and a\nbreak"
    assert entry.n == 2
    assert len(journal.read(written.path.read_bytes()).entries) == 2
