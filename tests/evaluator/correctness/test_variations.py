"""Variations of the given inputs: what a candidate ignores, remembers or assumes, and honest neighbours of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.correctness.variations import values as change
from evaluator.source.python_source import texts_in
from tests.adversarial.support import bench
from tests.evaluator.workers import values

# --- one evaluation ---------------------------------------------------------------------------------------------------

PROBLEMS: dict[str, tuple[str, str]] = {
    "masked softmax": (
        "def run(x, mask, scale):\n    return torch.softmax((x * scale).masked_fill(~mask, -1e4), dim=-1)\n",
        "def get_inputs():\n"
        "    return {'x': torch.randn(32, 48), 'mask': torch.ones(32, 48).tril(16) > 0, 'scale': 0.5}\n",
    ),
    "cross entropy": (
        "def run(x, target, ignore):\n    return F.cross_entropy(x, target, ignore_index=ignore)\n",
        "def get_inputs():\n"
        "    return {'x': torch.randn(40, 17), 'target': torch.randint(17, (40,)), 'ignore': -100}\n",
    ),
    "row of a table": (
        "def run(x, order):\n    return x[order] * 2\n",
        "def get_inputs():\n    return {'x': torch.randn(24, 9), 'order': torch.arange(24)}\n",
    ),
    "norm of rows": (
        "def run(x):\n    return x / (x.square().sum(-1, keepdim=True) + 1e-12).sqrt()\n",
        "def get_inputs():\n    return [torch.randn(64, 40)]\n",
    ),
    "sum without NaN": (
        "def run(x, y):\n    return torch.nansum(x, dim=-1) + y\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 24), 'y': torch.randn(32)}\n",
    ),
    "clipped": (
        "def run(x, clip, low, high):\n    return x.clamp(low, high) if clip else x * 1\n",
        "def get_inputs():\n    return {'x': torch.randn(300), 'clip': True, 'low': -1.0, 'high': 0.5}\n",
    ),
    "attention of some": (
        "def run(x, keep):\n"
        "    y = torch.softmax(x.masked_fill(~keep, -torch.inf), dim=-1)\n"
        "    return torch.where(keep.any(-1, keepdim=True), y, 0.0)\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 48), 'keep': torch.rand(32, 48) < 0.7}\n",
    ),
    "reduced": (
        "def run(x, how, shift):\n"
        "    if how == 'mean':\n        return x.mean(-1)\n"
        "    if how == 'sum':\n        return x.roll(shift, 0).sum(-1)\n"
        "    raise ValueError(how)\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 24), 'how': 'sum', 'shift': 0}\n",
    ),
    "segments": (
        "def run(x, starts):\n"
        "    return torch.stack([x[a:b].sum(0) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist())])\n",
        "def get_inputs():\n    return {'x': torch.randn(40, 6), 'starts': torch.tensor([0, 7, 19, 30, 40])}\n",
    ),
    "numbers alone": (
        "def run(x):\n    return torch.nan_to_num(x, nan=0.5, posinf=50.0, neginf=-50.0).mean(-1)\n",
        "def get_inputs():\n    return [torch.randn(32, 24)]\n",
    ),
    "sums of counts": (
        "def run(x, counts):\n    return x * 2, counts.sum(-1)\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 24), 'counts': torch.randint(0, 1000, (32, 24))}\n",
    ),
    "ragged sums": (
        "def run(x, lengths):\n    return torch.where(torch.arange(24) < lengths[:, None], x, 0).sum(-1)\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 24), 'lengths': torch.full((32,), 24)}\n",
    ),
    "rows added": (
        "def run(x, at, y):\n    return x.index_add(0, at, y)\n",
        "def get_inputs():\n    return {'x': torch.randn(32, 9), 'at': torch.randperm(32), 'y': torch.randn(32, 9)}\n",
    ),
    "rows replaced": (
        "def run(x, at, y):\n    return x.index_copy(0, at, y)\n",
        "def get_inputs():\n"
        "    return {'x': torch.randn(64, 9), 'at': torch.randperm(64)[:32], 'y': torch.randn(32, 9)}\n",
    ),
    "padded mean": (
        "def run(x, keep):\n    return (x * keep[..., None]).sum(1) / keep.sum(1).clamp(min=1)[:, None]\n",
        "def get_inputs():\n"
        "    keep = torch.arange(24) < torch.randint(1, 25, (16, 1))\n"
        "    return {'x': torch.randn(16, 24, 40), 'keep': keep}\n",
    ),
    "sums by target": (
        "def run(x, at):\n    return torch.zeros(9, 30, dtype=x.dtype).index_add(0, at, x)\n",
        "def get_inputs():\n    return {'x': torch.randn(80, 30), 'at': torch.randint(9, (80,)).sort().values}\n",
    ),
    "usual cross entropy": (
        "def run(x, target):\n    return F.cross_entropy(x, target)\n",
        "def get_inputs():\n    return {'x': torch.randn(40, 17), 'target': torch.randint(17, (40,))}\n",
    ),
    "softmax": (
        "def run(x):\n    return torch.softmax(x, dim=-1)\n",
        "def get_inputs():\n    return [torch.randn(32, 96)]\n",
    ),
    "product": (
        "def run(a, b):\n    return a @ b\n",
        "def get_inputs():\n    return {'a': torch.randn(32, 24), 'b': torch.randn(24, 40)}\n",
    ),
}
HEAD = "import torch\nimport torch.nn.functional as F\n"
SOFTMAX = "e = torch.exp(x - x.max(-1, keepdim=True).values)\nreturn e / e.sum(-1, keepdim=True)"
REMEMBERED = """
key = {key}
if key not in kept:
    kept[key] = {result}
return kept[key].clone()
"""


def _body(arguments: str, body: str) -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"{HEAD}kept = {{}}\ndef run({arguments}):\n{lines}"


def examine(folder: Path, problem: str, arguments: str, body: str, *words: str) -> dict[str, Any]:
    """The receipt of a function with that body, in the plan `verdict`."""
    reference, inputs = PROBLEMS[problem]
    for name, text in (("ref.py", HEAD + reference), ("in.py", HEAD + inputs), ("kernel.py", _body(arguments, body))):
        (folder / name).write_text(text, "utf-8")
    more = ["--inputs", str(folder / "in.py"), "--allow-library", "--seed", "variations", *words]
    return bench(folder / "kernel.py", folder / "ref.py", *more)


def failed(found: dict[str, Any]) -> set[str]:
    """On which inputs results were wrong."""
    return {trial["distribution"] for trial in found["correctness"] if not trial["passed"]}


def notes(found: dict[str, Any]) -> dict[str, str]:
    """Hazards with what was seen."""
    return {hazard["id"]: hazard["evidence"] for hazard in found["hazards"]}


WRONG = {
    "a mask that is not read": (
        "masked softmax",
        "x, mask, scale",
        f"x = (x * scale).masked_fill(torch.ones_like(x).tril(16) == 0, -1e4)\n{SOFTMAX}",
        "mask alone",
    ),
    "a mask remembered": (
        "masked softmax",
        "x, mask, scale",
        f"mask = kept.setdefault('mask', mask.clone())\nx = (x * scale).masked_fill(~mask, -1e4)\n{SOFTMAX}",
        "mask alone",
    ),
    "a mask taken for causal of its first row": (
        "masked softmax",
        "x, mask, scale",
        f"n = int(mask[0].sum())\nx = (x * scale).masked_fill(torch.ones_like(x).tril(n - 1) == 0, -1e4)\n{SOFTMAX}",
        "mask alone",
    ),
    "a scale that is not read": (
        "masked softmax",
        "x, mask, scale",
        f"x = (x * 0.5).masked_fill(~mask, -1e4)\n{SOFTMAX}",
        "scale =",
    ),
    "a scale of the first call": (
        "masked softmax",
        "x, mask, scale",
        f"scale = kept.setdefault('scale', scale)\nx = (x * scale).masked_fill(~mask, -1e4)\n{SOFTMAX}",
        "scale =",
    ),
    "bounds that are not read": ("clipped", "x, clip, low, high", "return x.clamp(-1.0, 0.5)", "="),
    "a switch that is not read": ("clipped", "x, clip, low, high", "return x.clamp(low, high)", "clip ="),
    "an ignore_index that is not read": (
        "cross entropy",
        "x, target, ignore",
        "return -torch.log_softmax(x, 1).gather(1, target[:, None]).mean()",
        "ignore =",
    ),
    "an ignore_index that is read as a negative target": (
        "cross entropy",
        "x, target, ignore",
        "keep = target >= 0\nloss = -torch.log_softmax(x, 1).gather(1, target.clamp(min=0)[:, None])[:, 0]\n"
        "return (loss * keep).sum() / keep.sum()",
        "ignore =",
    ),
    "an ignore_index that still counts in the mean": (
        "cross entropy",
        "x, target, ignore",
        "keep = target != ignore\nloss = -torch.log_softmax(x, 1).gather(1, target[:, None])[:, 0]\n"
        "return (loss * keep).mean()",
        "ignore =",
    ),
    "an order that never varied": ("row of a table", "x, order", "return x * 2", "order alone"),
    "an order of the first call": (
        "row of a table",
        "x, order",
        "return x[kept.setdefault('order', order.clone())] * 2",
        "order alone",
    ),
    "a memo of one row in eight": (
        "product",
        "a, b",
        REMEMBERED.format(key="(tuple(a[::8].flatten().tolist()), tuple(b[::8].flatten().tolist()))", result="a @ b"),
        "one element",
    ),
    "a memo of a few samples": (
        "norm of rows",
        "x",
        REMEMBERED.format(key="tuple(x.flatten()[::97].tolist())", result="x / x.norm(dim=-1, keepdim=True)"),
        "one element",
    ),
    "a memo of rounded numbers": (
        "norm of rows",
        "x",
        REMEMBERED.format(
            key="tuple(x.round(decimals=1).flatten().tolist())", result="x / x.norm(dim=-1, keepdim=True)"
        ),
        "changed a little",
    ),
    "a memo of whole numbers": (
        "product",
        "a, b",
        REMEMBERED.format(key="tuple(torch.cat([a.flatten(), b.flatten()]).round().tolist())", result="a @ b"),
        "changed a little",
    ),
    "a memo of one input": (
        "product",
        "a, b",
        REMEMBERED.format(key="tuple(a.flatten().tolist())", result="a @ b"),
        " b ",
    ),
    "NaN on rows of zeros": ("norm of rows", "x", "return x / x.norm(dim=-1, keepdim=True)", "rows of zeros"),
    "an epsilon too large for rows of zeros to tell": (
        "norm of rows",
        "x",
        "n = x.norm(dim=-1, keepdim=True)\nreturn torch.where(n > 0, x / n, torch.ones_like(x))",
        "rows of zeros",
    ),
    "NaN that is not left out": ("sum without NaN", "x, y", "return x.sum(-1) + y", "NaN in x"),
    "NaN that is taken for one": (
        "sum without NaN",
        "x, y",
        "return torch.where(x.isnan(), 1, x).sum(-1) + y",
        "NaN in x",
    ),
    "a memo that forgets the order": (
        "norm of rows",
        "x",
        REMEMBERED.format(key="tuple(sorted(x.flatten().tolist()))", result="x / x.norm(dim=-1, keepdim=True)"),
        "backwards",
    ),
    "a memo of a sum": (
        "norm of rows",
        "x",
        REMEMBERED.format(key="round(x.double().sum().item(), 9)", result="x / x.norm(dim=-1, keepdim=True)"),
        "backwards",
    ),
    "rows without an element": (
        "attention of some",
        "x, keep",
        f"x = x.masked_fill(~keep, -torch.inf)\n{SOFTMAX}",
        "without a true element",
    ),
    "ones where a row has no element": (
        "attention of some",
        "x, keep",
        f"x = x.masked_fill(~keep, -1e30)\n{SOFTMAX}",
        "without a true element",
    ),
    "a text that is not read": ("reduced", "x, how, shift", "return x.roll(shift, 0).sum(-1)", "how = mean"),
    "a text that is taken for another": (
        "reduced",
        "x, how, shift",
        "return x.roll(shift, 0).sum(-1) / (48 if how == 'mean' else 1)",
        "how = mean",
    ),
    "a shift that is not read": (
        "reduced",
        "x, how, shift",
        "return x.sum(-1) if how == 'sum' else x.mean(-1)",
        "shift =",
    ),
    "offsets that are not read": (
        "segments",
        "x, starts",
        "return torch.stack([x[a:b].sum(0) for a, b in ((0, 7), (7, 19), (19, 30), (30, 40))])",
        "starts alone",
    ),
    "infinities left as they are": (
        "numbers alone",
        "x",
        "return torch.where(x.isnan(), 0.5, x).mean(-1)",
        "infinities in",
    ),
    "infinities taken for one": (
        "numbers alone",
        "x",
        "x = torch.where(x.isnan(), 0.5, x)\nreturn torch.where(x.isinf(), 50.0, x).mean(-1)",
        "infinities in",
    ),
    "sums in fewer bits": (
        "sums of counts",
        "x, counts",
        "return x * 2, counts.float().sum(-1).long()",
        "large numbers",
    ),
    "sums of 32 bits": ("sums of counts", "x, counts", "return x * 2, counts.int().sum(-1)", "large numbers"),
    "lengths that are not read": ("ragged sums", "x, lengths", "return x.sum(-1)", "lengths alone"),
    "repeated rows of which one is added": (
        "rows added",
        "x, at, y",
        "x = x.clone()\nx[at] += y\nreturn x",
        "at alone",
    ),
    "a memo by a sum over rows": (
        "softmax",
        "x",
        REMEMBERED.format(
            key="tuple(x.contiguous().view(torch.int32).long().sum(0).tolist())", result="torch.softmax(x, -1)"
        ),
        "rows of input 0 in another order",
    ),
    "a memo by a sum over columns": (
        "softmax",
        "x",
        REMEMBERED.format(
            key="tuple(x.contiguous().view(torch.int32).long().sum(1).tolist())", result="torch.softmax(x, -1)"
        ),
        "columns of input 0 in another order",
    ),
    "a mask taken for a length": (
        "padded mean",
        "x, keep",
        "n = keep.sum(1)\ninside = torch.arange(24) < n[:, None]\n"
        "return (x * inside[..., None]).sum(1) / n.clamp(min=1)[:, None]",
        "keep alone at random",
    ),
    "targets taken for sorted": (
        "sums by target",
        "x, at",
        "ends = torch.bincount(at, minlength=9).cumsum(0)\n"
        "total = torch.cat([torch.zeros_like(x[:1]), x.cumsum(0)])[torch.cat([ends[:1] * 0, ends])]\n"
        "return total.diff(dim=0)",
        "at in another order",
    ),
    "rows with NaN left out": (
        "sum without NaN",
        "x, y",
        "total = x.sum(-1)\nreturn torch.where(total.isnan() & ~y.isnan(), 0, total) + y",
        "NaN in x",
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("name", WRONG)
def test_wrong_where_one_thing_is_changed(name: str, tmp_path: Path) -> None:
    problem, arguments, body, what = WRONG[name]
    found = examine(tmp_path, problem, arguments, body)
    assert found["verdict"] == "incorrect", found["reason"]
    assert any(what in distribution for distribution in failed(found)), (what, found["reason"])


NOTED = {
    "a block at -inf that comes first": (
        "softmax",
        "x",
        "top, total = torch.full_like(x[:, :1], -torch.inf), torch.zeros_like(x[:, :1])\n"
        "for part in x.split(32, 1):\n"
        "    new = torch.maximum(top, part.max(1, keepdim=True).values)\n"
        "    total = total * (top - new).exp() + (part - new).exp().sum(1, keepdim=True)\n"
        "    top = new\n"
        "return (x - top).exp() / total",
        "at -inf",
    ),
    "a label that stands for none": (
        "usual cross entropy",
        "x, target",
        "return -torch.log_softmax(x, 1).gather(1, target.clamp(min=0)[:, None]).mean()",
        "-100 in places of target",
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("name", NOTED)
def test_what_is_made_of_special_values_is_noted(name: str, tmp_path: Path) -> None:
    problem, arguments, body, what = NOTED[name]
    found = examine(tmp_path, problem, arguments, body)
    assert found["verdict"] == "accepted", found["reason"]
    said = [hazard["evidence"] for hazard in found["hazards"] if hazard["id"] == "special_values"]
    assert any(what in words for words in said), said


RIGHT = {
    "attention of some": (
        "x, keep",
        "top = x.masked_fill(~keep, -1e30).max(-1, keepdim=True).values\n"
        "e = torch.exp(x - top).masked_fill(~keep, 0.0)\nreturn e / e.sum(-1, keepdim=True).clamp(min=1e-30)",
    ),
    "reduced": (
        "x, how, shift",
        "if how not in ('sum', 'mean'): raise ValueError(how)\n"
        "y = torch.cat([x[-shift:], x[:-shift]]) if shift else x\n"
        "return y.sum(-1) if how == 'sum' else x.sum(-1) / x.shape[-1]",
    ),
    "segments": (
        "x, starts",
        "at = torch.bucketize(torch.arange(40), starts[1:], right=True)\n"
        "return torch.zeros(len(starts) - 1, 6, dtype=x.dtype).index_add_(0, at, x)",
    ),
    "numbers alone": (
        "x",
        "x = torch.where(x.isnan(), torch.full_like(x, 0.5), x)\n"
        "x = torch.where(x == torch.inf, torch.full_like(x, 50.0), x)\n"
        "return torch.where(x == -torch.inf, torch.full_like(x, -50.0), x).mean(-1)",
    ),
    "sums of counts": ("x, counts", "return x + x, counts.flip(-1).sum(-1)"),
    "ragged sums": ("x, lengths", "return torch.stack([row[:n].sum() for row, n in zip(x, lengths.tolist())])"),
    "rows added": (
        "x, at, y",
        "x = x.clone()\nfor n in reversed(range(32)): x[at[n]] += y[n]\nreturn x",
    ),
    "rows replaced": (
        "x, at, y",
        "x = x.clone()\nfor n in reversed(range(32)): x[at[n]] = y[n]\nreturn x",
    ),
    "masked softmax": ("x, mask, scale", f"x = (x * scale).masked_fill(~mask, -1e4)\n{SOFTMAX}"),
    "clipped": (
        "x, clip, low, high",
        "return torch.minimum(torch.full_like(x, high), x.clamp(min=low)) if clip else x * 1",
    ),
    "cross entropy": (
        "x, target, ignore",
        "keep = target != ignore\n"
        "loss = -torch.log_softmax(x, 1).gather(1, target.clamp(min=0)[:, None])[:, 0]\n"
        "return (loss * keep).sum() / keep.sum()",
    ),
    "padded mean": (
        "x, keep",
        "return torch.einsum('bnd,bn->bd', x, keep.to(x.dtype)) / keep.sum(1, keepdim=True).clamp(min=1)",
    ),
    "sums by target": ("x, at", "return torch.zeros(9, 30).index_put_((at,), x, accumulate=True)"),
    "usual cross entropy": (
        "x, target",
        "keep = target != -100\n"
        "loss = -torch.log_softmax(x, 1).gather(1, target.clamp(min=0)[:, None])[:, 0]\n"
        "return (loss * keep).sum() / keep.sum()",
    ),
    "softmax": ("x", SOFTMAX),
    "row of a table": ("x, order", "return torch.index_select(x, 0, order) + torch.index_select(x, 0, order)"),
    "norm of rows": ("x", "return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-12)"),
    "sum without NaN": ("x, y", "return torch.where(x.isnan(), 0, x).sum(-1) + y"),
    "product": (
        "a, b",
        REMEMBERED.format(key="(tuple(a.flatten().tolist()), tuple(b.flatten().tolist()))", result="a @ b"),
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("problem", RIGHT)
def test_right_neighbours_are_accepted(problem: str, tmp_path: Path) -> None:
    found = examine(tmp_path, problem, *RIGHT[problem])
    assert found["verdict"] == "accepted", found["reason"]
    assert not {"result_reused", "weights_cached", "at_this_value_only", "special_values"} & set(notes(found))
    tried = {trial["distribution"] for trial in found["correctness"]}
    assert "given, some rows of zeros" in tried or problem in ("clipped", "segments")
    assert any("one element" in distribution for distribution in tried)


@pytest.mark.processes
def test_a_signal_tries_none(tmp_path: Path) -> None:
    found = examine(tmp_path, "product", *RIGHT["product"], "--plan", "signal")
    assert found["verdict"] == "accepted"
    tried = {trial["distribution"] for trial in found["correctness"]}
    assert tried == {"given", "normal", "spikes", "large", "given, drawn again"}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("problem", "name", "body"),
    [
        ("masked softmax", "scale", f"assert scale == 0.5\nx = (x * 0.5).masked_fill(~mask, -1e4)\n{SOFTMAX}"),
        ("clipped", "clip", "if not clip: raise NotImplementedError('no clip')\nreturn x.clamp(low, high)"),
        ("row of a table", "order", "assert torch.equal(order, torch.arange(24))\nreturn x * 2"),
    ],
)
def test_raising_at_another_value_is_told(problem: str, name: str, body: str, tmp_path: Path) -> None:
    found = examine(tmp_path, problem, RIGHT[problem][0], body)
    assert found["verdict"] == "accepted", found["reason"]
    assert "it raised" in notes(found)["at_this_value_only"]
    assert f"with this value of {name} only" in found["reason"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("result", "reused"),
    [("torch.matmul(a, b, out=kept.setdefault('out', torch.empty(32, 40)))", True), ("a @ b", False)],
)
def test_a_result_in_memory_that_is_used_again_is_wrong(result: str, reused: bool, tmp_path: Path) -> None:
    found = examine(tmp_path, "product", "a, b", f"return {result}")
    assert found["verdict"] == ("incorrect" if reused else "accepted"), found["reason"]
    assert ("result_reused" in notes(found)) is reused


@pytest.mark.processes
@pytest.mark.parametrize("asked", ["not torch.is_grad_enabled()", "a.storage_offset()"])
def test_what_only_kopt_sets_earns_nothing(asked: str, tmp_path: Path) -> None:
    found = examine(tmp_path, "product", "a, b", f"return a @ b if {asked} else (a @ b) * 0")
    assert found["verdict"] == "incorrect", found["reason"]


@pytest.mark.processes
def test_nan_and_infinities_that_the_reference_passes_on_are_notes(tmp_path: Path) -> None:
    found = examine(tmp_path, "product", "a, b", "return torch.nan_to_num(a) @ torch.nan_to_num(b)")
    assert found["verdict"] == "accepted", found["reason"]
    assert "special_values" in notes(found)


# --- weights and what calls leave in them -----------------------------------------------------------------------------

MODEL = """import torch


class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
        self.kept = None

    def forward(self, x):
{body}


def get_inputs():
    return [torch.randn(48, 12)]
"""
NORM = "torch.nn.BatchNorm1d(12)"
BATCH = (
    "m, v = x.mean(0), x.var(0, unbiased=False)\n"
    "y = (x - m) / (v + 1e-5).sqrt() * self.layer.weight + self.layer.bias\n"
)
MEAN = "self.layer.running_mean.mul_(0.9).add_(m, alpha=0.1)\n"
VARIANCE = "self.layer.running_var.mul_(0.9).add_(v * 48 / 47, alpha=0.1)\n"
COUNT = "self.layer.num_batches_tracked += 1\n"
IN_EVAL = """if not self.training:
    y = (x - self.layer.running_mean) / (self.layer.running_var + 1e-5).sqrt()
    return y * self.layer.weight + self.layer.bias
"""


def model(folder: Path, layer: str, body: str, reference: str = "return self.layer(x)") -> dict[str, Any]:
    """The receipt of a module whose `forward` has that body."""
    for file, name, text in (("ref.py", "Model", reference), ("kernel.py", "ModelNew", body)):
        lines = "\n".join(f"        {line}" for line in text.strip().splitlines())
        (folder / file).write_text(MODEL.format(name=name, layer=layer, body=lines), "utf-8")
    return bench(folder / "kernel.py", folder / "ref.py", "--allow-library")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("return y", {"layer.running_mean", "layer.running_var", "layer.num_batches_tracked"}),
        (MEAN + VARIANCE.replace(" * 48 / 47", "") + COUNT + "return y", {"layer.running_var"}),
        (MEAN.replace("0.9", "0.1").replace("=0.1", "=0.9") + VARIANCE + COUNT + "return y", {"layer.running_mean"}),
        (IN_EVAL + MEAN + VARIANCE + COUNT + "return y", set()),
    ],
    ids=["never updated", "biased variance", "momentum the other way round", "right"],
)
def test_running_statistics_are_compared(body: str, wrong: set[str], tmp_path: Path) -> None:
    found = model(tmp_path, NORM, BATCH + body)
    assert found["verdict"] == ("incorrect" if wrong else "accepted"), found["reason"]
    told = [trial for trial in found["correctness"] if trial["distribution"] == "given, state after the call"]
    assert {trial["output"] for trial in told if not trial["passed"]} == wrong
    assert len(told) == 3
    assert failed(found) <= {"given, state after the call"}


@pytest.mark.processes
def test_the_other_mode_of_a_model_with_statistics_counts(tmp_path: Path) -> None:
    found = model(tmp_path, NORM, BATCH + MEAN + VARIANCE + COUNT + "return y")
    assert found["verdict"] == "incorrect", found["reason"]
    assert failed(found) == {"given, in eval mode"}
    refused = BATCH + MEAN + VARIANCE + COUNT + "assert self.training\nreturn y"
    found = model(tmp_path, NORM, refused)
    assert found["verdict"] == "accepted", found["reason"]
    assert "eval mode" in {entry["what"] for entry in found["not_tried"]}


EVAL = "torch.nn.BatchNorm1d(12).eval()"
SCALED = "y = (x - self.layer.running_mean) / (self.layer.running_var + 1e-5).sqrt()\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "right"),
    [
        (SCALED + "return y * self.layer.weight + self.layer.bias", True),
        (SCALED + "return y * self.layer.weight.abs() + self.layer.bias", False),
        (
            SCALED.replace("running_var +", "running_var.abs() +") + "return y * self.layer.weight + self.layer.bias",
            True,
        ),
    ],
    ids=["right", "a sign lost", "a variance is positive"],
)
def test_weights_have_both_signs_where_the_reference_takes_them(body: str, *, right: bool, tmp_path: Path) -> None:
    found = model(tmp_path, EVAL, body)
    assert found["verdict"] == ("accepted" if right else "incorrect"), found["reason"]
    assert right or all(not trial["passed"] for trial in found["correctness"] if trial["distribution"] == "given")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "cached"),
    [
        ("return x @ self.layer.weight.t() + self.layer.bias", False),
        ("if self.kept is None: self.kept = self.layer.weight.detach().t().contiguous()\n"
         "return x @ self.kept + self.layer.bias", True),
        ("if self.kept is None: self.kept = self.layer.bias.detach() * 1\n"
         "return x @ self.layer.weight.t() + self.kept", True),
        ("if self.kept is None: self.kept = self.layer.weight.detach().clone()\n"
         "if not torch.equal(self.kept, self.layer.weight): raise RuntimeError('packed before')\n"
         "return x @ self.kept.t() + self.layer.bias", True),
    ],
    ids=["read in each call", "transposed once", "one of two kept", "refused"],
)  # fmt: skip
def test_weights_of_which_something_is_kept_are_a_note(body: str, cached: bool, tmp_path: Path) -> None:
    found = model(tmp_path, "torch.nn.Linear(12, 20)", body)
    assert found["verdict"] == "accepted", found["reason"]
    assert ("weights_cached" in notes(found)) is cached


# --- what is changed --------------------------------------------------------------------------------------------------


def test_numbers_are_found_and_replaced_under_their_names() -> None:
    tree = values({"a": torch.ones(2), "b": [1, 2.5, "text"], "c": True}, 7).tree
    assert change.scalars(tree) == {"0.b[0]": 1, "0.b[1]": 2.5, "0.b[2]": "text", "0.c": True, "1": 7}
    for name, value in change.scalars(tree).items():
        other = change.with_scalar(tree, name, 99)
        assert change.scalars(other) == {**change.scalars(tree), name: 99}
        assert change.with_scalar(other, name, value) == tree


@pytest.mark.parametrize(
    ("value", "found"),
    [(True, [False]), (64, []), (8, []), (-100, [3, 5, -99]), (0, [3, 5, 1]), (7, [3, 5, 8]), (float("inf"), [])],
)
def test_numbers_that_may_be_sizes_stay(value: float, found: list[Any]) -> None:
    assert change.other_numbers(value, [3, 5], [64, 128, 64 * 128], near=True) == found


def test_on_a_gpu_whole_numbers_that_may_be_indices_stay() -> None:
    assert change.other_numbers(7, [3, 5], [64], near=False) == []
    assert change.other_numbers(-100, [3, 5], [64], near=False) == [3, 5, -99]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn])
def test_an_element_is_moved_far(dtype: torch.dtype) -> None:
    x = torch.randn(8, 9).to(dtype)
    for at in (0, 13, 71):
        moved = change.moved_element(x, at)
        changed = (moved.float() != x.float()).flatten()
        assert changed.nonzero().flatten().tolist() == [at]
        assert float((moved.float() - x.float()).abs().max()) > 0.9 * float(x.float().abs().max())
        assert float((change.moved_element(x, at, 2.0**-3).float() - x.float()).abs().max()) < 0.6
    positive = change.moved_element(torch.rand(5), 2)
    assert bool((positive >= 0).all())


def test_rows_of_zeros_are_the_same_ones_in_tensors_of_as_many_rows() -> None:
    x, y, z, w = torch.ones(2, 6, 5), torch.ones(12, 3), torch.ones(7), torch.ones(12, 3, dtype=torch.int32)
    a, b, c, d = change.zero_rows([x, y, z, w], random.Random(1))
    rows = (a.view(12, 5) == 0).all(1)
    assert torch.equal(rows, (b == 0).all(1))
    assert int(rows.sum()) == 3
    assert int((a == 0).sum()) == 15
    assert c is z
    assert d is w


def test_sorted_numbers_stay_sorted_between_the_same_ends() -> None:
    generator = torch.Generator().manual_seed(1)
    starts = torch.tensor([0, 3, 7, 12, 40], dtype=torch.int32)
    other = change.between(starts, generator)
    assert other is not None
    assert (other[0], other[-1], other.dtype, len(other)) == (0, 40, torch.int32, 5)
    assert bool((other.diff() >= 0).all())
    assert not torch.equal(other, starts)
    for none in (torch.arange(9), torch.tensor([3, 1, 2]), torch.tensor([0, 9]), torch.tensor([[0, 3, 9]])):
        assert change.between(none, generator) is None


def test_rows_of_a_mask_without_an_element() -> None:
    mask = change.with_empty_rows(torch.ones(2, 6, 5, dtype=torch.bool), random.Random(1))
    assert mask is not None
    assert sorted(mask.view(12, 5).sum(1).tolist()) == [0] * 3 + [5] * 9
    assert change.with_empty_rows(torch.ones(0, 5, dtype=torch.bool), random.Random(1)) is None


def test_texts_of_a_reference_are_its_constants() -> None:
    source = (
        "\"\"\"A docstring.\"\"\"\ndef run(x, how='sum'):\n    'another'\n    return {'mean': 1, 'sum': 2}[how], ''\n"
    )
    assert texts_in("ref.py", source) == ("sum", "mean")
    assert texts_in("ref.py", "def (") == texts_in("ref.cu", source) == ()


@pytest.mark.parametrize(
    ("tensor", "permuted"),
    [
        (torch.arange(9), True),
        (torch.tensor([0, 3, 7, 12]), False),
        (torch.tensor([4, 4, 4]), False),
        (torch.tensor([2, 0, 1, 1, 5, 4]), True),
        (torch.arange(6).expand(3, 6), True),
        (torch.tensor([[3, 1], [2, 0], [1, 7]]), True),
        (torch.tensor(5), False),
    ],
)
def test_integers_are_put_into_another_order_unless_they_may_be_offsets(tensor: torch.Tensor, permuted: bool) -> None:
    other = change.permuted(tensor, torch.Generator().manual_seed(1))
    assert (other is not None) is permuted
    if other is not None:
        assert not torch.equal(other, tensor)
        assert sorted(other.flatten().tolist()) == sorted(tensor.flatten().tolist())


def test_integers_are_drawn_anew_within_their_range() -> None:
    generator = torch.Generator().manual_seed(1)
    for dtype in (torch.uint8, torch.int32, torch.int64):
        index = torch.randperm(64).to(dtype) + 3
        other = change.redrawn(index, generator)
        assert other is not None
        assert (other.dtype, other.shape) == (dtype, index.shape)
        assert 3 <= int(other.min()) <= int(other.max()) <= 66
        assert len(other.unique()) < 64
    full = change.redrawn(torch.full((64,), 9), generator)
    assert full is not None
    assert set(full.tolist()) == set(range(1, 10))
    ends = torch.tensor([-(2**63), 5, 2**63 - 1])
    assert change.redrawn(ends, generator) is not None
    for none in (torch.tensor([0, 3, 7]), torch.ones(5).int(), torch.zeros(5).int(), torch.ones(0).int()):
        assert change.redrawn(none, generator) is None
    assert change.redrawn(torch.tensor([0.0, 9.0]), generator) is None


def test_large_numbers_keep_to_their_type_and_sign() -> None:
    generator = torch.Generator().manual_seed(1)
    counts = torch.randint(0, 1000, (64,))
    for dtype, least in ((torch.int16, 2**13), (torch.int32, 2**28), (torch.int64, 2**39)):
        large = change.large_numbers(counts.to(dtype), generator, None)
        assert large is not None
        assert large.dtype == dtype
        assert int(large.min()) >= 0
        assert int(large.max()) > least
        both = change.large_numbers(counts.to(dtype) - 500, generator, None)
        assert both is not None
        assert int(both.min()) < -least
    some = change.large_numbers(counts, generator, 3)
    assert some is not None
    assert 1000 < int(some.max()) <= 3 * 999
    for none in (counts.to(torch.uint8), torch.randint(0, 16, (512,)), torch.tensor([0, 4, 9]), counts << 50):
        assert change.large_numbers(none, generator, None) is None


@pytest.mark.processes
@pytest.mark.parametrize(
    ("reference", "body", "verdict"),
    [
        ("return self.layer(x)", "return self.layer(x) if self.training else x * 1", "incorrect"),
        ("return self.layer(x)", "return self.layer(x)", "accepted"),
        ("return self.layer(x) * (1 + self.training)", "return self.layer(x) * 2", "accepted"),
    ],
)
def test_a_mode_that_changes_nothing_for_the_reference_changes_nothing(
    reference: str, body: str, verdict: str, tmp_path: Path
) -> None:
    found = model(tmp_path, "torch.nn.LayerNorm(12)", body, reference)
    assert found["verdict"] == verdict, found["reason"]
