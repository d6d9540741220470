"""Times in the JSON of `kopt bench`: what a receipt keeps, flattened, with its samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from evaluator.receipt import timing as records
from evaluator.receipt.verdict import Improvement, Verdict
from kbs.common.json_model import json_schema
from kopt.cli.schema import printed_type
from kopt.services.results import timing as schemas
from kopt.services.results.bench import BenchData
from tests.evaluator.receipts import (
    baseline,
    failed_baseline,
    receipt,
    timed,
    timed_receipt,
    timing,
    workload_timing,
)


def data(made: Any = None) -> dict[str, Any]:
    """What stands under `data`."""
    return BenchData.of(timed_receipt() if made is None else made, Path("receipt.json")).model_dump(mode="json")


def test_the_candidate_with_its_samples() -> None:
    found = data()["timing"]["candidate"]
    kept = timing().workloads[0].candidate.series.kept()
    assert found["samples_us"] == kept
    assert (found["n"], len(kept), found["late"]) == (19, 19, 1)
    assert found["median_us"] == 136.0
    assert found["p20_us"] < found["median_us"] < found["p80_us"]
    assert found["ci_low_us"] < found["median_us"] < found["ci_high_us"]


def test_the_first_calls_of_both_sides() -> None:
    slow = baseline(timed=timed("eager", 178.5, first_call_seconds=41.25))
    found = data(
        timed_receipt(timing(workload_timing(candidate=timed(first_call_seconds=3.5), baselines={"eager": slow})))
    )
    assert found["timing"]["candidate"]["first_call_seconds"] == 3.5
    assert found["timing"]["baselines"]["eager"]["first_call_seconds"] == 41.25


def test_baselines_by_name() -> None:
    found = data()["timing"]["baselines"]
    assert list(found) == ["eager", "compile", "flashinfer"]
    assert found["eager"]["ratio"]["median"] == 1.3125
    assert found["eager"]["improvement"] == "faster"
    assert len(found["eager"]["samples_us"]) == 19
    failed = found["flashinfer"]
    assert (failed["status"], failed["detail"], failed["n"]) == ("failed", "it is not installed", 0)
    assert (failed["ratio"], failed["median_us"], failed["samples_us"]) == (None, None, [])


def test_the_ratio_and_what_it_speaks_of() -> None:
    found = data()["timing"]
    assert {name: found["ratio"][name] for name in ("median", "ci_low", "ci_high")} == {
        "median": 1.3125,
        "ci_low": 1.3125 * 0.996,
        "ci_high": 1.3125 * 1.004,
    }
    assert (found["against"], found["improvement"], found["plan"]) == ("eager", "faster", "verdict")
    alone = timing(workload_timing(baselines={}, against=""), plan="signal")
    found = data(timed_receipt(alone, improvement=Improvement.NOT_COMPARED))["timing"]
    assert (found["ratio"], found["against"], found["improvement"]) == (None, "", "not_compared")


def test_workloads_are_the_receipts_without_samples() -> None:
    times = timing(workload_timing(dims={"n": 1}), workload_timing(dims={"n": 2}, baselines={"eager": baseline()}))
    found = data(timed_receipt(times))["timing"]["workloads"]
    assert [row["dims"] for row in found] == [{"n": 1}, {"n": 2}]
    for row, workload in zip(found, times.workloads, strict=True):
        whole = workload.model_dump(mode="json")
        for contender in (whole["candidate"], *(entry["timed"] for entry in whole["baselines"].values())):
            del contender["series"]
        assert row == whole


def test_clocks_ceiling_and_physics() -> None:
    found = data()
    assert found["timing"]["clocks"] == timing().clocks.model_dump(mode="json")
    first = timing().workloads[0]
    assert first.ceiling is not None
    assert found["ceiling"] == first.ceiling.model_dump(mode="json")
    assert found["physics"] == first.physics.model_dump(mode="json")


def test_nothing_where_nothing_was_timed() -> None:
    found = data(receipt())
    assert (found["timing"], found["ceiling"], found["physics"]) == (None, None, None)
    assert found["improvement"] == "not_timed"


def test_a_candidate_that_lost_its_time() -> None:
    lost = timed(status="failed", summary=None, detail="its process ended")
    times = timing(
        workload_timing(candidate=lost, baselines={"eager": failed_baseline("eager")}), against="", ratio=None
    )
    found = data(timed_receipt(times, improvement=Improvement.UNSTABLE, verdict=Verdict.CRASHED))
    assert found["timing"]["candidate"]["median_us"] is None


@pytest.mark.parametrize(
    ("shown", "kept", "left_out"),
    [
        (schemas.SummaryData, records.Timed, {"summary", "series"}),
        (schemas.SummaryData, records.Summary, set()),
        (schemas.TimingData, records.Timing, set()),
        (schemas.BaselineData, records.Baseline, {"timed"}),
    ],
)
def test_no_field_of_the_receipt_is_forgotten(
    shown: type[BaseModel], kept: type[BaseModel], left_out: set[str]
) -> None:
    assert set(kept.model_fields) - left_out <= set(shown.model_fields)


def test_the_schema_describes_it() -> None:
    published = json_schema(printed_type("bench"))
    assert {"TimingData", "SummaryData", "BaselineData", "Ratio", "Clocks"} <= set(published["$defs"])
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator(published)
    for made in (receipt(), timed_receipt()):
        assert not list(checker.iter_errors(data(made)))
