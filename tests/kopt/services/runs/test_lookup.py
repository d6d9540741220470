"""Which run is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kopt.services.runs.lookup import find_run, runs_below, runs_of_home
from loop.journal.registry import remember


def make(root: Path) -> Path:
    """A folder that is taken for a run's; what stands in it is not read."""
    (root / "v0").mkdir(parents=True)
    (root / "run.json").write_text("{}", "utf-8")
    (root / "journal.jsonl").write_text("", "utf-8")
    return root


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Two runs below runs/, something else beside them, and a third elsewhere."""
    for name in ("gemm-001", "softmax-001"):
        make(tmp_path / "work" / "runs" / name)
    (tmp_path / "work" / "runs" / "notes").mkdir()
    remember(tmp_path / "home", "softmax-20261121-140000-abcd", make(tmp_path / "elsewhere"))
    remember(tmp_path / "home", "gone-20261121-140000-abcd", tmp_path / "gone")
    return tmp_path / "work"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("runs/gemm-001", "work/runs/gemm-001"),
        ("gemm-001", "work/runs/gemm-001"),
        ("g", "work/runs/gemm-001"),
        ("softmax-001", "work/runs/softmax-001"),
        ("softmax-2026", "elsewhere"),
        ("softmax-20261121-140000-abcd", "elsewhere"),
        ("../elsewhere", "elsewhere"),
    ],
)
def test_a_run_by_folder_name_or_id(workspace: Path, given: str, found: str) -> None:
    assert find_run(given, workspace, workspace.parent / "home").root == workspace.parent / found


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("softmax", "run_ambiguous"),
        ("gone-20261121-140000-abcd", "run_unknown"),
        ("runs/notes", "run_unknown"),
        ("a\0b", "run_unknown"),
        ("\x1b[31m", "run_unknown"),
        (None, "run_not_named"),
    ],
)
def test_a_run_that_cannot_be_told(workspace: Path, given: str | None, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_run(given, workspace, workspace.parent / "home")
    assert caught.value.code == code
    assert "\x1b" not in caught.value.message


def test_without_a_name_it_is_the_one_here_or_the_only_one(workspace: Path) -> None:
    home = workspace.parent / "home"
    assert find_run(None, workspace / "runs" / "gemm-001" / "v0", home).root == workspace / "runs" / "gemm-001"
    (workspace / "runs" / "softmax-001" / "run.json").unlink()
    assert find_run(None, workspace, home).root == workspace / "runs" / "gemm-001"


def test_runs_are_listed_by_name_and_only_where_they_are(workspace: Path) -> None:
    assert [run.root.name for run in runs_below(workspace)] == ["gemm-001", "softmax-001"]
    assert runs_below(workspace.parent / "nowhere") == []
    assert [run.root.name for run in runs_of_home(workspace.parent / "home")] == ["elsewhere"]
