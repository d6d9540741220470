"""Runs under ncu, with a script in its place: what it writes, prints and fails at."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest

from evaluator.worker.process.standalone import profiled

pytestmark = pytest.mark.processes

FAKE = """#!/bin/sh
case "$1" in
  --import) echo '"ID","Kernel Name"'; echo '"",""'; echo '"0","softmax"'; exit {printed};;
esac
echo "$@" > words.txt
echo "==PROF== said by ncu"
[ {code} = 0 ] && for word in "$@"; do case "$word" in *.ncu-rep) echo report > "$word";; esac; done
{more}
exit {code}
"""


def fake(folder: Path, *, code: int = 0, printed: int = 0, more: str = "") -> str:
    path = folder / "ncu"
    path.write_text(FAKE.format(code=code, printed=printed, more=more), "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(folder: Path, ncu: str, seconds: float = 20.0) -> dict[str, object]:
    return profiled([ncu, "--set", "basic"], folder, "pass", "package", seconds)


def test_report_and_table_are_files_of_the_folder(tmp_path: Path) -> None:
    found = run(tmp_path, fake(tmp_path))
    assert (found["code"], found["report"], found["csv"]) == (0, "profile.ncu-rep", "profile.csv")
    assert (tmp_path / "profile.csv").read_text("utf-8").splitlines()[2] == '"0","softmax"'
    assert "said by ncu" in str(found["text"])


def test_the_job_stands_behind_the_words_of_ncu(tmp_path: Path) -> None:
    run(tmp_path, fake(tmp_path))
    words = (tmp_path / "words.txt").read_text("utf-8").split()
    assert words[:2] == ["--set", "basic"]
    assert words[-2:] == ["package", str(tmp_path)]
    assert words.index("--export") < words.index("-c")


def test_an_ncu_that_fails_gives_its_words_and_no_files(tmp_path: Path) -> None:
    found = run(tmp_path, fake(tmp_path, code=1, more="echo ERR_NVGPUCTRPERM"))
    assert (found["code"], found["report"], found["csv"]) == (1, "", "")
    assert "ERR_NVGPUCTRPERM" in str(found["text"])


def test_a_report_that_cannot_be_printed_is_kept(tmp_path: Path) -> None:
    found = run(tmp_path, fake(tmp_path, printed=3))
    assert (found["code"], found["report"], found["csv"]) == (3, "profile.ncu-rep", "")


def test_no_ncu(tmp_path: Path) -> None:
    found = run(tmp_path, str(tmp_path / "missing"))
    assert (found["code"], found["csv"]) == (None, "")
    assert "not on the PATH" in str(found["text"])


@pytest.mark.parametrize("hangs", ["exec sleep 60", "sleep 60; exit 0"])
def test_an_ncu_that_hangs_is_ended_with_what_it_started(tmp_path: Path, hangs: str) -> None:
    began = time.monotonic()
    found = run(tmp_path, fake(tmp_path, more=hangs), 0.5)
    assert time.monotonic() - began < 4
    assert (found["code"], found["report"]) == (None, "")
    assert str(found["text"]).splitlines() == ["==PROF== said by ncu", "it did not end in time"]
