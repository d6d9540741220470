"""A workspace with a tiny kernel, and proposals for it as a program or an agent would make them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.conftest import ROOT, Run

REFERENCE = """
import torch
M = 8
N = 96
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0
def get_inputs():
    return [torch.randn(M, N)]
def get_init_inputs():
    return []
"""
KERNEL = """import torch, triton
import triton.language as tl


@triton.jit
def scaled_relu(x, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n)
    tl.store(y + row * n + i, tl.maximum(v, 0.0) * 2.0, mask=i < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        scaled_relu[(x.shape[0],)](x, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=1)
        return y
"""
WRONG = KERNEL.replace("* 2.0", "* 3.0")
EXAMPLE = ROOT / "docs" / "examples" / "proposer.py"
Kopt = Callable[..., Run]


def workspace(folder: Path, *, kernel: str = KERNEL, reference: str = REFERENCE) -> Path:
    """A folder with kernel.py and ref.py."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.py").write_text(kernel, "utf-8")
    (folder / "ref.py").write_text(reference, "utf-8")
    return folder


def example() -> ModuleType:
    """docs/examples/proposer.py."""
    spec = importlib.util.spec_from_file_location("example_proposer", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A proposal that the gate lets run: the request's kernel with another number of warps."""
    made = example()
    text = request["parent"]["text"]
    old = int(made.WARPS.search(text)[1])
    new = next(value for value in made.VALUES if value not in {old, *made.tried_values(request)})
    kernel = made.WARPS.sub(f"num_warps={new}", text)
    found: dict[str, Any] = made.proposal(request, kernel, old, new, made.best_passage(request))
    return {**found, **changes}


def wanted(kopt: Kopt, cwd: Path) -> dict[str, Any]:
    """The request of `kopt run next`."""
    done = kopt("run", "next", "--json", cwd=cwd)
    assert done.code == 0, done.out + done.err
    request = done.json["data"]["request"]
    assert isinstance(request, dict)
    return request


def hand_in(kopt: Kopt, cwd: Path, proposal: object) -> Run:
    """`kopt run submit`."""
    text = proposal if isinstance(proposal, str) else json.dumps(proposal)
    return kopt("run", "submit", "-", "--json", cwd=cwd, stdin=text)
