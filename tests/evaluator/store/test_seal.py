"""Seals: any edit is found, and the key is made once and never replaced."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.receipt.receipt import content_id, parse, render
from evaluator.store import seal
from evaluator.store.seal import KEY_FILE, ensure_key, key_id, load_key, verify
from kbs.common import canonical_json as canonical
from kbs.common.errors import ConfigurationError, KoptError
from tests.evaluator.receipts import receipt

KEY, OTHER_KEY = bytes(range(32)), bytes(32)
SEALED = render(seal.seal(receipt(), KEY))
DOCUMENT: dict[str, Any] = json.loads(SEALED)


def test_a_sealed_receipt_verifies() -> None:
    found = verify(SEALED, KEY)
    assert (found.content, found.seal, found.ok) == ("intact", "own key", True)
    assert parse(SEALED).id == receipt().id


RUNS = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "loop" / "h200"
RECORDED = sorted(path.relative_to(RUNS) for path in RUNS.glob("*/**/receipt.json"))


@pytest.mark.parametrize("path", RECORDED, ids=map(str, RECORDED))
def test_receipts_of_recorded_runs_are_intact(path: Path) -> None:
    """Sealed elsewhere, by an earlier version: a field that is added since may not change what a receipt comes to."""
    found = verify((RUNS / path).read_bytes(), KEY)
    assert (found.content, found.seal) == ("intact", "foreign key")


def test_runs_were_recorded() -> None:
    assert len(RECORDED) >= 20


@pytest.mark.parametrize(
    ("data", "key", "state"),
    [
        (SEALED, OTHER_KEY, "foreign key"),
        (SEALED, None, "foreign key"),
        (render(receipt()), KEY, "none"),
        (render(receipt()), None, "none"),
    ],
)
def test_content_is_checked_without_the_key(data: bytes, key: bytes | None, state: str) -> None:
    found = verify(data, key)
    assert (found.content, found.seal, found.ok) == ("intact", state, False)


def test_sealing_again_replaces_the_seal() -> None:
    again = render(seal.seal(parse(SEALED), OTHER_KEY))
    assert verify(again, OTHER_KEY).ok
    assert render(seal.seal(parse(again), KEY)) == SEALED


@settings(max_examples=400, deadline=None)
@given(st.integers(0, len(SEALED) - 1), st.sampled_from(["flip", "delete", "insert"]), st.integers(1, 255))
def test_any_one_byte_matters(place: int, edit: str, byte: int) -> None:
    if edit == "flip":
        data = SEALED[:place] + bytes([SEALED[place] ^ byte]) + SEALED[place + 1 :]
    elif edit == "delete":
        data = SEALED[:place] + SEALED[place + 1 :]
    else:
        data = SEALED[:place] + bytes([byte]) + SEALED[place:]
    assert not verify(data, KEY).ok
    foreign = verify(data, OTHER_KEY)
    assert not foreign.ok
    if foreign.content == "intact":  # then the edit is one of the seal itself, which only the key's owner can see
        assert data.index(b'"seal"') < place
        assert foreign.seal == "foreign key"


@pytest.mark.slow
def test_every_byte_matters() -> None:
    passed = [
        place
        for place in range(len(SEALED))
        if verify(SEALED[:place] + bytes([SEALED[place] ^ 1]) + SEALED[place + 1 :], KEY).ok
    ]
    assert passed == []


def test_bytes_after_the_end_matter() -> None:
    for more in (b"\n", b" ", b"\0", b"{}"):
        assert not verify(SEALED + more, KEY).ok


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(DOCUMENT).encode(),
        json.dumps(DOCUMENT, indent=1).encode(),
        json.dumps(DOCUMENT, indent=1, sort_keys=True).encode() + b"\n",  # π as an escape
        SEALED.replace(b'"seconds": 1.25', b'"seconds": 125e-2'),
        SEALED.replace(b"\n", b"\r\n"),
        SEALED[:-1],
    ],
    ids=["one line", "unsorted", "escapes", "another spelling of a number", "CRLF", "no last newline"],
)
def test_the_same_in_other_bytes_is_not_canonical(data: bytes) -> None:
    found = verify(data, KEY)
    assert (found.content, found.seal, found.ok) == ("not canonical", "broken", False)


def forged(**changes: Any) -> dict[str, Any]:
    """The document with changes and the id that then belongs to it."""
    document = {**DOCUMENT, **changes}
    return {**document, "id": content_id(document)}


def test_a_new_id_does_not_help_a_forger() -> None:
    found = verify(canonical.dumps(forged(reason="right, believe me")), KEY)
    assert (found.content, found.seal, found.ok) == ("intact", "broken", False)


def test_nor_does_taking_the_seal_off() -> None:
    found = verify(canonical.dumps(forged(reason="right, believe me", seal=None)), KEY)
    assert (found.content, found.seal, found.ok) == ("intact", "none", False)


def test_nor_does_another_key() -> None:
    document = forged(reason="right, believe me", seal=None)
    data = render(seal.seal(parse(canonical.dumps(document)), OTHER_KEY))
    assert verify(data, KEY).seal == "foreign key"
    claims = json.loads(data)
    claims["seal"]["key_id"] = key_id(KEY)
    assert verify(canonical.dumps(claims), KEY).seal == "broken"


def test_the_name_of_the_key_is_part_of_the_seal() -> None:
    document = {**DOCUMENT, "seal": {**DOCUMENT["seal"], "key_id": "0" * 16}}
    assert verify(canonical.dumps(document), KEY).seal == "broken"


@pytest.mark.parametrize(
    "changes",
    [
        {"correctness": []},
        {"hazards": [{"id": "patched", "severity": "reject", "evidence": "torch.allclose", "line": 0}]},
        {"seed": "0" * 64},
        {"schema_version": 3},
        {"more": 1},
        {"seconds": 1},
    ],
    ids=str,
)
def test_a_receipt_that_contradicts_itself_is_not_intact(changes: dict[str, Any]) -> None:
    """Even where its id, and a seal made with the key, fit."""
    document = forged(**changes, seal=None)
    document["seal"] = {"algorithm": "HMAC-SHA256", "key_id": key_id(KEY), "mac": seal.document_mac(document, KEY)}
    found = verify(canonical.dumps(document), KEY)
    assert found.content in ("changed", "not canonical")
    assert not found.ok


@settings(deadline=None)
@given(st.binary() | st.sampled_from([b"{}", b"[]", b"[" * 10**5, b'{"kind": "kopt-receipt"}', b"null"]))
def test_what_is_no_receipt_is_told_and_raises_nothing(data: bytes) -> None:
    found = verify(data, KEY)
    assert (found.content, found.ok) == ("changed", False)
    assert found.detail


@pytest.mark.parametrize("value", [1, "x", [], {}, {"key_id": 1, "mac": 2}, {"key_id": "ü", "mac": "ü"}], ids=str)
def test_a_seal_that_is_none(value: object) -> None:
    found = verify(canonical.dumps({**DOCUMENT, "seal": value}), KEY)
    assert (found.content, found.ok) == ("changed", False)


# --- the key ----------------------------------------------------------------------------------------------------------

MAKE = """
import sys, time
from pathlib import Path
from evaluator.store.seal import ensure_key
home = Path(sys.argv[1])
print("ready", flush=True)
while not (home.parent / "go").exists():
    pass
print(ensure_key(home).hex(), flush=True)
"""


def test_the_key_is_made_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert load_key(home) is None
    assert not home.exists()
    key = ensure_key(home)
    assert len(key) == 32
    assert ensure_key(home) == load_key(home) == key
    assert stat.S_IMODE((home / KEY_FILE).stat().st_mode) == 0o600
    assert ensure_key(tmp_path / "other") != key


@pytest.mark.processes
def test_processes_that_make_the_key_at_once_get_the_same(tmp_path: Path) -> None:
    words = [sys.executable, "-c", MAKE, str(tmp_path / "home")]
    makers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for maker in makers:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "ready\n"
    (tmp_path / "go").touch()
    keys = {maker.communicate(timeout=60)[0].strip() for maker in makers}
    stored = load_key(tmp_path / "home")
    assert stored is not None
    assert keys == {stored.hex()}
    assert [path.name for path in (tmp_path / "home").glob(".*.tmp")] == []


KILLED = """
import os, signal, sys
from pathlib import Path
from kbs.common import files
from evaluator.store.seal import ensure_key
files.os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
ensure_key(Path(sys.argv[1]))
"""


@pytest.mark.processes
def test_a_process_killed_while_it_makes_the_key_leaves_none(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert load_key(tmp_path) is None
    assert len(ensure_key(tmp_path)) == 32


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_key_is_an_error_and_stays(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    home = tmp_path_factory.mktemp("home")
    ensure_key(home)
    whole = (home / KEY_FILE).read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    edits = [whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], whole + b"\n"]
    damaged = data.draw(st.sampled_from(edits))
    (home / KEY_FILE).write_bytes(damaged)
    for use in (load_key, ensure_key):
        with pytest.raises(ConfigurationError) as caught:
            use(home)
        assert caught.value.code == "receipt_key_damaged"
        assert caught.value.hint
        assert whole.decode().split()[1] not in caught.value.message
    assert (home / KEY_FILE).read_bytes() == damaged


def test_a_key_that_others_can_read_is_an_error(tmp_path: Path) -> None:
    ensure_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o640)
    with pytest.raises(ConfigurationError, match="mode 0640") as caught:
        ensure_key(tmp_path)
    assert caught.value.code == "receipt_key_exposed"


def test_a_key_that_is_no_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).mkdir()
    with pytest.raises(ConfigurationError) as caught:
        ensure_key(tmp_path)
    assert caught.value.code == "receipt_key_unreadable"


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_the_umask_does_not_widen_the_key(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        (tmp_path / "home").mkdir(mode=0o700)
        (tmp_path / "home").chmod(0o700)
        ensure_key(tmp_path / "home")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "home" / KEY_FILE).stat().st_mode) == 0o600


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KoptError) as caught:
        ensure_key(tmp_path / "file" / "home")
    assert caught.value.hint


def test_a_lock_that_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal, "LOCK_SECONDS", 0)
    with FileLock(tmp_path / f"{KEY_FILE}.lock"), pytest.raises(KoptError) as caught:
        ensure_key(tmp_path)
    assert caught.value.code == "receipt_key_busy"
