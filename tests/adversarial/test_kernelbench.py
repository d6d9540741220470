"""KernelBench problems: the reference passes as its own candidate; zeros, a constant and a copied input do not."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch
from tests.adversarial.support import KERNELBENCH, bench, read_toml, rejecting, said

DIMS: dict[str, dict[str, int]] = read_toml(KERNELBENCH / "dims.toml")
PROBLEMS = sorted(DIMS, key=lambda name: int(name.split("_")[0]))
_WRAPPER = '''

class ModelNew(Model):
    """Takes shapes from the reference's result, and values from elsewhere."""

    def forward(self, *arguments):
        with torch.no_grad():
            result = super().forward(*(a.clone() if isinstance(a, torch.Tensor) else a for a in arguments))
        {statement}
'''
_COPY = """source = next((a for a in arguments if a.shape == result.shape), arguments[0]).flatten()
        times = -(-result.numel() // source.numel())
        return source.repeat(times)[: result.numel()].reshape(result.shape).to(result.dtype)"""


def _path(name: str) -> Path:
    return KERNELBENCH / "level1" / f"{name}.py"


def _compiled(name: str) -> CodeType:
    """The reference with its sizes replaced, as `--dims` does it."""
    tree = ast.parse(_path(name).read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in DIMS[name]:
            node.value = ast.Constant(DIMS[name][node.targets[0].id])
    return compile(ast.fix_missing_locations(tree), name, "exec")


def _mean(name: str) -> float:
    """Mean of the reference's result at seed 0; rounded where results are whole numbers."""
    module: dict[str, Any] = {"__name__": "reference"}
    exec(_compiled(name), module)  # vendored, and read by a person
    torch.manual_seed(0)
    with torch.no_grad():
        result = module["Model"](*module["get_init_inputs"]())(*module["get_inputs"]())
    mean = result.double().mean().item()
    return mean if result.is_floating_point() else round(mean)


def _statement(name: str, stand_in: str) -> str:
    if stand_in == "zeros":
        return "return torch.zeros_like(result)"
    if stand_in == "constant":
        return f"return torch.full_like(result, {_mean(name)!r})"
    return _COPY


def _words(name: str, device: str) -> list[str]:
    return ["--dims", json.dumps(DIMS[name]), "--allow-library", "--device", device]


DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]


@pytest.mark.processes
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_reference_passes(name: str, device: str) -> None:
    """The reference is a right answer to its own problem."""
    found = bench(_path(name), _path(name), *_words(name, device))
    assert found["verdict"] == "accepted", said(found)
    assert rejecting(found) == []


@pytest.mark.processes
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("stand_in", ["zeros", "constant", "copy"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_pretenders_fail(name: str, stand_in: str, device: str, tmp_path: Path) -> None:
    """What does not depend on the problem is wrong, or the problem is refused because it is not told apart."""
    candidate = tmp_path / "candidate.py"
    text = _path(name).read_text("utf-8")
    candidate.write_text(text + _WRAPPER.format(statement=_statement(name, stand_in)), "utf-8")
    found = bench(candidate, _path(name), *_words(name, device), "--plan", "signal")
    assert found["verdict"] in ("incorrect", "cheating", "task_refused"), said(found)
    if found["verdict"] == "task_refused":
        assert found["task_check"]["refused"], found["task_check"]
        assert found["task_check"]["reasons"], found["task_check"]


def test_problems_are_whole() -> None:
    """Every problem has its sizes, and each size is a constant of the file."""
    assert {path.stem for path in (KERNELBENCH / "level1").glob("*.py")} == set(DIMS)
    assert len(DIMS) >= 34
    for name, sizes in DIMS.items():
        tree = ast.parse(_path(name).read_text("utf-8"))
        names = {
            node.targets[0].id
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        assert set(sizes) <= names, name
