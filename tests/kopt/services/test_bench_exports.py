"""Receipts as results of KernelBench and flashinfer-bench, in the forms that these read."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from evaluator.receipt.document import render
from evaluator.receipt.receipt import parse
from evaluator.store.seal import ensure_key, seal
from kbs.common.errors import UsageError
from kopt.services.bench.exports import Naming, export_receipt
from tests.conftest import ROOT

DOCUMENTS = ROOT / "tests" / "golden" / "contract" / "documents"


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Sample(Strict):
    """A row of KernelBench's eval_results.json, and what its KernelExecResult has of the reference's time."""

    sample_id: int
    compiled: bool
    correctness: bool
    metadata: dict[str, str]
    runtime: float
    runtime_stats: dict[str, float | str]
    ref_runtime: float
    ref_runtime_stats: dict[str, float | str]


class Correctness(Strict):
    max_relative_error: Annotated[float, Field(ge=0)] | Literal["NaN", "Infinity"]
    max_absolute_error: Annotated[float, Field(ge=0)] | Literal["NaN", "Infinity"]
    extra: dict[str, Any] | None


class Performance(Strict):
    latency_ms: float = Field(gt=0)
    reference_latency_ms: float = Field(ge=0)
    speedup_factor: float = Field(ge=0)


class Environment(Strict):
    hardware: str = Field(min_length=1)
    libs: dict[str, str]


class Evaluation(Strict):
    status: Literal[
        "PASSED",
        "INCORRECT_SHAPE",
        "INCORRECT_NUMERICAL",
        "INCORRECT_DTYPE",
        "RUNTIME_ERROR",
        "COMPILE_ERROR",
        "TIMEOUT",
    ]
    environment: Environment
    timestamp: str
    log: str
    correctness: Correctness | None
    performance: Performance | None


class Workload(Strict):
    axes: dict[str, int]
    inputs: dict[str, Any]
    uuid: str


class Trace(Strict):
    """A line of flashinfer-bench's traces."""

    definition: str = Field(min_length=1)
    workload: Workload
    solution: str
    evaluation: Evaluation


def sealed(name: str, tmp_path: Path) -> Path:
    """A receipt of the contract, with this home's seal."""
    file = tmp_path / name
    file.write_bytes(render(seal(parse((DOCUMENTS / name).read_bytes()), ensure_key(tmp_path))))
    return file


def exported(name: str, format: str, tmp_path: Path, **naming: Any) -> str:
    text, warnings = export_receipt(sealed(name, tmp_path), format, Naming(**naming), None, tmp_path)
    assert warnings == []
    return text


@pytest.mark.parametrize(
    ("name", "correct"),
    [("timed.json", True), ("accepted.json", True), ("incorrect.json", False), ("cheating.json", False)],
)
def test_kernelbench(name: str, correct: bool, tmp_path: Path) -> None:
    found = TypeAdapter(dict[str, list[Sample]]).validate_json(
        exported(name, "kernelbench", tmp_path, problem=23, sample=2)
    )
    [(problem, [sample])] = found.items()
    assert (problem, sample.sample_id, sample.correctness) == ("23", 2, correct)
    receipt = parse((DOCUMENTS / name).read_bytes())
    assert sample.metadata["kopt_receipt"] == receipt.id
    if receipt.timing is None:
        assert (sample.runtime, sample.runtime_stats, sample.ref_runtime) == (-1, {}, -1)
    else:
        median = receipt.timing.workloads[0].candidate.summary
        assert median is not None
        assert sample.runtime * 1000 == pytest.approx(median.median_us, rel=0.05)
        assert sample.runtime == sample.runtime_stats["mean"]
        assert sample.ref_runtime > 0


def test_flashinfer_bench(tmp_path: Path) -> None:
    receipt = parse((DOCUMENTS / "timed.json").read_bytes())
    lines = exported("timed.json", "flashinfer-bench", tmp_path, definition="softmax").splitlines()
    assert len(lines) == len(receipt.plan.workloads)
    again = exported("timed.json", "flashinfer-bench", tmp_path, definition="softmax").splitlines()
    assert lines == again
    for line, dims in zip(lines, receipt.plan.workloads, strict=True):
        trace = Trace.model_validate_json(line)
        evaluation, performance = trace.evaluation, trace.evaluation.performance
        assert (trace.definition, evaluation.status, trace.workload.axes) == ("softmax", "PASSED", dict(dims))
        assert evaluation.correctness is not None
        assert performance is not None
        assert performance.speedup_factor == pytest.approx(performance.reference_latency_ms / performance.latency_ms)
        assert uuid.UUID(trace.workload.uuid).version == 5
        assert receipt.id in evaluation.log


def test_a_wrong_result_has_errors_and_no_times(tmp_path: Path) -> None:
    for line in exported("incorrect.json", "flashinfer-bench", tmp_path).splitlines():
        evaluation = Trace.model_validate_json(line).evaluation
        assert (evaluation.status, evaluation.performance) == ("INCORRECT_NUMERICAL", None)
        assert evaluation.correctness is not None
        assert evaluation.correctness.max_absolute_error == pytest.approx(291.757, rel=1e-4)
        assert evaluation.correctness.max_relative_error == "Infinity", "zero was right"
    for line in exported("cheating.json", "flashinfer-bench", tmp_path).splitlines():
        evaluation = Trace.model_validate_json(line).evaluation
        assert (evaluation.status, evaluation.correctness, evaluation.performance) == ("RUNTIME_ERROR", None, None)
        assert "cheating" in evaluation.log


def test_what_cannot_be_said_is_an_error(tmp_path: Path) -> None:
    for name, format, code in (
        ("accepted.json", "flashinfer-bench", "not_exportable"),
        ("timed.json", "kernelbench", "problem_unnamed"),
        ("timed.json", "csv", "format_unknown"),
    ):
        with pytest.raises(UsageError) as error:
            exported(name, format, tmp_path)
        assert error.value.code == code
    with pytest.raises(UsageError) as error:
        export_receipt(DOCUMENTS / "external.json", "kernelbench", Naming(problem=1), None, tmp_path)
    assert error.value.code == "external_receipt"


def test_neither_source_nor_output_nor_variables_are_taken_over(tmp_path: Path) -> None:
    for name, format in (
        ("timed.json", "kernelbench"),
        ("timed.json", "flashinfer-bench"),
        ("cheating.json", "kernelbench"),
    ):
        receipt = parse((DOCUMENTS / name).read_bytes())
        text = exported(name, format, tmp_path, problem=1)
        for line in receipt.candidate.text.splitlines():
            assert len(line) < 12 or line.strip() not in text
        assert receipt.seed not in text
        for variable, value in receipt.environment.variables.items():
            assert f'"{variable}"' not in text or value not in text
        assert not receipt.output_tail.text or receipt.output_tail.text not in text


def test_a_changed_receipt_is_told_of_and_nothing_is_written_over(tmp_path: Path) -> None:
    _, [warning] = export_receipt(DOCUMENTS / "timed.json", "kernelbench", Naming(problem=1), None, tmp_path)
    assert "seal" in warning
    mine, out = tmp_path / "mine.json", tmp_path / "out.json"
    mine.write_text("{}", "utf-8")
    for _ in range(2):
        export_receipt(sealed("timed.json", tmp_path), "kernelbench", Naming(problem=1), out, tmp_path)
    assert json.loads(out.read_text("utf-8")).keys() == {"1"}
    for format in ("kernelbench", "flashinfer-bench"):
        with pytest.raises(UsageError) as error:
            export_receipt(sealed("timed.json", tmp_path), format, Naming(problem=1), mine, tmp_path)
        assert error.value.code == "output_exists"
