"""What a shell is told of half a word: names that are there, plain ones alone, and never an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.cli.main import main

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Complete:
    """What bash is told of a line that ends where the cursor is; nothing may be written to stderr."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def told(line: str) -> list[str]:
        for name, value in (
            ("_KOPT_COMPLETE", "complete_bash"),
            ("COMP_WORDS", line),
            ("COMP_CWORD", str(len(line.split(" ")) - 1)),
        ):
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["kopt"])
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capfd.readouterr()
        assert (done.value.code, err) == (0, "")
        return out.split()

    return told


def test_names_are_proposed_where_they_fit(complete: Complete) -> None:
    assert complete("kopt di") == ["diagnose"]
    assert complete("kopt ask --gpu h100-s") == ["h100-sxm"]
    assert complete("kopt log list --chip h100-s") == ["h100-sxm"]
    assert complete("kopt spec h100-sxm hbm_") == ["hbm_bandwidth"]
    assert complete("kopt spec compare h100-s") == ["h100-sxm"]
    assert complete("kopt show kernel/softm") == ["kernel/softmax"]
    assert complete("kopt wiki history softm") == ["softmax"]
    assert complete("kopt wiki hist") == ["history"]


def test_runs_are_proposed_and_no_name_that_a_shell_evaluates(complete: Complete, tmp_path: Path) -> None:
    for name in ("softmax-001", "$(touch owned)", "a\x1b[2Kb"):
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "run.json").write_text("{}")
    assert complete("kopt run status --run ") == ["softmax-001"]


def test_what_is_broken_proposes_nothing(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "wikis.json").write_text("no JSON")
    (tmp_path / "kopt.toml").write_text("no TOML")
    assert complete("kopt show softm") == []
    assert complete("kopt frobnicate --x y") == []
