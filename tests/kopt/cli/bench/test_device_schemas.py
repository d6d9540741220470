"""The JSON of `kopt bench ceilings` and `kopt bench noise`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.noise import NoiseRun
from evaluator.receipt.timing import Figure
from evaluator.receipt.verdict import Improvement
from evaluator.timing.ceilings import Ceilings
from kbs.common.json_model import json_schema
from kopt.cli.schema import printed_type
from kopt.services.results.bench import CeilingsData, NoiseData
from tests.evaluator.receipts import clocks, ratio


def ceilings() -> Ceilings:
    """Two figures of a device."""
    return Ceilings(
        created="2026-11-21T10:00:00Z",
        device="NVIDIA H200",
        driver="575.1",
        torch="2.13.0",
        cuda="13.0",
        l2_bytes=60 << 20,
        empty_us=1.25,
        figures=(
            Figure(name="copy 8 MiB", value=4000.0, unit="GB/s", us=4.2, n=20),
            Figure(name="launch", value=2.5, unit="us", us=2.5, n=20),
        ),
        clocks=clocks(),
    )


def noise(run: int, said: Improvement, floor: float) -> NoiseRun:
    """A run."""
    return NoiseRun(
        run=run,
        improvement=said,
        ratio=ratio(1.0, noise=floor),
        median_us=136.0,
        turns=40,
        seconds=9.5,
        turn_seconds=2.0,
    )


def test_ceilings_are_those_that_were_measured() -> None:
    made = ceilings()
    found = CeilingsData.of(made, Path("kept/h200.json")).model_dump(mode="json")
    assert found.pop("path") == "kept/h200.json"
    kept = made.model_dump(mode="json")
    assert (kept.pop("schema_version"), kept.pop("kind")) == (1, "kopt-ceilings")
    assert found == kept
    assert [figure["unit"] for figure in found["figures"]] == ["GB/s", "us"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ([], 0),
        ([Improvement.SAME, Improvement.UNSTABLE], 0),
        ([Improvement.FASTER], 1),
        ([Improvement.SLOWER, Improvement.SAME, Improvement.FASTER], 2),
    ],
)
def test_runs_that_call_a_difference_are_counted(said: list[Improvement], wrong: int) -> None:
    runs = [noise(n, one, 0.004 - 0.001 * n) for n, one in enumerate(said)]
    found = NoiseData.of(runs)
    assert found.wrong == wrong
    assert found.largest_noise == (0.004 if said else 0.0)
    assert found.runs == [run.model_dump(mode="json") for run in runs]
    assert [run["improvement"] for run in found.runs] == [one.value for one in said]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "made", "required"),
    [
        ("bench ceilings", CeilingsData.of(ceilings(), Path("x")), {"figures", "path", "device", "driver", "clocks"}),
        ("bench noise", NoiseData.of([noise(0, Improvement.SAME, 0.1)]), {"runs", "wrong", "largest_noise"}),
    ],
)
def test_the_published_schema_is_what_is_printed(command: str, made: Any, required: set[str]) -> None:
    assert isinstance(made, printed_type(command))
    schema = json_schema(printed_type(command))
    printed = made.model_dump(mode="json")
    assert set(schema["properties"]) == set(printed)
    assert required <= set(schema["required"]) == set(printed)
    assert all(field.get("description") or field.get("type") for field in schema["properties"].values())
