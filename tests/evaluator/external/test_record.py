"""The record of the user's own benchmark: what it says, what it cannot say, and that it is no other receipt."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluator.external.command import KEPT, Printed
from evaluator.external.figures import Figure
from evaluator.external.record import NOT_CHECKED, ExternalContent, ExternalReceipt, choose, look, run_external
from evaluator.receipt import document
from evaluator.receipt.document import content_id, render
from evaluator.receipt.problem import SourceRecord
from evaluator.receipt.receipt import parse as parse_measured
from evaluator.source.source_file import SourceFile
from evaluator.store import seal, store
from evaluator.store.seal import verify
from evaluator.store.store import KINDS, parse
from kbs.common import canonical_json as canonical
from kbs.common.errors import ExitCode, UsageError
from kbs.common.json_model import document_schema
from tests.evaluator.receipts import receipt, source_record

KEY = bytes(range(32))
SOURCE = SourceFile(name="kernel.py", text="def run(x):\n    return x  # π\n")


def figure(**changes: Any) -> Figure:
    """A figure that stands in the second line."""
    fields: dict[str, Any] = {
        "name": "median",
        "value": 136.3,
        "unit": "us",
        "source": "default",
        "stream": "stdout",
        "line": 2,
        "text": "median: 136.3 us",
    }
    return Figure(**{**fields, **changes})


def content(**changes: Any) -> ExternalContent:
    """A command that came to a good end."""
    fields: dict[str, Any] = {
        "created": "2026-11-21T10:15:00Z",
        "plan": "verdict",
        "option": "--bench-command",
        "command": ("python", "bench.py"),
        "time_limit": 600.0,
        "exit_code": 0,
        "timed_out": False,
        "seconds": 1.25,
        "left_running": 0,
        "patterns": {},
        "figures": (figure(),),
        "notes": (),
        "stdout": Printed(text="hello\nmedian: 136.3 us\n", size=23),
        "stderr": Printed(text="", size=0),
        "candidate": SourceRecord(name=SOURCE.name, text=SOURCE.text, hash=SOURCE.hash),
        "environment": look("0.1.0"),
        "not_checked": NOT_CHECKED,
    }
    return ExternalContent(**{**fields, **changes})


MADE = ExternalReceipt.of(content())
SEALED = render(seal.seal(MADE, KEY))
DOCUMENT: dict[str, Any] = json.loads(SEALED)


# --- one kind among two -----------------------------------------------------------------------------------------------


def test_it_comes_back_from_its_bytes_and_verifies_as_external() -> None:
    again = parse(SEALED)
    assert isinstance(again, ExternalReceipt)
    assert render(again) == SEALED
    found = verify(SEALED, KEY)
    assert (found.content, found.seal, found.ok, found.evidence) == ("intact", "own key", True, "external")
    assert verify(SEALED, None).evidence == "external"
    assert verify(render(receipt()), KEY).evidence == "measured"
    assert verify(b"{}", KEY).evidence is None


def test_every_kind_says_what_evidence_it_is() -> None:
    for kind, model in KINDS.items():
        assert model.model_fields["kind"].default == kind
        assert model.model_fields["evidence"].default in ("measured", "external")
    assert len({model.model_fields["evidence"].default for model in KINDS.values()}) == len(KINDS)


def test_it_is_no_receipt_that_could_be_replayed() -> None:
    with pytest.raises(UsageError) as caught:
        parse_measured(SEALED)
    assert (caught.value.code, caught.value.exit_code) == ("external_receipt", ExitCode.USAGE)
    assert "Run the command again" in caught.value.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "kopt-receipt"},
        {"evidence": "measured"},
        {"kind": "kopt-receipt", "evidence": "measured"},
        {"exit_code": 1.5},
        {"verdict": "accepted"},
        {"schema_version": 2},
        {"figures": [{**DOCUMENT["figures"][0], "value": 1.0, "text": "median: 1.0 us"}]},
    ],
    ids=str,
)
def test_it_cannot_pass_for_what_it_is_not(changes: dict[str, Any]) -> None:
    """Even where the id, and a seal made with the key, fit."""
    forged = {**DOCUMENT, **changes, "seal": None}
    forged["id"] = content_id(forged)
    forged["seal"] = {"algorithm": "HMAC-SHA256", "key_id": seal.key_id(KEY), "mac": seal.document_mac(forged, KEY)}
    data = canonical.dumps(forged)
    assert not verify(data, KEY).ok
    with pytest.raises(UsageError):
        parse(data)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_any_one_byte_matters(place: int, byte: int) -> None:
    assert not verify(SEALED[:place] + bytes([SEALED[place] ^ byte]) + SEALED[place + 1 :], KEY).ok


def test_a_foreign_one_is_not_said_to_be_replayable() -> None:
    found = verify(SEALED, bytes(32))
    assert found.seal == "foreign key"
    assert "replay" not in found.detail
    assert "replay" in verify(render(seal.seal(receipt(), KEY)), bytes(32)).detail


def test_it_is_kept_as_other_receipts_are(tmp_path: Path) -> None:
    sealed = seal.seal(MADE, KEY)
    path = store.save_receipt(tmp_path, sealed)
    assert path == tmp_path / "receipts" / f"{MADE.id[:16]}.json"
    assert store.read_receipt(path) == SEALED
    chosen = tmp_path / "chosen.json"
    for made in (receipt(), sealed, receipt()):  # one kind may take the other's place, where the user says so
        store.check_chosen(chosen)
        assert store.save_receipt(tmp_path, made, chosen) == chosen
    path.write_bytes(render(receipt()))
    with pytest.raises(UsageError) as caught:
        store.save_receipt(tmp_path, sealed)
    assert caught.value.code == "receipt_exists"


# --- what contradicts itself ------------------------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"timed_out": True}, "exactly where"),
        ({"exit_code": None}, "exactly where"),
        ({"option": "--signal-command"}, "for another plan"),
        ({"figures": (figure(line=1),)}, "line 1 of stdout is not the one"),
        ({"figures": (figure(line=9),)}, "line 9 of stdout"),
        ({"figures": (figure(stream="stderr", line=1),)}, "line 1 of stderr"),
        ({"figures": (figure(source="pattern"),)}, "no pattern median"),
        ({"command": ()}, "at least 1 item"),
        ({"evidence": "measured"}, "external"),
        ({"candidate": {**source_record("a.py", "a").model_dump(), "text": "b"}}, "not that of the text"),
        ({"more": 1}, "Extra inputs"),
        ({"seconds": float("nan")}, "finite"),
    ],
    ids=str,
)
def test_what_contradicts_itself(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        content(**changes)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_is_finite(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        figure(value=value)


def test_the_id_is_that_of_the_content() -> None:
    fields = {name: getattr(MADE, name) for name in ExternalReceipt.model_fields}
    with pytest.raises(ValidationError, match="the id is not the hash"):
        ExternalReceipt(**{**fields, "seconds": 2.0})


def test_every_field_is_described() -> None:
    schema = document_schema(ExternalReceipt)
    models = {"ExternalReceipt": schema, **schema["$defs"]}
    bare = [
        f"{model}.{name}"
        for model, described in models.items()
        for name, field in described.get("properties", {}).items()
        if not field.get("description")
    ]
    assert bare == []


# --- from a run to a record -------------------------------------------------------------------------------------------


def ran(*words: str, seconds: float = 20, patterns: dict[str, str] | None = None) -> ExternalReceipt:
    """What is written down of a command."""
    return run_external(
        SOURCE, "--bench-command", words, plan="verdict", seconds=seconds, patterns=patterns or {}, kopt="0.1.0"
    )


@pytest.mark.processes
def test_a_run_is_written_down() -> None:
    made = ran("sh", "-c", "echo 'median: 5 us'; echo 'mean: 6 us' >&2")
    assert parse(render(made)) == made
    assert [(f.name, f.value, f.stream) for f in made.figures] == [("median", 5, "stdout"), ("mean", 6, "stderr")]
    assert (made.exit_code, made.failed, made.timed_out, made.notes) == (0, False, False, ())
    assert (made.candidate.text, made.candidate.hash) == (SOURCE.text, SOURCE.hash)
    assert made.command == ("sh", "-c", "echo 'median: 5 us'; echo 'mean: 6 us' >&2")
    assert any("correctness" in text for text in made.not_checked)


@pytest.mark.processes
def test_neither_the_folder_nor_the_environment_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_SECRET", "hush-hush")
    data = render(ran("true"))
    assert str(tmp_path).encode() not in data
    assert b"hush-hush" not in data


@pytest.mark.processes
def test_a_failed_run_is_written_down_too() -> None:
    made = ran("sh", "-c", "echo 'time: 3 ms'; exit 7")
    assert (made.exit_code, made.failed, len(made.figures)) == (7, True, 1)
    assert parse(render(made)) == made


@pytest.mark.processes
def test_a_run_that_was_ended_loses_its_unfinished_line() -> None:
    for made in (
        ran("sh", "-c", "echo 'time: 3 ms'; printf 'time: 4 ms'; sleep 60", seconds=0.7),
        ran("sh", "-c", "echo 'time: 3 ms'; printf 'time: 4 ms'; kill -9 $$"),
    ):
        assert made.failed
        assert [f.value for f in made.figures] == [3]
        assert parse(render(made)) == made
    assert [f.value for f in ran("printf", "time: 4 ms").figures] == [4]


@pytest.mark.processes
def test_what_was_left_running_is_told() -> None:
    made = ran("sh", "-c", "sleep 60 & echo 'time: 3 ms'")
    assert made.left_running == 1
    assert made.notes == ("the command left 1 processes running, which were ended",)


NOISE = """
import random, sys
r = random.Random(int(sys.argv[1]))
pieces = [b"time: 3 ms", b"{", b"}", b'"a": 1', b"\\xff", b"\\0", b"\\n", b"\\r", b"\\x1b[31m", b"["]
pieces += [b"]", b" 1e999 GB/s "]
for stream in (sys.stdout, sys.stderr):
    stream.buffer.write(b"".join(r.choice(pieces) for _ in range(r.choice([5, 500, 50000]))))
"""


@pytest.mark.processes
@pytest.mark.parametrize("seed", range(8))
def test_nonsense_is_written_down(seed: int) -> None:
    made = ran(sys.executable, "-c", NOISE, str(seed))
    data = render(made)
    assert parse(data) == made
    assert verify(render(seal.seal(made, KEY)), KEY).ok
    assert len(made.stdout.text) <= KEPT


@pytest.mark.processes
@settings(deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4), st.text(), st.text(), st.integers())
def test_any_words_and_any_output_come_back(words: list[str], out: str, err: str, exit_code: int) -> None:
    made = ExternalReceipt.of(
        content(
            command=tuple(words),
            figures=(),
            exit_code=exit_code,
            stdout=Printed(text=out, size=len(out)),
            stderr=Printed(text=err, size=len(err)),
            patterns={out[:5]: err[:5]},
        )
    )
    assert parse(render(made)) == made
    assert verify(render(seal.seal(made, KEY)), KEY).ok


# --- which command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bench", "signal", "plan", "expected"),
    [
        ("a b", None, "verdict", ("--bench-command", ("a", "b"))),
        ("a b", None, "signal", ("--bench-command", ("a", "b"))),
        ("a b", "c", "verdict", ("--bench-command", ("a", "b"))),
        ("a b", "c", "signal", ("--signal-command", ("c",))),
        (None, "c", "signal", ("--signal-command", ("c",))),
    ],
)
def test_the_plan_chooses(bench: str | None, signal: str | None, plan: str, expected: object) -> None:
    assert choose(bench, signal, plan) == expected


@pytest.mark.parametrize(
    ("bench", "signal", "plan", "code"),
    [
        (None, "c", "verdict", "bench_command_invalid"),
        ("", None, "verdict", "bench_command_invalid"),
        ("a", "", "verdict", "bench_command_invalid"),
        ("a", "'b", "verdict", "bench_command_invalid"),
        ("a", None, "guess", "plan_unknown"),
    ],
)
def test_choices_that_make_no_sense(bench: str | None, signal: str | None, plan: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(bench, signal, plan)
    assert caught.value.code == code
    assert caught.value.hint


def test_a_document_of_a_kind_that_is_no_text() -> None:
    for kind in ([], {}, None, 1):
        assert document.model_of({"kind": kind}, KINDS) is None
