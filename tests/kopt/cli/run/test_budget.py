"""`kopt run` under the discipline `budget`: two methods from few words, each left out by the real evaluator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import KERNEL, REFERENCE, wanted, workspace

WARPS = KERNEL.replace("num_warps=1", "num_warps=4")
SUM = ("v = tl.load(x + row * n + i, mask=i < n)", "v = tl.maximum(tl.load(x + row * n + i, mask=i < n), 0.0)")
ADDED = KERNEL.replace(*SUM).replace("tl.maximum(v, 0.0) * 2.0", "v + v")
BOTH = WARPS.replace(*SUM).replace("tl.maximum(v, 0.0) * 2.0", "v + v")
WORDS = (
    *("--method", "launch_config", "--method", "strength_reduce"),
    *("--why", "More warps keep more loads in flight, and a sum is cheaper than a product."),
    *("--change", "more warps, and a sum in place of the product"),
)
WITHOUT = ("--without", "launch_config=added.py", "--without", "strength_reduce=warps.py")


def begun(run: Callable[..., Run], home: Path, folder: Path, *device: str, reference: str = REFERENCE) -> Path:
    """The folder of a run that waits for its first proposal, with the files of one beside it."""
    workspace(folder, reference=reference)
    more = ("--proposer", "agent", "--discipline", "budget", "--iterations", "1", "--yes")
    done = run(home, "run", "start", *more, *device, cwd=folder)
    assert done.code == 0, done.out + done.err
    for name, text in (("both", BOTH), ("added", ADDED), ("warps", WARPS)):
        (folder / f"{name}.py").write_text(text)
    return folder / "runs/kernel-001"


def attributed(root: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((root / "v1/attribution.json").read_text())["methods"]
    return found


@pytest.mark.processes
@pytest.mark.slow
def test_two_methods_are_taken_only_with_what_is_left_without_each(
    run: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    root = begun(run, home, tmp_path / "work", "--device", "cpu", "--accept-unmeasured")

    def kopt(*words: str, **more: Any) -> Run:
        return run(home, *words, **{"cwd": tmp_path / "work", **more})

    request = wanted(kopt, tmp_path / "work")
    assert request["discipline"] == "budget"
    assert [one["methods"] for one in request["budget"]["axes"]] == [2, 2, 2]
    refused = kopt("run", "submit", "--kernel", "both.py", *WORDS)
    assert refused.code == 4
    assert "ablations" in refused.out
    taken = kopt("run", "submit", "--kernel", "both.py", *WORDS, *WITHOUT)
    assert taken.code == 0, taken.out + taken.err
    assert kopt("run", "gate", "--final").code == 0
    rows = attributed(root)
    assert [(one["method"], one["verdict"], one["helps"]) for one in rows] == [
        ("launch_config", "accepted", "unknown"),
        ("strength_reduce", "accepted", "unknown"),
    ]
    report = (root / "final_report.md").read_text()
    assert "bottleneck, before" in report
    assert "it made the kernel" in report


@pytest.mark.gpu
def test_what_each_method_brings_is_timed(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    """A row of 4096 columns for one warp: more warps bring much, and a sum in place of a product nothing."""
    large = REFERENCE.replace("M = 8", "M = 8192").replace("N = 96", "N = 4096")
    root = begun(run, home, tmp_path / "work", reference=large)
    taken = run(home, "run", "submit", "--kernel", "both.py", *WORDS, *WITHOUT, cwd=tmp_path / "work")
    assert taken.code == 0, taken.out + taken.err
    warps, added = attributed(root)
    assert warps["helps"] == "faster", warps
    assert warps["difference_us"][1] > 0
    assert added["helps"] == "no change", added
