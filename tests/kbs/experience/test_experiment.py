"""An experiment says the same in the same words, and cannot contradict itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import (
    Experiment,
    Outcome,
    backend_name,
    bottleneck_name,
    dtype_name,
    gpu_name,
    method_name,
    metric_name,
    op_name,
    outcome_of,
    stall_name,
)
from tests.kbs.experience.records import experiment, measured

ANY = st.text(max_size=40)


@pytest.mark.parametrize("words", ["memory", "memory-bound", "memory_bound", "Memory Bound", " MEMORY ", "bandwidth"])
def test_one_bottleneck_has_one_name(words: str) -> None:
    assert experiment(bottleneck_before=words).bottleneck_before == "memory-bound"


@pytest.mark.parametrize(
    ("name", "words", "id"),
    [
        (gpu_name, "NVIDIA H200", "h200-sxm"),
        (gpu_name, "NVIDIA H100 80GB HBM3", "h100-sxm"),
        (gpu_name, "H100", "h100"),
        (gpu_name, "NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        (gpu_name, "NVIDIA H800 PCIe", "nvidia h800 pcie"),
        (op_name, "row_softmax.py", "softmax"),
        (op_name, "fused_softmax_matmul", ""),
        (op_name, "nothing known", ""),
        (backend_name, "Triton", "triton"),
        (dtype_name, "torch.bfloat16", "bf16"),
        (stall_name, "Long Scoreboard", "stall-long-scoreboard"),
        (stall_name, "stall_long_scoreboard", "stall-long-scoreboard"),
        (method_name, "Vectorized access", "vectorized_access"),
        (metric_name, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram_throughput"),
        (bottleneck_name, "unknown", ""),
    ],
)
def test_names_are_those_of_the_vocabulary(name: Any, words: str, id: str) -> None:
    assert name(words) == id


@given(ANY)
def test_a_name_is_its_own_name(words: str) -> None:
    for name in (gpu_name, op_name, backend_name, dtype_name, stall_name, method_name, metric_name):
        assert name(name(words)) == name(words), name


@given(st.sampled_from(sorted(vocabulary().bottlenecks)), st.sampled_from(["", " ", "_", "-"]), st.booleans())
def test_every_spelling_of_a_class_is_the_class(id: str, blank: str, loud: bool) -> None:
    words = id.replace("-", blank) if blank else id
    assert bottleneck_name(words.upper() if loud else words) == id


@pytest.mark.parametrize("words", ["", "   ", "\n\t"])
def test_an_empty_optimization_is_refused(words: str) -> None:
    with pytest.raises(ValidationError, match="optimization"):
        experiment(optimization=words)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"provenance": "measured"}, "names a receipt"),
        ({"receipt": "a" * 64}, "names a receipt"),
        ({"speedup": {"median": 0.9}}, "the outcome is success, and the speedup is 0.9"),
        ({"outcome": "incorrect"}, "a wrong result has none"),
        ({"run": "r"}, "which iteration"),
        ({"kernel": " "}, "no name"),
        ({"bottleneck_before": "sadness"}, "not a bottleneck class"),
        ({"speedup": {"median": 1.2, "low": 1.3, "high": 1.4}}, "outside its interval"),
        ({"speedup": {"median": 1.2, "low": 1.1}}, "two ends"),
        ({"metrics_before": {"duration": "much"}}, "not a decimal number"),
        ({"metrics_before": {"duration": "1e9999"}}, "not a decimal number"),
        ({"metrics_before": {"duration": float("nan")}}, "not a decimal number"),
        ({"dims": {"M": 0}}, "greater than 0"),
        ({"dims": {"M": True}}, "integer"),
        ({"time": "yesterday"}, "not a time in UTC"),
        ({"id": "01"}, "pattern"),
        ({"lesson": "\ud800"}, "surrogate"),
        ({"unheard": 1}, "Extra inputs"),
    ],
)
def test_what_contradicts_itself_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        experiment(**changes)


def test_a_measured_success_needs_an_interval_above_one() -> None:
    assert measured("a").outcome is Outcome.SUCCESS
    for ratio in (None, {"median": 1.2}, {"median": 1.2, "low": 0.99, "high": 1.3}):
        with pytest.raises(ValidationError, match="a measured success"):
            measured("a", speedup=ratio)


def test_of_two_names_of_one_metric_the_preferred_one_is_kept() -> None:
    first = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    second = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
    for figures in ({first: 81.5, second: 80}, {second: 80, first: 81.5}):
        assert experiment(metrics_before=figures).metrics_before == {"dram_throughput": "81.5"}


@pytest.mark.parametrize(
    ("verdict", "improvement", "outcome"),
    [
        ("accepted", "faster", Outcome.SUCCESS),
        ("accepted", "slower", Outcome.REGRESSION),
        ("accepted", "same", Outcome.NEUTRAL),
        ("accepted", "unstable", Outcome.UNMEASURED),
        ("accepted", "not_timed", Outcome.UNMEASURED),
        ("accepted", "not_compared", Outcome.UNMEASURED),
        ("incorrect", "not_timed", Outcome.INCORRECT),
        ("cheating", "not_timed", Outcome.REJECTED),
        ("task_refused", "not_timed", Outcome.REJECTED),
        ("not_supported_here", "not_timed", Outcome.UNMEASURED),
        ("compile_error", "not_timed", Outcome.FAILED),
        ("crashed", "not_timed", Outcome.FAILED),
        ("timeout", "not_timed", Outcome.FAILED),
    ],
)
def test_the_outcome_is_the_receipts(verdict: str, improvement: str, outcome: Outcome) -> None:
    assert outcome_of(verdict, improvement) is outcome


def test_every_verdict_of_a_receipt_has_an_outcome() -> None:
    from evaluator.receipt.verdict import Improvement, Verdict

    for verdict in Verdict:
        assert outcome_of(verdict, Improvement.NOT_TIMED) in Outcome
    with pytest.raises(ValueError, match="not a verdict"):
        outcome_of("fine", "faster")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "kernel": ANY.filter(str.strip),
            "op": ANY,
            "backend": ANY,
            "gpu": ANY,
            "dtype": ANY,
            "dominant_stall": ANY,
            "methods": st.lists(ANY, max_size=3),
            "lesson": ANY,
            "metrics_before": st.dictionaries(ANY.filter(str.strip), st.integers(), max_size=3),
            "dims": st.dictionaries(ANY.filter(str.strip), st.integers(1, 2**39), max_size=3),
        },
    )
)
def test_a_record_read_back_is_the_same(changes: dict[str, Any]) -> None:
    one = experiment(**changes)
    assert Experiment.model_validate_json(one.model_dump_json()) == one
