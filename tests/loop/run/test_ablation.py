"""Ablation: of twenty planted methods, each alone is said to be useful, useless or harmful, as it was planted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loop.journal.state import Phase
from loop.proposals.proposal import Ablation
from tests.loop import tools
from tests.loop.driving import opened

pytestmark = pytest.mark.processes

NAMES = ("vectorized_access", "ldmatrix_stmatrix", "async_copy")
PLANTED = (
    (20, 0, 0), (0, 20, 0), (15, 15, 0), (0, 0, 30), (10, -10, 0), (-5, 25, 2), (3, 0, 30),
)  # fmt: skip
"""Percent of the whole kernel's time that leaving each method out costs; 0 does nothing, below 0 it was harmful. The
last of each seventh is left out where there are but two: 20 methods in all."""
CASES = [
    (version, method, cost)
    for version, costs in enumerate(PLANTED, 1)
    for method, cost in zip(NAMES, costs, strict=True)
][:20]


def kernels(version: int, costs: dict[str, int], **says: Any) -> tuple[str, tuple[Ablation, ...]]:
    """The kernel of a version, and itself without each method: its time, with an interval of half a percent."""
    us = 100 * 0.8**version
    code = ",".join(costs)
    whole = tools.kernel(version, us=us, spread=0.005, code=code)
    left = []
    for number, (method, cost) in enumerate(costs.items()):
        rest = ",".join(one for one in costs if one != method)
        text = tools.kernel(version + 100 + number, us=us * (1 + cost / 100), spread=0.005, code=rest, **says)
        left.append(Ablation(method=method, kernel=text))
    return whole, tuple(left)


def test_of_twenty_planted_methods_each_is_judged_right(tmp_path: Path) -> None:
    root = tmp_path / "run"
    with opened(root, device="cuda:0", discipline="budget", iterations=len(PLANTED)) as driver:
        while driver.advance() is Phase.PROPOSE:
            version = driver.run.version.number
            costs = {method: cost for at, method, cost in CASES if at == version}
            whole, left = kernels(version, costs)
            handed = tools.proposal(version, whole, parent=driver.state.best or 0, methods=tuple(costs), ablations=left)
            taken = driver.submit(handed, b"{}")
            assert taken.accepted, taken.broken
    right = 0
    for version, method, cost in CASES:
        found = json.loads((root / f"v{version}/attribution.json").read_text())
        row = next(one for one in found["methods"] if one["method"] == method)
        planted = "faster" if cost > 1 else "slower" if cost < -1 else "no change"
        right += row["helps"] == planted
        state = "effective" if planted == "faster" else "ineffective"
        shown = json.loads((root / f"v{version}/memory.json").read_text())["outcomes"]
        if version > 1:
            continue  # the machine code of the parent shows the method already: nothing is said of its signature
        assert next(one["found"] for one in shown if one["method"] == method) == state
    assert right == len(CASES) == 20


def test_the_difference_is_paired_and_has_an_interval(tmp_path: Path) -> None:
    root = tmp_path / "run"
    with opened(root, device="cuda:0", discipline="budget") as driver:
        driver.advance()
        whole, left = kernels(1, {"vectorized_access": 25, "async_copy": 0})
        assert driver.submit(
            tools.proposal(1, whole, methods=("vectorized_access", "async_copy"), ablations=left), b""
        ).accepted
        driver.advance()
        bench = driver.run.tools
        assert isinstance(bench, tools.FakeTools)
        assert [what.split()[0] for what in bench.asked[2:]] == ["signal", "verdict", "verdict", "verdict"]
    rows = json.loads((root / "v1/attribution.json").read_text())["methods"]
    assert rows[0]["ratio"] == pytest.approx([1.25, 1.25 / 1.005, 1.25 / 0.995])
    assert rows[0]["difference_us"] == pytest.approx([20.0, 80 * (1.25 / 1.005 - 1), 80 * (1.25 / 0.995 - 1)], abs=1e-3)
    assert (root / "v1/ablations/async_copy/receipt.json").exists()
    assert (root / "trajectory/v1-a1-without-async_copy.py").read_text() == left[1].kernel


def test_a_kernel_that_is_wrong_without_a_method_says_nothing_of_it(tmp_path: Path) -> None:
    root = tmp_path / "run"
    with opened(root, device="cuda:0", discipline="budget") as driver:
        driver.advance()
        whole, left = kernels(1, {"vectorized_access": 25, "async_copy": 0}, verdict="incorrect")
        broken = left[0].model_copy(update={"kernel": tools.kernel(7, unfit=1)})
        handed = tools.proposal(1, whole, methods=("vectorized_access", "async_copy"), ablations=(broken, left[1]))
        assert driver.submit(handed, b"").accepted
        driver.advance()
        assert driver.state.versions[1].kept
    rows = json.loads((root / "v1/attribution.json").read_text())["methods"]
    assert [one["helps"] for one in rows] == ["unknown", "unknown"]
    assert rows[0]["why"] == "the evaluator could not take the kernel without it"
    assert "without it the kernel is incorrect" in rows[1]["why"]
