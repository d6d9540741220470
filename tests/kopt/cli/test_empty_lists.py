"""One rule for all commands: a list without entries ends with 0 and says so in a sentence; where an answer was asked
for and there is none, the exit code is 3."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from kopt.cli.main import application

LISTS = [
    "log list",
    "log list --masked",
    "log list --outcome success",
    "log search wider loads",
    "log stats",
    "log merge",
    "run list",
    "run list --all",
    "search wider loads --kind experiment",
    "search wider loads --wiki log",
    "wiki gaps",
    "wiki trust --list",
    "wiki refs technique/l2-swizzle:2",
]
ANSWERS = [
    "ask what is the best pizza in Rome",
    "cite 'there is no citation in this'",
    "log recommend --kernel softmax",
    "spec h100-sxm l2_bandwidth",
    "occupancy --gpu mi300x --regs 32 --threads 256",
]


@pytest.fixture
def typed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[int, str]]:
    """Types a command in an empty folder; its exit code, and what it printed."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")

    def run(command: str) -> tuple[int, str]:
        words = shlex.split(command)
        try:
            code = application(words[:1])(words, standalone_mode=False)
        except typer.Exit as done:
            code = done.exit_code
        return code or 0, capsys.readouterr().out

    return run


@pytest.mark.slow
def test_an_empty_list_is_no_failure_and_says_so(typed: Callable[[str], tuple[int, str]]) -> None:
    for command in LISTS:
        code, out = typed(command)
        assert (code, out[:1].isupper() or "no reference" in out, out.count("\n")) == (0, True, 1), (command, code, out)
        code, out = typed(f"{command} --json")
        assert (code, json.loads(out)["status"]) == (0, "ok"), command


@pytest.mark.slow
def test_an_answer_that_is_not_there_is_an_abstention(typed: Callable[[str], tuple[int, str]]) -> None:
    for command in ANSWERS:
        code, out = typed(f"{command} --json")
        assert (code, json.loads(out)["status"]) == (3, "abstained"), command
