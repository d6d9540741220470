"""What is longer than the screen goes through the user's pager, on a terminal alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import typer

from kbs.common.json_model import JsonModel
from kopt.cli.output import Reply, deliver
from kopt.cli.terminal.pager import pager_command, rows
from tests.kopt.cli.terminal.test_console import Terminal

LONG = "a line of a long answer\n" * 30


def test_the_pager_is_the_users() -> None:
    assert pager_command({"TERM": "xterm", "PAGER": f"{sys.executable} -u"}) == [sys.executable, "-u"]
    for none in ({"PAGER": ""}, {"PAGER": "cat"}, {"PAGER": "no-such-pager"}, {"PAGER": "'"}, {"TERM": "dumb"}):
        assert pager_command({"TERM": "xterm", "PAGER": sys.executable, **none}) == []


def test_rows_are_those_of_the_terminal() -> None:
    assert rows("1234567890\n\x1b[1mabc\x1b[0m\n", 5) == 4
    assert rows("\x1b]8;id=1;file:///a-long-address\x1b\\abc\x1b]8;;\x1b\\", 5) == 1


@pytest.mark.processes
@pytest.mark.parametrize(
    ("text", "flag", "tty", "pages"),
    [(LONG, True, True, True), ("short\n", True, True, False), (LONG, False, True, False), (LONG, True, False, False)],
    ids=["long", "short", "no-pager", "no terminal"],
)
def test_a_long_answer_is_paged(
    text: str, flag: bool, tty: bool, pages: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "pager"
    script.write_text(f"#!/bin/sh\ncat > {tmp_path / 'paged'}\n")
    script.chmod(0o755)
    for name, value in (("PAGER", str(script)), ("TERM", "xterm"), ("COLUMNS", "80"), ("LINES", "24")):
        monkeypatch.setenv(name, value)
    stream = Terminal()
    monkeypatch.setattr(stream, "isatty", lambda: tty)
    monkeypatch.setattr(sys, "stdout", stream)
    reply = Reply(JsonModel(), lambda console: console.print(text, markup=False, end=""))
    with pytest.raises(typer.Exit):
        deliver("x", False, False, lambda: reply, paged=flag)
    paged = tmp_path / "paged"
    assert (paged.read_text() if paged.exists() else "", stream.getvalue()) == ((text, "") if pages else ("", text))
