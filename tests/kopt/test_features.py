"""docs/features.md: every command of it that needs no GPU, typed in order, does what its row says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, Run

PAGE = (ROOT / "docs" / "features.md").read_text("utf-8")
FILES = ROOT / "tests" / "golden" / "contract" / "files"
NOT_YET = "*not there yet*"
_REFERENCE = re.compile(r"gpu-wiki/[\w/.-]+\.md:L\d+(?:-L\d+)?")
_ULID = re.compile(r"log/([0-9A-HJKMNP-TV-Z]{26})")


@dataclass(frozen=True)
class Row:
    """A row of the page."""

    line: int
    command: str
    """Empty where the feature is not there yet."""
    exit: int
    words: tuple[str, ...]
    """What must stand in the output."""
    gpu: bool


def rows() -> list[Row]:
    """The rows of all tables, in order."""
    found = []
    for number, line in enumerate(PAGE.splitlines(), 1):
        if not line.startswith("| ") or line.startswith("| feature |"):
            continue
        _, _, command, seen, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
        code = re.search(r"exit (\d)", seen)
        typed = command.strip("`") if command != NOT_YET else ""
        found.append(
            Row(number, typed, int(code[1]) if code else 0, tuple(re.findall(r"`([^`]+)`", seen)), "*GPU*" in seen)
        )
    return found


class Typist:
    """Types commands in a workspace, and remembers what was printed."""

    def __init__(self, run: Callable[..., Run], home: Path, folder: Path) -> None:
        self.run, self.home, self.folder = run, home, folder
        self.known = {"FILES": str(FILES)}

    def type(self, command: str) -> tuple[int, str]:
        """(exit code, what it printed)"""
        filled = re.sub(r"\$(FILES|REF|ID)", lambda name: self.known[name[1]], command)
        if filled.startswith("kopt "):
            done = self.run(self.home, *shlex.split(filled)[1:], cwd=self.folder)
            code, printed = done.code, done.out + done.err
        else:
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environment = {**os.environ, "PATH": path, "KOPT_HOME": str(self.home)}
            made = subprocess.run(
                ["sh", "-c", filled], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60
            )
            code, printed = made.returncode, made.stdout + made.stderr
        for name, pattern in (("REF", _REFERENCE), ("ID", _ULID)):
            if last := pattern.findall(printed):
                self.known[name] = last[-1]
        return code, printed


@pytest.mark.processes
@pytest.mark.slow
def test_every_command_does_what_its_row_says(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in ("kernel.py", "ref.py"):
        (folder / name).write_bytes((FILES / name).read_bytes())
    typist, wrong = Typist(run, home, folder), []
    for row in rows():
        if not row.command or row.gpu:
            continue
        code, printed = typist.type(row.command)
        shown = " ".join(printed.split()).casefold()
        missing = [word for word in row.words if " ".join(word.split()).casefold() not in shown]
        if code != row.exit or missing:
            wrong.append(
                f"docs/features.md:{row.line}: {row.command}\n  exit {code}, lacks {missing}\n{printed[-1500:]}"
            )
    assert not wrong, "\n".join(wrong)


def test_every_part_of_kopt_has_rows() -> None:
    found = rows()
    assert len([row for row in found if row.command and not row.gpu]) >= 60
    typed = " ".join(row.command for row in found)
    for group in (
        "ask",
        "bench",
        "cite",
        "diagnose",
        "log",
        "profile",
        "roofline",
        "run",
        "sass",
        "search",
        "spec",
        "wiki",
    ):
        assert f"kopt {group} " in typed, group


def test_only_what_is_shown_or_said_to_be_missing_stands_there() -> None:
    for row in rows():
        assert row.command or NOT_YET in PAGE.splitlines()[row.line - 1]
        assert not row.gpu or row.words
