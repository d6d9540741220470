"""A run with no option but the device: the proposer `search`, on the CPU, from the plan to the report."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import KERNEL, workspace

COMMON = ("--device", "cpu", "--yes", "--json")
WAITING = KERNEL.replace(
    "    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    while n < 0:\n        n += 1\n"
)


@pytest.fixture(scope="module")
def finished(
    run: Callable[..., Run], pristine_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, dict[str, Any]]:
    """(KOPT_HOME, workspace, data of `kopt run start`)."""
    top = tmp_path_factory.mktemp("search")
    home = shutil.copytree(pristine_home, top / "home")
    folder = workspace(top / "work")
    done = run(home, "run", "start", *COMMON, "--accept-unmeasured", "--branches", "2", cwd=folder)
    assert done.code == 0, done.out + done.err
    return home, folder, done.json["data"]


def test_three_versions_from_the_plan_to_the_report(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    _, _, data = finished
    found = data["run"]
    assert (found["phase"], found["stopped"], found["proposer"]) == ("finished", "cap", "search")
    assert [(one["version"], one["outcome"], one["kept"]) for one in found["versions"]] == [
        (number, "passed", True) for number in range(4)
    ]
    root = Path(found["folder"])
    said = [json.loads((root / f"v{n}" / "proposal.json").read_text("utf-8")) for n in (1, 2, 3)]
    families = [one["hypothesis"]["single_change"].partition("`")[2].partition("`")[0] for one in said]
    assert len(set(families)) == 3, families
    assert all(family.startswith("rewrite-") for family in families)
    assert all(one["evidence"]["selected"][0]["reference"].startswith("gpu-wiki/") for one in said)
    assert any(one["branches"] for one in said)
    assert (root / "final_report.md").is_file()


def test_the_gate_passes_every_version_and_the_end(
    run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]]
) -> None:
    home, folder, _ = finished
    for words in (("v1",), ("v2",), ("v3",), ("--final",)):
        assert run(home, "run", "gate", *words, cwd=folder).code == 0


def test_nothing_of_the_study_lies_in_the_run(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    home, _, data = finished
    assert (home / "runs" / f"{data['run']['run']}.search").is_file()


def test_what_cannot_be_rewritten_is_said(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "work", kernel=WAITING)
    done = run(home, "run", "start", *COMMON, "--iterations", "1", cwd=folder)
    assert done.code == 0, done.out + done.err
    found = done.json["data"]["run"]
    assert (found["best"], found["versions"][1]["refused"]) == (0, 3)
    reasons = (Path(found["folder"]) / "v1" / "refused" / "s1" / "reasons.json").read_text("utf-8")
    assert "nothing to rewrite in this kernel" in reasons
    assert "--proposer agent" in reasons


def test_a_forbidden_method_is_not_proposed(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "work")
    words = ("--iterations", "1", "--branches", "1", "--accept-unmeasured", "--forbid", "launch_config")
    done = run(home, "run", "start", *COMMON, *words, cwd=folder)
    assert done.code == 0, done.out + done.err
    root = Path(done.json["data"]["run"]["folder"])
    said = json.loads((root / "v1" / "proposal.json").read_text("utf-8"))
    assert said["methods"] != ["launch_config"]
    assert said["branches"] == []
