"""What a run on the CPU leaves in the log is found again: by a question, and by the next run on such a kernel."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import EXAMPLE

pytestmark = pytest.mark.processes

REFERENCE = """
import torch
M = 8
N = 96
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=1)
def get_inputs():
    return [torch.randn(M, N)]
def get_init_inputs():
    return []
"""
KERNEL = """import torch, triton
import triton.language as tl


@triton.jit
def rows(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n, other=float("-inf"))
    v = v - tl.max(v, axis=0)
    tl.store(y + row * n + i, v - tl.log(tl.sum(tl.exp(v), axis=0)), mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        rows[(x.shape[0],)](x, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=1)
        return y
"""


def test_a_run_is_found_by_a_question_and_by_the_next_run(
    run: Callable[..., Run], pristine_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(pristine_home, tmp_path / "home"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "lsm.py").write_text(KERNEL, "utf-8")
    (folder / "gelu.py").write_text(REFERENCE, "utf-8")  # a file's name says nothing of the operation
    shutil.copy(EXAMPLE, folder / "proposer.py")
    start = ("run", "start", "--device", "cpu", "--yes", "--json", "--proposer", "command", "--iterations", "1",
             "--command", f"{sys.executable} proposer.py")  # fmt: skip

    first = run(home, *start, cwd=folder)
    assert first.code == 0, first.out + first.err
    (entry,) = run(home, "log", "list", "--json", cwd=folder).json["data"]["entries"]
    one = entry["experiment"]
    assert (one["op"], one["outcome"], one["gpu"], one["speedup"]) == ("softmax", "unmeasured", "cpu", None)

    asked = run(home, "ask", "what did we learn about log softmax", "--json", cwd=folder)
    assert asked.code == 0, asked.out
    assert entry["reference"] in json.dumps(asked.json["data"])
    (counted,) = run(home, "log", "stats", "--json", cwd=folder).json["data"]["by"]["method"]
    assert (counted["name"], counted["experiments"], counted["success"]) == ("launch_config", 1, None)
    advice = run(home, "log", "recommend", "--kernel", "log_softmax", "--json", cwd=folder).json["data"]
    assert (advice["recommended"], advice["failures"]) == ([], [])
    assert [near["reference"] for near in advice["nearest"]] == [entry["reference"]]

    second = run(home, *start, cwd=folder)
    assert second.code == 0, second.out + second.err
    searches = (Path(second.json["data"]["run"]["folder"]) / "v1" / "searches.jsonl").read_text("utf-8").splitlines()
    found = json.loads(searches[0])
    assert found["about"] == "experience"
    assert found["hits"][0]["reference"] == entry["reference"]
    assert "unmeasured" in found["hits"][0]["title"]
