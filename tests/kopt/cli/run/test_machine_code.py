"""What a run holds against the machine code of its versions, compiled for a GPU that is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import answer, hand_in, wanted, workspace


@pytest.mark.processes
def test_a_method_that_is_not_in_the_machine_code_is_refused(
    run: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    folder, kopt = workspace(tmp_path / "work"), partial(run, home)
    options = ("--device", "cpu", "--gpu", "h200", "--accept-unmeasured", "--iterations", "1", "--yes", "--json")
    begun = kopt("run", "start", "--proposer", "agent", *options, cwd=folder)
    assert begun.code == 0, begun.out + begun.err
    root = Path(begun.json["data"]["run"]["folder"])

    request = wanted(kopt, folder)
    refused = hand_in(kopt, folder, answer(request, methods=["tensor_core"]))
    assert (refused.code, refused.json["data"]["outcome"]) == (4, "refused")
    broken = {one["rule"]: one for one in refused.json["data"]["broken"]}
    assert "for sm_90a no kernel of it has HGMMA or " in broken["method-absent"]["message"]
    assert "gpu-wiki/method/tensor_core.md:L" in broken["method-absent"]["message"]
    assert "declare the method that the change really is" in broken["method-absent"]["mend"]

    done = hand_in(kopt, folder, answer(wanted(kopt, folder)))
    assert done.code == 0, done.out + done.err
    (outcome,) = json.loads((root / "v1/methods.json").read_bytes())["outcomes"]
    assert (outcome["method"], outcome["found"]) == ("launch_config", "unverifiable")
    assert outcome["why"] == "no signature for sm_90 is known"
    memory = json.loads((root / "v1/memory.json").read_bytes())
    assert memory["outcomes"] == [outcome]
    log = kopt("log", "list", "--json", cwd=folder)
    assert "tensor_core" not in log.out


@pytest.mark.processes
def test_versions_are_held_against_the_instructions_of_the_target(
    run: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    folder, kopt = workspace(tmp_path / "work"), partial(run, home)
    options = ("--device", "cpu", "--gpu", "h200", "--accept-unmeasured", "--iterations", "1", "--yes", "--json")
    begun = kopt("run", "start", "--proposer", "agent", *options, cwd=folder)
    assert begun.code == 0, begun.out + begun.err
    root = Path(begun.json["data"]["run"]["folder"])

    readme = (root / "README.md").read_text("utf-8")
    section = readme.partition("## Instructions that the machine code should show\n")[2].partition("\n## ")[0]
    assert "`LDG.128`, for any operation that multiplies no matrices on sm_90, method vectorized_access:" in section
    assert '| 16-byte loads | `LDG.128`" <- gpu-wiki/method/vectorized_access.md:L' in section
    cited = [line.rpartition(" <- ")[2] for line in section.splitlines() if " <- " in line]
    kept = {one["reference"]: one for one in json.loads((root / "citations.json").read_bytes())}
    assert all("16-byte loads" in kept[reference]["lines"][0] for reference in cited)
    checked = kopt("cite", str(root / "README.md"), cwd=folder)
    assert checked.code == 0, checked.out + checked.err

    (wide,) = json.loads((root / "v0/sass_check.json").read_bytes())["instructions"]
    assert wide["there"] is True
    assert wide["count"] == sum(wide["found"].values()) == 1
    assert wide["cite"] in cited
    summary = (root / "v0/ncu_summary.md").read_text("utf-8")
    assert "there: `LDG.E.128`" in summary

    done = hand_in(kopt, folder, answer(wanted(kopt, folder)))
    assert done.code == 0, done.out + done.err
    (narrow,) = json.loads((root / "v1/sass_check.json").read_bytes())["instructions"]
    assert (narrow["there"], narrow["count"]) == (False, 0), "more warps leave each thread fewer bytes"
    assert "not there: no `LDG.128`" in (root / "v1/ncu_summary.md").read_text("utf-8")
    assert kopt("run", "gate", "--final", cwd=folder).code == 0
