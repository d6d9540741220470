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
