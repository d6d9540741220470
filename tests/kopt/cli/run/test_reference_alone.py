"""`kopt run start` where the user has a reference and no kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import REFERENCE

pytestmark = [pytest.mark.processes, pytest.mark.slow]
SOFTMAX = REFERENCE.replace("torch.relu(x) * 2.0", "torch.softmax(x, dim=-1)")
WORDS = ("--proposer", "agent", "--device", "cpu", "--accept-unmeasured", "--iterations", "1", "--yes")


def test_the_reference_is_a_baseline_that_a_kernel_replaces(
    run: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    done = run(home, "run", "start", *WORDS, cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    assert "version 0 is the reference itself, a baseline and no improvement" in done.err
    root = tmp_path / "runs/ref-kernel-001"
    receipt = json.loads((root / "v0/receipt.json").read_text())
    record = json.loads((root / "run.json").read_text())
    assert (receipt["verdict"], receipt["improvement"], receipt["problem"]["allow_library"]) == (
        "accepted",
        "not_timed",
        True,
    )
    assert record["first"]["problem_hash"] == receipt["problem"]["hash"] != record["problem_hash"]
    # A version that is the library too is none: only version 0 may call it.
    text = (root / "v0/kernel.py").read_text()
    (tmp_path / "v1.py").write_text(text.replace("torch.relu(x) * 2.0", "torch.relu(x + x)"))
    few = ("--method", "strength_reduce", "--why", "One addition is cheaper than a product.")
    tried = run(home, "run", "submit", "--kernel", "v1.py", *few, cwd=tmp_path)
    assert "library_call" in tried.out, tried.out + tried.err
    run(home, "run", "final", cwd=tmp_path)
    assert run(home, "run", "gate", "--final", cwd=tmp_path).code == 0
    assert "version 0 is the reference itself" in (root / "final_report.md").read_text()
    applied = run(home, "run", "apply", "--yes", cwd=tmp_path)
    assert applied.code == 0, applied.err
    assert (tmp_path / "ref_kernel.py").read_text() == text


def test_the_code_of_a_page_is_version_0_where_it_is_right(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(SOFTMAX)
    done = run(home, "run", "start", *WORDS, cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    assert "version 0 is the code of gpu-wiki/kernel/softmax.md:L" in done.err
    root = tmp_path / "runs/ref-kernel-001"
    assert "softmax_row[" in (root / "v0/kernel.py").read_text()
    assert not json.loads((root / "v0/receipt.json").read_text())["problem"]["allow_library"]
    # Over the columns, the page's kernel would be wrong, and the reference is taken.
    (tmp_path / "other").mkdir()
    (tmp_path / "other/ref.py").write_text(SOFTMAX.replace("dim=-1", "dim=0"))
    plan = run(home, "run", "plan", "--proposer", "agent", "--device", "cpu", cwd=tmp_path / "other")
    assert "does not do what the reference does: incorrect" in plan.out
    assert "version 0 is the reference itself" in plan.out
