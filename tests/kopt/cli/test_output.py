"""What commands write: texts of others are shown, and obeyed by no terminal."""

from __future__ import annotations

import io

import pytest
import typer

from kbs.common.json_model import JsonModel
from kopt.cli.output import Reply, deliver, tell
from kopt.cli.terminal.console import console

EVIL = "+a = 1\x1b[1A\x1b[2K\r-b\u202e = 2\n\tc\n"
SHOWN = r"+a = 1\x1b[1A\x1b[2K\r-b\u202e = 2"


def test_what_is_told_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tell(EVIL)
    assert capsys.readouterr().err == f"{SHOWN}\n\tc\n"


def test_what_is_printed_commands_no_terminal() -> None:
    stream = io.StringIO()
    console(stream).print(EVIL, "[bold]", markup=False, end="")
    assert stream.getvalue().split("\n")[0] == SHOWN
    assert stream.getvalue().endswith("c\n [bold]")


def test_warnings_command_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        deliver("x", False, False, lambda: Reply(JsonModel(), lambda _: None, warnings=["a\x1b[2Kb"]))
    assert capsys.readouterr().err == "warning: a\\x1b[2Kb\n"
