"""Asking a program for a proposal: what it may do wrong, each with its name, and nothing of it left running."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.common import programs
from kbs.common.errors import ConfigurationError, UsageError
from loop.proposals.proposal import Proposal
from loop.proposers import command
from loop.proposers.command import ask, find_program, split_command
from loop.proposers.reading import Unread, read_proposal
from tests.waiting import has_ended, wait_until

pytestmark = pytest.mark.processes

PROPOSAL: dict[str, Any] = {
    "version": 1,
    "parent": 0,
    "kernel": "x = 1\n",
    "methods": ["launch_config"],
    "hypothesis": {
        "current_evidence": "one warp a row",
        "decision_link": "more warps load more at a time",
        "single_change": "four warps in place of one",
        "rationale": "loads in flight",
        "expected": [{"metric": "time", "direction": "down", "size": "by a fifth"}],
        "risk": "none known",
        "decision_rule": "kept if faster than its parent",
    },
    "evidence": {"selected": [{"reference": "gpu-wiki/kernel/softmax.md:L30", "quote": "", "why": "says so"}]},
}


def program(tmp_path: Path, text: str) -> tuple[str, ...]:
    (tmp_path / "proposer.py").write_text(text, "utf-8")
    return (sys.executable, "proposer.py")


def test_a_program_is_asked_in_its_folder_and_its_answer_read(tmp_path: Path) -> None:
    words = program(
        tmp_path,
        "import json, os, sys\n"
        "request = json.load(sys.stdin)\n"
        "print('thinking', os.getcwd(), file=sys.stderr)\n"
        "print(json.dumps(request['answer']))\n",
    )
    big = json.dumps({"answer": PROPOSAL, "filling": "x" * 300_000}).encode()
    found = ask(words, big, tmp_path)
    assert found.outcome == Proposal.model_validate(PROPOSAL)
    assert found.stderr == f"thinking {tmp_path}\n"
    assert json.loads(found.stdout)["version"] == 1


def test_a_program_that_does_not_read_may_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(json.dumps(PROPOSAL), "utf-8")
    found = ask(("cat", "answer.json"), b"x" * 1_000_000, tmp_path)
    assert isinstance(found.outcome, Proposal)


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ("import time\ntime.sleep(60)", "command-timeout", "no answer within 1 s"),
        ("raise SystemExit(7)", "command-failed", "status 7"),
        ("import os\nos.kill(os.getpid(), 11)", "command-failed", "signal 11"),
        ("raise ValueError('no idea')", "command-failed", "ValueError: no idea"),
        ("pass", "schema", "nothing in it"),
        ("print('I would suggest more warps.')", "schema", "the document"),
        ("print('{}')", "schema", "hypothesis: Field required"),
        ("import sys\nsys.stdout.buffer.write(bytes(range(256)))", "schema", "the document"),
        ("print('[' * 100000)", "schema", "the document"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "command-flood", "more than"),
    ],
)
def test_what_a_program_may_do_wrong(tmp_path: Path, text: str, rule: str, words: str) -> None:
    seconds = 1.0 if rule == "command-timeout" else 30.0
    started = time.monotonic()
    found = ask(program(tmp_path, text), b"{}", tmp_path, seconds)
    assert isinstance(found.outcome, Unread)
    assert found.outcome.rule == rule
    assert words in " ".join(found.outcome.reasons)
    assert found.outcome.fix
    assert len(found.stdout) <= command.MAX_BYTES + 1
    assert time.monotonic() - started < 20


def test_two_documents_are_no_answer(tmp_path: Path) -> None:
    found = ask(program(tmp_path, f"print({json.dumps(PROPOSAL)!r} * 2)"), b"{}", tmp_path)
    assert isinstance(found.outcome, Unread)


@pytest.mark.slow
def test_all_that_a_hanging_program_started_is_ended(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "open('pid', 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    found = ask(program(tmp_path, text), b"{}", tmp_path, 2.0)
    assert isinstance(found.outcome, Unread)
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: has_ended(pid))


def test_a_signal_that_comes_while_a_program_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def interrupted(*words: Any) -> Any:
        started.append(start(*words))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[0]

    start = programs.start_program
    monkeypatch.setattr(programs, "start_program", interrupted)
    with pytest.raises(SystemExit):
        ask(("sleep", "300"), b"{}", tmp_path)
    assert started[0].poll() is not None


def test_what_a_program_leaves_behind_does_not_hold_the_answer_up(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"print({json.dumps(PROPOSAL)!r})\n"
    )
    started = time.monotonic()
    found = ask(program(tmp_path, text), b"{}", tmp_path, 60.0)
    assert isinstance(found.outcome, Proposal)
    assert time.monotonic() - started < 20


def test_stderr_keeps_its_end(tmp_path: Path) -> None:
    found = ask(program(tmp_path, "import sys\nsys.stderr.write('a' * 300000 + 'END')\nsys.exit(1)"), b"{}", tmp_path)
    assert len(found.stderr) == programs.KEPT
    assert found.stderr.endswith("END")


def test_no_program(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("x", "utf-8")
    for words in (("no-such-program-of-mine",), ("./missing",), ("./plain.txt",)):
        with pytest.raises(ConfigurationError) as caught:
            find_program(words, tmp_path)
        assert caught.value.code == "command_missing"
    script = tmp_path / "script"
    script.write_text("no first line that names an interpreter\n", "utf-8")
    script.chmod(0o755)
    with pytest.raises(ConfigurationError) as caught:
        ask(("./script",), b"{}", tmp_path)
    assert caught.value.code == "command_not_started"


@pytest.mark.parametrize("text", ["", "   ", "'", "''", "a\0b"])
def test_words_that_name_no_program(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        split_command(text)
    assert caught.value.code == "command_invalid"


def test_words_are_split_as_a_shell_does_and_nothing_is_expanded() -> None:
    assert split_command("python 'my proposer.py' $HOME *.py") == ("python", "my proposer.py", "$HOME", "*.py")


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_proposal_or_say_why_not(data: bytes) -> None:
    found = read_proposal(data)
    assert isinstance(found, Proposal) or (found.reasons and found.fix)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8))
@settings(max_examples=100, deadline=None)
def test_any_value_in_place_of_a_field_is_refused_or_fits(value: object) -> None:
    for name in PROPOSAL:
        data = json.dumps({**PROPOSAL, name: value}).encode("utf-8", "surrogatepass")
        found = read_proposal(data)
        assert isinstance(found, Proposal) or all("\n" not in reason for reason in found.reasons)


def test_mistakes_name_their_place() -> None:
    wrong = json.loads(json.dumps(PROPOSAL))
    wrong["hypothesis"]["expected"][0]["direction"] = "sideways"
    wrong["surprise"] = 1
    found = read_proposal(json.dumps(wrong).encode())
    assert isinstance(found, Unread)
    assert any(reason.startswith("hypothesis.expected[0].direction: ") for reason in found.reasons)
    assert any(reason.startswith("surprise: ") for reason in found.reasons)
    assert "run-proposal" in found.fix


def test_a_huge_document_is_not_parsed() -> None:
    found = read_proposal(b"{" + b" " * (command.MAX_BYTES + 1))
    assert isinstance(found, Unread)
    assert "at most" in found.reasons[0]
