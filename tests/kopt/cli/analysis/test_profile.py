"""`kopt profile --import` as a user types it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.evaluator.ncu_reports import KERNELS, SOFTMAX, raw_csv

FILES = ("ncu_summary.md", "ncu_details.md", "ncu_raw.csv")


def test_the_files_are_written_and_the_slowest_launch_is_said(kopt: Callable[..., Run], tmp_path: Path) -> None:
    raw = raw_csv(*KERNELS.items())
    (tmp_path / "r.csv").write_text(raw)
    result = kopt("profile", "--import", "r.csv", "--json", cwd=tmp_path)
    assert result.code == 0, result.err
    data = result.json["data"]
    assert (data["kernel"], data["why"]) == ("pointer_chase", f"the slowest of {len(KERNELS)} launches")
    assert len(data["launches"]) == len(KERNELS)
    assert [Path(file).name for file in data["files"]] == list(FILES)
    assert (tmp_path / "r-profile" / "ncu_raw.csv").read_text() == raw
    missing = [metric for metric in data["metrics"] if metric["value"] is None]
    assert missing
    assert all(metric["written"] == "" for metric in missing)


def test_a_launch_by_name_a_folder_and_the_terminal(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(*KERNELS.items()))
    shown = kopt("profile", "--import", "r.csv", "--launch", "divergent", "--out", "here", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "divergent: the only launch of divergent" in shown.out
    assert all((tmp_path / "here" / name).is_file() for name in FILES)
    again = kopt("profile", "--import", "here", "--launch", "divergent", "--out", "again", "--json", cwd=tmp_path)
    assert again.json["data"]["kernel"] == "divergent"


def test_files_are_not_overwritten(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("k", SOFTMAX)))
    assert kopt("profile", "--import", "r.csv", cwd=tmp_path).code == 0
    assert kopt("profile", "--import", "r.csv", cwd=tmp_path).code == 0
    (tmp_path / "r-profile" / "ncu_summary.md").write_text("mine")
    again = kopt("profile", "--import", "r.csv", "--json", cwd=tmp_path)
    assert (again.code, again.json["errors"][0]["code"]) == (2, "output_exists")
    assert (tmp_path / "r-profile" / "ncu_summary.md").read_text() == "mine"


def test_what_is_wrong_has_a_name_and_an_exit_code(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("k", SOFTMAX)))
    (tmp_path / "cut.csv").write_text(raw_csv(("k", SOFTMAX))[:-30])
    (tmp_path / "other.csv").write_text('"Time (%)","Total Time (ns)"\n')
    (tmp_path / "forbidden.csv").write_text("==ERROR== ERR_NVGPUCTRPERM\n")
    for words, exit_code, code in (
        (("--import", "cut.csv"), 2, "report_truncated"),
        (("--import", "other.csv"), 2, "report_of_another_tool"),
        (("--import", "forbidden.csv"), 5, "counters_forbidden"),
        (("--import", "r.csv", "--launch", "other_kernel"), 2, "report_of_another_kernel"),
        (("--import", "none.csv"), 2, "file_not_found"),
        ((), 2, "profile_of_what"),
        (("r.csv", "--import", "r.csv"), 2, "profile_of_what"),
    ):
        result = kopt("profile", *words, "--json", cwd=tmp_path)
        assert (result.code, result.json["errors"][0]["code"]) == (exit_code, code), words
        assert result.json["errors"][0]["hint"]
    assert not list(tmp_path.glob("*-profile"))


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is an NVIDIA GPU")
def test_without_a_gpu_nothing_is_profiled(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("x = 1\n")
    result = kopt("profile", "k.py", "--json", cwd=tmp_path)
    assert (result.code, result.json["errors"][0]["code"]) == (6, "no_gpu")
    assert "--import" in result.json["errors"][0]["hint"]


def test_an_unknown_set_of_metrics(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("x = 1\n")
    result = kopt("profile", "k.py", "--set", "everything", "--json", cwd=tmp_path)
    assert (result.code, result.json["errors"][0]["code"]) == (2, "set_unknown")
