"""Logs that a stranger wrote down with what a careful reader says, and what reading must never make of a record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.records import page_of
from kbs.common.errors import ExitCode, UsageError
from kbs.evidence.vocabulary import words
from kbs.experience.entry import Entry
from kbs.experience.experiment import Experiment
from kbs.experience.transfer.import_export import Import, read

ROOT = Path(__file__).parents[4]
BLIND = ROOT / "benchmarks" / "results" / "blind" / "imports" / "2026-11-22.json"
CASES: list[dict[str, Any]] = json.loads(BLIND.read_text("utf-8"))["cases"]
LEFT_OUT = {"attention_optimization_log.md": 2}
"""Rows that compare with a library, and try nothing."""
NO_OPERATION = {"rope", "kl_div", "geglu", "embedding", "rotary_embedding", "fused_mlp", "Fused MoE Kernel"}
"""Kernels of operations that the vocabulary does not have."""
KERNELS = {
    "attention_optimization_log.md": {"Attention decode kernel", "Attention prefill kernel"},
    "fused_moe_log.md": {"Fused MoE Kernel"},
    "attention_journal.md": {"SDPA Kernel"},
}


def logged(case: dict[str, Any]) -> Import:
    return read(ROOT / case["path"], lambda _: "")


@pytest.mark.parametrize("case", CASES, ids=[case["log"] for case in CASES])
def test_a_log_is_read_as_a_careful_reader_does(case: dict[str, Any]) -> None:
    found = logged(case)
    assert len(found.left_out) == LEFT_OUT.get(case["log"], 0)
    for one, record in zip(found.experiments, case["records"], strict=True):
        wanted, about = record["expected"], (record["expected"]["key"], one.outcome, one.speedup)
        assert one.outcome.value in wanted["outcome"], about
        ratios = [*filter(None, [wanted["speedup"]]), *wanted["speedup_also_right"]]
        if one.speedup is not None:
            assert any(abs(one.speedup.median / ratio - 1) <= 0.01 for ratio in ratios), about
        else:
            assert wanted["speedup"] is None, about
        assert one.gpu == (wanted["gpu"] or ""), about
        plain = [name.replace("_", "") for name in wanted["operation"]]
        operation = one.op.replace("-", "")
        assert operation in plain or (not operation and (not plain or one.kernel in NO_OPERATION)), about
        assert one.kernel in KERNELS.get(case["log"], {one.kernel}), about
        assert wanted["date"] is None or one.time.startswith(wanted["date"]), about
        if (wanted["method_in_words"] or "").startswith("none"):
            assert one.methods == (), about


@pytest.mark.parametrize("case", CASES, ids=[case["log"] for case in CASES])
def test_the_same_log_again_has_the_same_ids(case: dict[str, Any]) -> None:
    assert logged(case) == logged(case)


def records(folder: Path, name: str, text: Any) -> Import:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")
    return read(path, lambda _: "")


ONE = {"kernel": "softmax", "change": "vectorized loads", "speedup": 1.5}


@pytest.mark.parametrize(
    "said",
    [
        {"success": False}, {"correct": False}, {"correct": "no"}, {"passed": 0}, {"status": "error"}, {"error": True},
        {"error": "CUDA error"}, {"result": {"ok": False}}, {"tests": "3/5 passed"}, {"validation": "failed"},
        {"verdict": "FAIL"}, {"crashed": True}, {"oom": "yes"}, {"compiled": False}, {"exit_code": 137},
        {"mismatch_count": 12}, {"is_valid": False}, {"numerics": "mismatch in 3 elements"}, {"status": "WRONG_ANSWER"},
        {"outcome": "success", "correct": False}, {"outcome": "kept", "error_type": "wrong_output"}, {"failed": True},
        {"error_type": "OOM"}, {"cheating_detected": True}, {"flags": ["cheat"]}, {"tests_failed": 2},
        {"result": "1.5x, but wrong results"}, {"notes": "the output is wrong for odd N"}, {"eval": {"correct": False}},
        {"compile_success": False}, {"harness": {"checks": {"numerically_correct": False}}}, {"timed_out": True},
        {"decision": "REVERT"}, {"accepted": False}, {"kept": False}, {"baseline_ms": 2, "optimized_ms": 3},
        {"correctness": "CORRECTNESS_FAILURE"}, {"status": "Timeout after 600 s"}, {"log_error": ["a", "b"]},
    ],
)  # fmt: skip
def test_what_is_not_right_or_was_not_kept_is_no_success(tmp_path: Path, said: dict[str, Any]) -> None:
    for form in (said, {"evaluation": said}):
        found = records(tmp_path, "log.json", [{**ONE, **form}])
        (one,) = found.experiments
        assert (one.outcome.value != "success", one.speedup) == (True, None)
        assert any("1.5" in note for note in found.notes)


@pytest.mark.parametrize(
    "said",
    [
        {"success": True}, {"correct": "PASS (err 1e-3)"}, {"error": None}, {"error": ""}, {"error": "none"},
        {"error": 0.001}, {"max_error": 0.1}, {"timed_out": False}, {"exit_code": 0}, {"tests": "5/5"}, {"errors": 0},
        {"timeout_s": 600}, {"notes": "no regressions and no NaN"}, {"status": "completed"}, {"kept": True},
        {"baseline_ms": 3, "optimized_ms": 2}, {"before": {"time_ms": 3}, "after": {"time_ms": 2}}, {"oom": "no"},
    ],
)  # fmt: skip
def test_what_is_right_stays_a_success(tmp_path: Path, said: dict[str, Any]) -> None:
    (one,) = records(tmp_path, "log.json", [{**ONE, **said}]).experiments
    assert (one.outcome.value, one.speedup and one.speedup.median) == ("success", 1.5)


@pytest.mark.parametrize(
    ("said", "outcome", "ratio"),
    [
        ({"speedup": "69.00%"}, "success", 1.69),
        ({"speedup": "-8%"}, "regression", 0.92),
        ({"speedup": "69%", "before_ms": 2.0, "after_ms": 2.9}, "regression", 0.69),
        ({"ratio": "69%"}, "regression", 0.69),
        ({"speedup": "12% slower"}, "regression", 1 / 1.12),
        ({"speedup_vs_torch": 1.2}, "success", 1.2),
        ({"gain_pct": 25}, "success", 1.25),
        ({"result": "3.10 ms -> 2.48 ms"}, "success", 1.25),
        ({"result": "3.10 ms → 2.48 ms (1.40×)"}, "unmeasured", None),
        ({"result": "+47% worse (11.0 vs 7.48 ms)"}, "regression", 0.68),
        ({"result": "17x slower"}, "regression", 1 / 17),
        ({"result": "+2% to +9% worse"}, "regression", None),
        ({"performance": "+5%"}, "success", 1.05),
        ({"result": "+5%"}, "unmeasured", None),
        ({"latency_us": 12.0}, "unmeasured", None),
        ({"before": 100, "after": 120}, "unmeasured", None),
        ({"before": "100 us", "after": "80 us"}, "success", 1.25),
        ({"median_ms": 2.0, "baseline_ms": 3.0, "eval_status": "ok"}, "success", 1.5),
        ({"vs prev": "3.0x"}, "success", 3.0),
        ({"pytorch_ms": 2.0, "triton_ms": "1.6 ms"}, "success", 1.25),
        ({"torch_ms": 2.0, "inductor_ms": 1.0, "triton_ms": 1.6}, "unmeasured", None),
        ({"speedup": 1.0004}, "neutral", 1.0004),
        ({"speedup": 1.03, "notes": "within noise"}, "neutral", 1.03),
        ({"outcome": "rejected"}, "rejected", None),
        ({"outcome": "reverted", "notes": "it was slower"}, "regression", None),
    ],
)
def test_ratios_in_many_forms(tmp_path: Path, said: dict[str, Any], outcome: str, ratio: float | None) -> None:
    (one,) = records(tmp_path, "log.json", [{"kernel": "softmax", "change": "wide loads", **said}]).experiments
    assert (one.outcome.value, one.speedup and one.speedup.median) == (
        outcome,
        ratio and pytest.approx(ratio, abs=1e-3),
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"correctness": {"pass": False}, "timing": {"speedup": 1.5}},
        {"perf": {"status": "done", "speedup": 1.5}, "check": {"status": "wrong"}},
        {"harness": {"correctness": {"pass": False}, "timing": {"speedup": 1.5, "ok": True}}},
        {"a": {"ok": False}, "b": {"speedup": 1.5}},
    ],
)
def test_the_parts_of_a_record_stay_together(tmp_path: Path, parts: dict[str, Any]) -> None:
    for form in ({"kernel": "softmax", **parts}, {"kernel": "softmax", "change": "x", "result": parts}):
        for text in (form, [form], {"gpu": "H100", "runs": [form]}):
            found = records(tmp_path, "log.json", text)
            assert [one.speedup for one in found.experiments] == [None], (text, found)


def test_times_of_rows_are_compared_with_what_was_kept_last(tmp_path: Path) -> None:
    rows = "kernel,change,latency_us,verdict\ngemm,baseline,40,baseline\ngemm,a,50,reverted\ngemm,b,32,kept\n"
    found = records(tmp_path, "log.csv", f"{rows}gemm,c,32.1,reverted\ngemm,d,16,kept\nsoftmax,e,8,kept\n")
    told = [(one.outcome.value, one.speedup and round(one.speedup.median, 3)) for one in found.experiments]
    assert told == [
        ("unmeasured", None), ("regression", 0.8), ("success", 1.25), ("neutral", 0.997), ("success", 2.0),
        ("unmeasured", None),
    ]  # fmt: skip
    assert found.experiments[-1].observed == "latency_us: 8", "its time is kept, and nothing says that it is faster"


def test_objects_of_records_keep_their_keys(tmp_path: Path) -> None:
    tried = {"attempts": [{"idea": "wide loads", "before_us": 10, "after_us": 8}]}
    assert [one.op for one in records(tmp_path, "log.json", {"softmax": tried, "gemm": tried}).experiments] == [
        "softmax", "matmul",
    ]  # fmt: skip
    found = records(tmp_path, "log.json", {"gpu": "H100", "kernel": "gemm", "runs": {"a": {"speedup": 2}, "b": ONE}})
    assert [(one.kernel, one.gpu, one.source) for one in found.experiments] == [
        ("gemm", "h100", "log.json: a"), ("softmax", "h100", "log.json: b"),
    ]  # fmt: skip


def test_a_row_that_only_has_a_time_compares_and_tries_nothing(tmp_path: Path) -> None:
    found = records(tmp_path, "log.csv", "kernel,impl,time_ms\nsoftmax,triton,1.0\nsoftmax,torch,1.5\n")
    assert (found.experiments, len(found.left_out)) == ((), 2)
    keyed = {"softmax_v1": {"correct": True, "speedup": 1.2}, "softmax_v2": {"correct": False, "speedup": 2.2}}
    assert [(one.kernel, one.outcome.value) for one in records(tmp_path, "log.json", keyed).experiments] == [
        ("softmax_v1", "success"), ("softmax_v2", "incorrect"),
    ]  # fmt: skip


MARKDOWN = """# Notes on tuning

GPU: NVIDIA L4 (sm_89). Target: fused_decode

## 2.1 Optimization History

| Change | Result |
|---|---|
| `tl.dot` for BLOCK_K=64→128 | -3% large, +6% small |

## 2. Attention kernel

### Attempt 4: wide loads
- **Correctness**: ✅ PASS
- **Performance**: 1.2×
"""


def test_headings_are_no_kernels_unless_they_name_one(tmp_path: Path) -> None:
    first, second = records(tmp_path, "log.md", MARKDOWN).experiments
    assert (first.kernel, first.gpu, first.optimization) == ("fused_decode", "l4", "`tl.dot` for BLOCK_K=64→128")
    assert (dict(first.parameters), first.observed) == ({"block_k": "128"}, "-3% large, +6% small")
    assert (second.kernel, second.gpu, second.iteration, second.outcome.value) == (
        "Attention kernel", "l4", 4, "success",
    )  # fmt: skip


def test_reasons_are_found_by_their_words() -> None:
    found = {word for case in CASES for one in logged(case).experiments for word in searched(one)}
    assert {"pressure", "spills", "illegal", "allocate", "undefined", "mismatch"} <= found


def searched(one: Experiment) -> set[str]:
    _, passages = page_of(Entry(one))
    return {word for passage in passages for word in words(passage.text)}


def test_a_file_without_such_columns_is_told_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        records(tmp_path, "log.csv", "foo,bar\n1,2\n")
    assert caught.value.exit_code is ExitCode.REJECTED
    assert "it has foo, bar" in caught.value.message
    assert "kernel: kernel, kernel_name" in caught.value.message
    found = records(tmp_path, "log.csv", "change,mood\na,2\nb,3\n")
    assert [line.split(":")[0] for line in found.left_out] == ["line 2", "line 3"]
    assert "its keys are change, mood" in found.left_out[0]
