"""The help of every command: it fits a terminal, names types as users know them, and groups what is long."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from kopt.cli.command import RARE, command
from kopt.cli.main import app
from kopt.cli.output import Reply

LINES, COLUMNS = 60, 80
TYPES = {"TEXT", "PATH", "INTEGER", "FLOAT", "BYTES", "NAME", "RUN", "NAME|N"}
"""The last four are names that single options give their values."""


def commands(group: Any, words: tuple[str, ...] = ("kopt",), parent: Any = None) -> Iterator[tuple[str, Any]]:
    """Every command and group with a context in which its help can be written."""
    context = type(parent or group.make_context("kopt", [], resilient_parsing=True))(
        group, parent=parent, info_name=words[-1]
    )
    yield " ".join(words), context
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, (*words, name), context)


CONTEXTS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("everything", [False, True], ids=["help", "help-all"])
def test_help_fits_a_terminal(name: str, everything: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    context = CONTEXTS[name]
    context.meta.clear()
    if everything:
        context.meta[RARE] = True
    lines = context.get_help().splitlines()
    assert max(map(len, lines)) <= COLUMNS
    sections = [line for line in lines if re.fullmatch(r"\S.*:", line)]
    assert len(lines) <= LINES or len(sections) >= 5, "group the options, or move rare ones behind --help-all"


@pytest.mark.parametrize("name", CONTEXTS)
def test_types_are_those_that_users_know(name: str) -> None:
    context = CONTEXTS[name]
    for param in context.command.get_params(context):
        if param.param_type_name == "argument" or param.is_flag:
            continue
        shown, _ = param.get_help_record(context) or ("TEXT", "")
        assert shown.split()[-1] in TYPES, shown


@pytest.mark.parametrize("name", CONTEXTS)
def test_everything_is_explained(name: str) -> None:
    context = CONTEXTS[name]
    assert context.command.help
    first = inspect.cleandoc(context.command.help).split("\n\n")[0]
    assert first.endswith((".", "`"))


def test_rare_options_are_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for flag, shown in (("--help", False), ("--help-all", True)):
        assert app(["bench", "run", flag], standalone_mode=False) in (None, 0)
        out = capsys.readouterr().out
        assert ("--nvcc-flags" in out) is shown
        assert "--ref" in out


def test_names_of_options_in_two_groups_are_refused() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Limits:
        time: int = 1

    def clash(limits: Limits, time: int = 2) -> Reply:
        raise AssertionError

    clash.__annotations__ = {"limits": Limits, "time": int}
    with pytest.raises(TypeError, match="time"):
        command("clash")(clash)
