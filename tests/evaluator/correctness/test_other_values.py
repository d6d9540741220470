"""Values that the given ones are not: ends, zeros, signs, magnitudes, the last rows of tables, numbers of steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adversarial.support import bench

HEAD = "import torch\nimport torch.nn.functional as F\nkept = {}\n"
TWO = "[torch.randn(24, 36), torch.randn(24, 36)]"
STEP = "[torch.randn(24, 36), torch.tensor(1)]"
IDS = "[torch.randint(0, 90, (48,)), torch.randn(40000, 6)]"
COUNTS = "[torch.randint(0, 10000, (24, 36))]"
PROBLEMS = {
    "softmax": ("x", "return torch.softmax(x, -1)", "[torch.randn(24, 36)]"),
    "hypot": ("a, b", "return torch.hypot(a, b)", TWO),
    "expm1": ("x", "return torch.expm1(x)", "[torch.randn(24, 36)]"),
    "elu": ("x", "return F.elu(x)", "[torch.randn(24, 36)]"),
    "copysign": ("a, b", "return torch.copysign(a, b)", TWO),
    "atan2": ("a, b", "return torch.atan2(a, b)", TWO),
    "remainder": ("x", "return torch.remainder(x, 97)", COUNTS),
    "halves": ("x", "return torch.div(x, 2, rounding_mode='floor')", COUNTS),
    "decay": ("x, step", "return x / (1 - 0.9 ** step)", STEP),
    "embedding": ("ids, table", "return table[ids]", IDS),
}
MEMO = "key = {part}.numpy().tobytes()\nkept[key] = kept[key] if key in kept else torch.softmax(x, -1)\n"
MEMO += "return kept[key].clone()"
WRONG = {
    "a memo by all but the first": ("softmax", MEMO.format(part="x.detach().flatten()[1:]")),
    "a memo by all but the last": ("softmax", MEMO.format(part="x.detach().flatten()[:-1]")),
    "a plain hypot": ("hypot", "return (a * a + b * b).sqrt()"),
    "a plain expm1": ("expm1", "return torch.exp(x) - 1"),
    "a sign by comparison": ("copysign", "return torch.where(b < 0, -a.abs(), a.abs())"),
    "an angle by quadrants": (
        "atan2",
        "y = torch.atan(a / b)\nreturn y + torch.where(b < 0, torch.where(a < 0, -torch.pi, torch.pi), 0.0)",
    ),
    "a remainder of C": ("remainder", "return torch.fmod(x, 97)"),
    "halves that are cut": ("halves", "return torch.div(x, 2, rounding_mode='trunc')"),
    "the first step always": ("decay", "return x / (1 - 0.9)"),
    "steps that are counted": ("decay", "kept['n'] = 1\nreturn x / (1 - 0.9 ** kept['n'])"),
    "ids of 16 bits": ("embedding", "return table[ids.to(torch.int16).long()]"),
    "the first 1,000 rows": ("embedding", "return table[:1000][ids.clamp(max=999)]"),
}
RIGHT = {
    "a memo by all": ("softmax", MEMO.format(part="x.detach()")),
    "a scaled hypot": (
        "hypot",
        "m, n = torch.maximum(a.abs(), b.abs()), torch.minimum(a.abs(), b.abs())\n"
        "return torch.where(m > 0, m * (1 + (n / m).square()).sqrt(), m)",
    ),
    "an ELU by exp(x) - 1": ("elu", "return torch.where(x > 0, x, torch.exp(x) - 1)"),
    "a sign by its bit": ("copysign", "return torch.where(torch.signbit(b), -a.abs(), a.abs())"),
    "a remainder mended": ("remainder", "y = torch.fmod(x, 97)\nreturn torch.where(y < 0, y + 97, y)"),
    "a step that is read": ("decay", "return x / (1 - torch.exp(step * torch.log(torch.tensor(0.9))))"),
    "ids as they are": ("embedding", "return table.index_select(0, ids)"),
}


def examined(folder: Path, problem: str, body: str) -> dict[str, Any]:
    arguments, reference, made = PROBLEMS[problem]
    texts = {"ref.py": reference, "kernel.py": body}
    for name, text in texts.items():
        lines = "".join(f"    {line}\n" for line in text.splitlines())
        (folder / name).write_text(f"{HEAD}def run({arguments}):\n{lines}", "utf-8")
    (folder / "in.py").write_text(f"import torch\ndef get_inputs():\n    return {made}\n", "utf-8")
    words = ("--inputs", str(folder / "in.py"), "--allow-library", "--seed", "other values")
    return bench(folder / "kernel.py", folder / "ref.py", *words)


@pytest.mark.processes
@pytest.mark.parametrize("name", WRONG)
def test_caught(tmp_path: Path, name: str) -> None:
    found = examined(tmp_path, *WRONG[name])
    assert found["verdict"] == "incorrect", found["reason"]


@pytest.mark.processes
@pytest.mark.parametrize("name", RIGHT)
def test_neighbours_are_accepted(tmp_path: Path, name: str) -> None:
    found = examined(tmp_path, *RIGHT[name])
    assert found["verdict"] == "accepted", found["reason"]
