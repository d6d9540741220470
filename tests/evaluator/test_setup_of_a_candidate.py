"""The `setup` of a candidate makes inputs in a process of its own: what it replaces there judges nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.adversarial.support import bench

pytestmark = pytest.mark.processes

REFERENCE = "import torch\n\ndef reference(x, y):\n    y.copy_(torch.softmax(x, dim=1))\n"
CANDIDATE = """
import gc
import sys
import torch

def change(where, name, by):
    setattr(where, name, by)

def easy(x, dim=None, **more):
    return x * 0

def setup(rows=8, cols=96):
{trick}
    return {{"inputs": {{"x": torch.randn(rows, cols), "y": torch.empty(rows, cols)}}, "outputs": ["y"]}}

def run_kernel(x, y):
    {body}
"""
HONEST = "e = (x - x.max(1, keepdim=True).values).exp()\n    y.copy_(e / e.sum(1, keepdim=True))"
TRICKS = {
    "replaces_the_operator": '    change(torch, "soft" + "max", easy)',
    "replaces_the_reference": (
        "    for module in list(sys.modules.values()):\n"
        '        if hasattr(module, "reference"):\n'
        '            change(module, "reference", lambda x, y: y.zero_())'
    ),
    "finds_it_in_memory": (
        "    for one in gc.get_objects():\n"
        '        if type(one) is type(change) and one.__name__ == "reference":\n'
        '            change(one, "__code__", (lambda x, y: y.zero_()).__code__)'
    ),
    "replaces_the_copy": '    change(torch.Tensor, "copy_", lambda y, x: y.zero_())',
}


def examine(folder: Path, trick: str, body: str) -> tuple[str, list[bool]]:
    """(the verdict, whether each trial passed) of a candidate with such a `setup` and kernel."""
    reference, candidate = folder / "ref.py", folder / "kernel.py"
    reference.write_text(REFERENCE, "utf-8")
    candidate.write_text(CANDIDATE.format(trick=trick, body=body), "utf-8")
    found = bench(candidate, reference, "--plan", "signal", "--allow-library")
    return found["verdict"], [trial["passed"] for trial in found["correctness"]]


@pytest.mark.parametrize("trick", TRICKS)
def test_it_changes_no_right_result(trick: str, tmp_path: Path) -> None:
    verdict, passed = examine(tmp_path, TRICKS[trick], "y.zero_()")
    assert verdict != "accepted"
    assert passed
    assert not any(passed)


def test_an_honest_one_makes_the_inputs(tmp_path: Path) -> None:
    verdict, passed = examine(tmp_path, "    pass", HONEST)
    assert (verdict, all(passed)) == ("accepted", True)
