"""Blind sets by attackers who had read the code and no test, each with honest neighbours: three for the CPU, one for
the clock of a GPU.

All 28, 26 and 25 of the CPU were accepted in the first run, 7 of 13 of the clock were called faster. What `caught`
says is caught by mechanisms that were mended since; the others are accepted still. The records in
`benchmarks/results/blind/evaluator` count them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adversarial.support import HERE, bench, said

ON_A_GPU = json.loads((HERE / "strangers_gpu.json").read_text("utf-8"))
CASES = [
    case for name in ("strangers.json", "strangers_3.json") for case in json.loads((HERE / name).read_text("utf-8"))
]


def examined(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    for name, text in case["files"].items():
        (folder / name).write_text(text, "utf-8")
    words = [str(folder / word) if (folder / word).is_file() else word for word in map(_bare, case["words"])]
    return bench(folder / "candidate.py", folder / "reference.py", *words)


def _bare(word: str) -> str:
    """A path of the set as the file's name alone."""
    return word.rpartition("/")[2] if word.endswith((".py", ".json", ".npz")) else word


@pytest.mark.processes
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if case["caught"]])
def test_caught(case: dict[str, Any], tmp_path: Path) -> None:
    found = examined(case, tmp_path)
    wanted = ("task_refused",) if case["id"] == "22_own_error" else ("incorrect", "cheating")
    assert found["verdict"] in wanted, f"{case['what']}\n{said(found)}"


@pytest.mark.processes
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] == "honest"])
def test_neighbours_are_accepted(case: dict[str, Any], tmp_path: Path) -> None:
    found = examined(case, tmp_path)
    assert found["verdict"] == "accepted", f"{case['what']}\n{said(found)}"


@pytest.mark.processes
def test_a_refusal_of_other_values_is_told_in_the_first_line(tmp_path: Path) -> None:
    case = next(case for case in CASES if case["id"] == "20_refusal_shield")
    found = examined(case, tmp_path)
    assert "with this value of input 1 only" in found["reason"], said(found)


@pytest.mark.processes
@pytest.mark.gpu
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in ON_A_GPU])
def test_the_clock_is_not_deceived(case: dict[str, Any], tmp_path: Path) -> None:
    for name, text in case["files"].items():
        (tmp_path / name).write_text(text, "utf-8")
    words = ("--device", "cuda:0", "--baselines", "eager", *case["words"])
    found = bench(tmp_path / "candidate.py", tmp_path / "reference.py", *words)
    faster = found["verdict"] == "accepted" and found["improvement"] == "faster"
    assert faster is (case["kind"] == "honest"), f"{case['what']}\n{said(found)}"
