"""Kernels that are right and hide nothing are accepted, whatever they look like."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict
from tests.adversarial.compiler import compile_for_hopper
from tests.adversarial.support import HERE, bench, read_toml, rejecting, said

HONEST = HERE / "honest"


class Honest(BaseModel):
    """One kernel of honest.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    id: str
    file: str
    """In honest/."""
    reference: str
    """In honest/, or a path from there."""
    arguments: tuple[str, ...] = ()
    """Further words of `kopt bench`; a file among them stands in honest/."""
    gpu_arguments: tuple[str, ...] = ()
    """Words that stand in place of `arguments` on a GPU, where there are any."""
    timing_arguments: tuple[str, ...] = ()
    """Words that stand in place of both where its time is taken."""
    improvement: tuple[Literal["faster", "same", "slower"], ...] = ()
    """What the evaluator may say of its time; empty where the row is not in the corpus of the timing."""
    device: Literal["cpu", "gpu", "both"]
    """Where the kernel can run."""
    why: str
    """What might make an evaluator reject it."""

    def words(self, device: str) -> list[str]:
        """The words of `kopt bench` on this device, after candidate and reference."""
        chosen = self.gpu_arguments if device != "cpu" and self.gpu_arguments else self.arguments
        return self._placed(chosen, device)

    def timed_words(self, device: str) -> list[str]:
        """The same where its time is taken."""
        return self._placed(self.timing_arguments, device) if self.timing_arguments else self.words(device)

    def _placed(self, words: tuple[str, ...], device: str) -> list[str]:
        return [*(str(HONEST / word) if (HONEST / word).is_file() else word for word in words), "--device", device]

    @property
    def paths(self) -> tuple[Path, Path]:
        """(candidate, reference)."""
        return HONEST / self.file, (HONEST / self.reference).resolve()


ROWS = [Honest(**row) for row in read_toml(HERE / "honest.toml")["honest"]]


def _cases() -> list[Any]:
    cases = [pytest.param(row, "cpu", id=row.id) for row in ROWS if row.device != "gpu"]
    gpu = [
        pytest.param(row, "cuda:0", id=f"{row.id}@gpu", marks=pytest.mark.gpu) for row in ROWS if row.device != "cpu"
    ]
    return cases + gpu


@pytest.mark.processes
@pytest.mark.parametrize(("row", "device"), _cases())
def test_accepted(row: Honest, device: str) -> None:
    """It is accepted, and nothing is held against it."""
    found = bench(*row.paths, *row.words(device))
    assert found["verdict"] == "accepted", f"{row.why}\n{said(found)}"
    assert rejecting(found) == []
    assert all(trial["passed"] for trial in found["correctness"])


def test_command_exits_with_zero(run: Callable[..., Any], tmp_path: Path) -> None:
    """The command says the same as the functions that the other tests call."""
    row = next(row for row in ROWS if row.id == "exp2_softmax")
    candidate, reference = map(str, row.paths)
    done = run(tmp_path, "bench", candidate, "--ref", reference, *row.words("cpu"), "--json")
    assert done.code == 0, done.out + done.err
    assert json.loads(done.out)["data"]["verdict"] == "accepted"


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("file", [row.file for row in ROWS if row.file.endswith(".cu")])
def test_cuda_compiles(file: str, tmp_path: Path) -> None:
    """Kernels that only a GPU can run are compiled at least."""
    done = compile_for_hopper(HONEST / file, tmp_path)
    assert done.returncode == 0, done.stderr


def test_corpus_is_whole() -> None:
    """Every file of honest/ is used, every row's files exist, and no two rows are the same."""
    used = {path for row in ROWS for path in row.paths}
    used |= {HONEST / word for row in ROWS for word in row.arguments if (HONEST / word).is_file()}
    assert {path for path in HONEST.iterdir() if path.is_file()} == {path for path in used if path.parent == HONEST}
    assert all(path.is_file() for path in used)
    assert len({row.id for row in ROWS}) == len({row.file for row in ROWS}) == len(ROWS)
    assert sum(row.device != "gpu" for row in ROWS) >= 14
