"""Seals of a journal's lines: each fits one run, one place and one past, and an edit without the key is found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.store.seal import ensure_key, key_id
from kbs.common.errors import KoptError
from loop.journal import journal, seeds
from loop.journal.events import Created, Extended
from loop.journal.journal import Journal
from loop.journal.seals import Sealer, Sealing
from loop.journal.state import Phase
from loop.run.driver import read_run
from tests.loop.driving import opened

KEY, OTHER = b"\1" * 32, b"\2" * 32
OWN = Sealer("run-a", KEY, began=True)
Lines = list[bytes]


def written(folder: Path, sealer: Sealer | None = OWN, events: int = 4) -> Lines:
    """The lines of a journal."""
    head, made = journal.FIRST, Lines()
    for number in range(1, events + 1):
        event = Created(record="0" * 64, files={}) if number == 1 else Extended(iterations=number)
        entry = journal.Entry(n=number, time="2026-11-21T07:14:00Z", prev=head, event=event)
        made.append(journal.render(entry, sealer))
        head = hashlib.sha256(made[-1]).hexdigest()
    (folder / "journal.jsonl").write_bytes(b"".join(line + b"\n" for line in made))
    return made


def chained(lines: Lines) -> Lines:
    """The same lines with hashes and numbers that are right, and the seals that they had."""
    head, made = journal.FIRST, Lines()
    for number, line in enumerate(lines, 1):
        fields = json.loads(line) | {"n": number, "prev": head}
        made.append(json.dumps(fields, separators=(",", ":")).encode())
        head = hashlib.sha256(made[-1]).hexdigest()
    return made


def bare(line: bytes) -> bytes:
    """A line without its seal."""
    fields = json.loads(line)
    del fields["seal"]
    return json.dumps(fields, separators=(",", ":")).encode()


def test_every_line_is_sealed(tmp_path: Path) -> None:
    lines = written(tmp_path)
    assert [json.loads(line)["seal"]["key_id"] for line in lines] == [key_id(KEY)] * 4
    found = journal.read((tmp_path / "journal.jsonl").read_bytes())
    assert OWN.check(found.lines) == Sealing(
        state="own key", line=0, detail="Every line is sealed with this KOPT_HOME's key."
    )
    assert chained(lines) == lines


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("an event", lambda lines: [*lines[:2], lines[2].replace(b":3}", b":9}"), lines[3]], 3),
        ("a time", lambda lines: [lines[0].replace(b"07:14", b"07:15"), *lines[1:]], 1),
        ("another place", lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
        ("a line left out", lambda lines: [lines[0], *lines[2:]], 2),
        ("a line twice", lambda lines: [*lines, lines[3]], 5),
        ("a line without its seal", lambda lines: [*lines[:3], bare(lines[3])], 4),
        ("the first line without its seal", lambda lines: [bare(lines[0]), *lines[1:]], 1),
        ("no seal at all", lambda lines: [bare(line) for line in lines], 1),
        ("a seal with a letter more", lambda lines: [*lines[:3], lines[3].replace(b'"}}', b'0"}}')], 4),
        ("a space in a line", lambda lines: [lines[0].replace(b'"n":', b'"n": '), *lines[1:]], 1),
    ],
)
def test_an_edit_without_the_key_is_found(
    tmp_path: Path, name: str, change: Callable[[Lines], Lines], line: int
) -> None:
    lines = written(tmp_path)
    changed = change(lines)
    if name != "a space in a line":  # chaining writes lines in their one form again
        changed = chained(changed)
    assert (OWN.check(changed).state, OWN.check(changed).line) == ("broken", line)


def test_a_line_fits_no_other_run(tmp_path: Path) -> None:
    lines = written(tmp_path)
    found = Sealer("run-b", KEY, began=True).check(lines)
    assert (found.state, found.line) == ("broken", 1)
    assert "run-b" in found.detail


def test_a_seal_of_another_key_is_foreign_and_of_two_keys_broken(tmp_path: Path) -> None:
    lines = written(tmp_path, Sealer("run-a", OTHER, began=True))
    assert OWN.check(lines).state == "foreign key"
    assert Sealer("run-a", None, began=False).check(lines).state == "foreign key"
    own = written(tmp_path)
    assert OWN.check([*own[:3], lines[3]]).line == 4
    claimed = [line.replace(key_id(OTHER).encode(), key_id(KEY).encode()) for line in lines]
    assert OWN.check(claimed).state == "broken"


def test_a_run_of_before_seals_has_none(tmp_path: Path) -> None:
    lines = written(tmp_path, None)
    assert b"seal" not in b"".join(lines)
    assert Sealer("run-a", KEY, began=False).check(lines).state == "none"
    assert OWN.check(lines).state == "broken"
    opened_again = Journal.open(tmp_path / "journal.jsonl", Sealer("run-a", KEY, began=False))
    assert opened_again.append(Extended(iterations=1)).seal is None
    assert journal.read((tmp_path / "journal.jsonl").read_bytes()).entries[-1].seal is None


def test_a_half_sealed_journal_cannot_be_read(tmp_path: Path) -> None:
    lines = written(tmp_path)
    for changed in ([*lines[:3], bare(lines[3])], [bare(lines[0]), *lines[1:]]):
        with pytest.raises(KoptError, match="sealed, unlike the lines before"):
            journal.read(b"".join(line + b"\n" for line in chained(changed)))


@pytest.mark.processes
def test_a_run_goes_on_only_with_the_key_that_it_began_with(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as driver:
        assert driver.advance() is Phase.PROPOSE
        lines = len(driver.state.entries)
        assert all(entry.seal is not None for entry in driver.state.entries)
    home = tmp_path / "home"
    assert seeds.sealed(home, driver.record.id)
    key = home / "receipt.key"
    kept = key.read_bytes()
    key.unlink()
    ensure_key(home)
    with pytest.raises(KoptError) as caught, opened(tmp_path / "run"):
        pass
    assert caught.value.code == "journal_foreign"
    assert "KOPT_HOME" in caught.value.hint
    assert len(read_run(tmp_path / "run").state.entries) == lines, "it can still be read"
    key.write_bytes(kept)
    with opened(tmp_path / "run") as driver:
        assert driver.phase is Phase.PROPOSE


@pytest.mark.processes
def test_a_journal_without_its_seals_is_not_taken_for_an_old_one(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as driver:
        driver.advance()
    path = tmp_path / "run" / "journal.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in chained(list(map(bare, path.read_bytes().splitlines())))))
    said = "no line has a seal, although this KOPT_HOME began the run"
    with pytest.raises(KoptError, match=said) as caught, opened(tmp_path / "run"):
        pass
    assert caught.value.code == "journal_edited"
