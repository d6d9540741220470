"""Less precision than was asked for is rejected; half precision that was asked for is accepted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from tests.adversarial.low_precision import PROBLEMS, Problem, Variant, load, write
from tests.adversarial.support import bench, rejecting, said

SET = load()


@pytest.mark.processes
@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("variant", SET.variant, ids=lambda variant: variant.id)
@pytest.mark.parametrize("problem", SET.problem, ids=lambda problem: problem.id)
def test_precision(problem: Problem, variant: Variant, device: Literal["cpu", "gpu"], tmp_path: Path) -> None:
    """The verdict follows from precision alone: the kernel is otherwise the same."""
    candidate, reference = write(problem, variant, device, tmp_path)
    found = bench(candidate, reference, "--device", "cpu" if device == "cpu" else "cuda:0")
    assert found["verdict"] == variant.verdict, f"{variant.why}\n{said(found)}"
    assert rejecting(found) == []


def test_files_differ_in_their_constants_alone(tmp_path: Path) -> None:
    """The text of a rejected kernel is that of the accepted one, but for the line that rounds."""
    texts = {}
    for variant in SET.variant:
        folder = tmp_path / variant.id
        folder.mkdir()
        candidate, reference = write(SET.problem[0], variant, "cpu", folder)
        texts[variant.id] = candidate.read_text("utf-8").splitlines()
        assert f"DTYPE = torch.{variant.dtype}" in reference.read_text("utf-8")
    for id in ("tf32_for_fp32", "bf16_for_fp32"):
        other = [b for a, b in zip(texts["fp32"], texts[id], strict=True) if a != b]
        assert len(other) == 1
        assert other[0].startswith("BITS = ")
    files = {path.stem for path in PROBLEMS.glob("*.py")} - {"rounding"}
    assert files == {problem.id for problem in SET.problem}
