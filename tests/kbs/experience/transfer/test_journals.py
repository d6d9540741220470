"""Journals in verdicts and prose, tables whose rows are built on each other, and rows that a heading explains."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kbs.experience.transfer.import_export import Import, read

Told = tuple[str, float | None]
VERDICTS: list[tuple[str, Told]] = [
    ("Kept (median `9.5 H/s`, `+8%` over A81's `8.8 H/s`; same idea as A77)", ("success", 1.08)),
    ("Reverted (median `8.0 H/s` vs baseline `10.0 H/s`, `-20%`; the compiler does this already)", ("regression", 0.8)),
    ("Kept (throughput `+60%` from `5.0` to `8.0 H/s`; without the hint `+31%`)", ("success", 1.6)),
    ("Reverted (a quick run showed `+2.2%`, but four pairs regressed `-2.7%`)", ("regression", 0.973)),
    ("Reverted (a quick run showed `+1.1%`, but four pairs `-0.05%`)", ("neutral", 1.0)),
    ("Kept (runs improved `+6.8%` with unchanged latency spikes)", ("success", 1.068)),
    ("Kept (runs improved `+0.5%`, all pairs)", ("success", 1.005)),
    ("Reverted (runs regressed `-0.5%`)", ("regression", 0.995)),
    ("Reverted / no change (others regressed more clearly)", ("regression", None)),
    ("Informational (first `16.0 H/s` vs `15.0 H/s` (`+6.6%`), then `+1.6%`, within noise)", ("neutral", None)),
    ("Reverted (all sizes returned identical `3.7 H/s`)", ("neutral", None)),
    ("keep (+22%)", ("success", 1.22)),
    ("kept (latency -20%)", ("success", 1.25)),
    ("reverted (latency +25%)", ("regression", 0.8)),
    ("kept (+12% registers)", ("unmeasured", None)),
    ("kept (occupancy +30%)", ("unmeasured", None)),
    ("latency: \u22126% to \u221217% in all runs", ("success", None)),
    ("latency +1-6% (worst +14%)", ("regression", None)),
    ("1.6-2.2x speedup in all runs", ("success", None)),
    ("no c32 gain; reverted", ("neutral", None)),
    ("fixes wrong output of the second turn", ("unmeasured", None)),
    ("23.1 TFLOPS (-66%)", ("regression", 0.34)),
    ("wall 2.45 s -> 1.54 s (5.86x vs CPU)", ("success", 1.591)),
    ("did not match the reference; reverted", ("incorrect", None)),
    ("Not implemented", ("unmeasured", None)),
    ("kernel 10.6 us paired versus 10.0 us for two launches (slower)", ("regression", 0.943)),
    ("wait dropped from 30% to 20%", ("unmeasured", None)),
]


def imported(folder: Path, text: str, name: str) -> Import:
    path = folder / name
    path.write_text(text, "utf-8")
    return read(path, lambda _: "")


def told(found: Import) -> list[Told]:
    return [(one.outcome.value, round(one.speedup.median, 3) if one.speedup else None) for one in found.experiments]


@pytest.mark.parametrize(("words", "wanted"), VERDICTS)
def test_a_verdict_counts_with_the_figures_beside_it(tmp_path: Path, words: str, wanted: Told) -> None:
    table = f"# Journal\n\n| Id | Change | Outcome |\n|---|---|---|\n| A1 | unroll the loop | {words} |\n"
    assert told(imported(tmp_path, table, "journal.md")) == [wanted]


def test_rows_with_different_measures_are_compared_by_the_one_that_they_share(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        "experiment\ttag\tkernel_type\ttflops\tlatency_us\tspeedup_vs_pytorch\tcorrectness\tdescription\n"
        "0\tbase\tgemm\t10.0\t50.0\t0.6\tPASS*\tbaseline\n"
        "1\te1\tgemm\t12.5\t40.0\t0.75\tPASS*\tBM=32\n"
        "2\te2\tgemm\t10.0\t-\t0.6\trevert\tnum_stages=2: regression\n"
        "3\te3\tgemm\t12.4\t-\t0.74\trevert\tBK=128: slight regression\n"
        "4\te4\tgemm\t15.0\t33.333\t0.9\tPASS*\tBK=64\n"
        "5\te5\tgemm\t14.0\t-\t1.3\trevert\tprimary FAIL (0.1 error)\n"
        "6\tbase2\tgemm\t20.0\t25.0\t0.5\tPASS*\tbaseline of the second shape\n"
        "7\te7\tgemm\t21.0\t-\t0.52\trevert\tBN=128\n",
        "results.tsv",
    )
    assert told(found) == [
        ("unmeasured", None), ("success", 1.25), ("regression", 0.8), ("regression", 0.992), ("success", 1.2),
        ("incorrect", None), ("unmeasured", None), ("unmeasured", None),
    ]  # fmt: skip


def test_a_row_of_the_library_is_no_attempt(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        "op,variant,mean_ms,speedup_vs_torch,correct\ncumsum,torch,3.0,1.0,true\ncumsum,as_matmul,0.5,6.0,true\n",
        "scan.csv",
    )
    assert told(found) == [("unmeasured", None), ("success", 6.0)]


def test_the_name_of_a_problem_goes_before_its_kind(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        "problem,op_type,correct,speedup\n36_RMSNorm_.py,layernorm,True,1.5\n26_GELU_.py,elementwise,True,1.5\n"
        "42_Max_Pooling_2D.py,reduction,True,1.5\nfirst.py,softmax,True,1.5\n",
        "results.csv",
    )
    assert [one.op for one in found.experiments] == ["rmsnorm", "gelu", "", "softmax"]


def test_cycles_count_and_whether_it_was_merged(tmp_path: Path) -> None:
    found = imported(
        tmp_path,
        '{"iteration_id": 1, "change_summary": ["pack"], "valid": true, "cycles": 1800, "merged_to_main": true,'
        ' "result_summary": "PASS; cycles=1800 (fails <1700)", "kernel": "simd"}\n'
        '{"iteration_id": 2, "change_summary": ["mask"], "valid": true, "cycles": 2000, "merged_to_main": false,'
        ' "result_summary": "PASS; cycles=2000 (worse)", "kernel": "simd"}\n'
        '{"iteration_id": 3, "change_summary": ["short paths"], "valid": true, "cycles": 1500, "merged_to_main": true,'
        ' "result_summary": "PASS; cycles=1500", "kernel": "simd"}\n'
        '{"iteration_id": 4, "change_summary": ["drop"], "valid": false, "cycles": null,'
        ' "result_summary": "FAIL correctness", "kernel": "simd"}\n',
        "log.jsonl",
    )
    assert told(found) == [("unmeasured", None), ("regression", 0.9), ("success", 1.2), ("incorrect", None)]


STATUS = """# Status

## 2026-07-08: quantization/fp8_gemv, bit tricks

Status: landed. It was the decoder.

| act dtype | before | after | speedup |
|---|---|---|---|
| bf16 | 0.30 ms, 114 GB/s | **0.15 ms** | **2.00x** |
| f32 | 0.36 ms | 0.30 ms | 1.20x (f32 loads dominate) |

## Serving

| pass | change | tok/s | verdict |
|---|---|---|---|
| baseline | native linear only | 10.0 | \u2014 |
| syncs | cache the scale on the host | 11.0 | keep (+10%) |
| tiled | decode once | 11.0 | **reject** |

## Block 8 in the whole model

| c | current block16 | block8 | decision |
|---:|---:|---:|---|
| 16 | 993.8 | 975.1 | regression |
"""


def test_a_heading_says_what_its_rows_tried(tmp_path: Path) -> None:
    found = imported(tmp_path, STATUS, "status.md")
    assert told(found) == [
        ("success", 2.0), ("success", 1.2), ("unmeasured", None), ("success", 1.1), ("neutral", 1.0),
        ("regression", None),
    ]  # fmt: skip
    first, *_, last = found.experiments
    assert (first.op, first.time[:10]) == ("gemv", "2026-07-08")
    assert "bit tricks" in first.optimization
    assert last.optimization == "Block 8 in the whole model: 16"
    assert not found.left_out


RECORDS = """## World record history

| # | Record time | Description |
| - | - | - |
1 | 45 minutes | [llm.c baseline](https://example.org/1)
2 | 30 min | [Tuned rates](https://example.org/2)
3 | 0.4 hours | [New optimizer](https://example.org/3)
"""


def test_records_are_each_built_on_the_one_before(tmp_path: Path) -> None:
    found = imported(tmp_path, RECORDS, "records.md")
    assert told(found) == [("unmeasured", None), ("success", 1.5), ("success", 1.25)]
    assert [one.optimization for one in found.experiments] == ["llm.c baseline", "Tuned rates", "New optimizer"]


def test_a_table_that_only_measures_names_its_rows_in_the_first_column(tmp_path: Path) -> None:
    ladder = (
        "# Learning\n\n### SGEMM results\n\n| Program Type | Throughput (GFLOPS) | Execution Time (ms) |\n"
        "|---|---|---|\n| Global | 289.0 | 475.0 |\n| 2D tiles (BM=64) | 11000.0 | 12.4 |\n"
        "| 2D tiles + registers (BM=64) | 11050.0 | 10.0 |\n"
    )
    found = imported(tmp_path, ladder, "readme.md")
    assert told(found) == [("unmeasured", None), ("unmeasured", None), ("success", 1.24)]
    assert {one.op for one in found.experiments} == {"matmul"}
    phases = "# Profile\n\n| Phase of it | Time (ms) |\n|---|---|\n| load | 2.0 |\n| compute | 3.0 |\n"
    assert not imported(tmp_path, phases, "profile.md").experiments


PROSE = """# Optimization log

## Experiment 7: paired outputs

- It matched, bit for bit. Launches looked 2.5% faster, but by events it took 10.6 us paired versus 10.0 us (slower).
- Source restored.

## Experiment 6: fused copy

- Two pairs improved +0.95%/+0.90%; others +0.57%.

## Experiment 5: byte codes

- The accessor used the wrong order, so the timing is worth nothing.

## Experiment 4: warp per row (not implemented)

- Nothing was built. It should be 20% faster.

## Experiment 3: four warps per row

- Two pairs showed no repeatable gain; -0.6% to +0.8%. Reject it.

## Experiment 2: one warp per row

- Two pairs lost: -3.3/-3.2% and -3.8/-3.7%. Reject this mapping.

## Experiment 1: rows

- One row is faster than four by 5%. Eight rows regressed.
- Profiled again: less of the total. Retained one row.

## Experiment 0: nothing said
"""


def test_prose_below_the_heading_of_an_attempt_is_read(tmp_path: Path) -> None:
    found = imported(tmp_path, PROSE, "log.md")
    assert told(found) == [
        ("regression", 0.943), ("success", None), ("incorrect", None), ("unmeasured", None), ("neutral", None),
        ("regression", None), ("success", None),
    ]  # fmt: skip
    assert [one.iteration for one in found.experiments] == [7, 6, 5, 4, 3, 2, 1]
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith("line 33")


ITERATIONS = """# Journey

## Current best: 68.8 TFLOPS

- Tile: 128

### Iteration 1 - 2026-06-12
- **Change**: `int8_mlp.cu` \u2014 finer
  tiling of warps.
- **Profiling results** (b=8 s=512):
  - `wait`: 18% \u2192 5%
  - **latency: \u22126% to \u221217%**, in two runs
- **Conclusion**: pass.

### Iteration 2 - 2026-06-13 (negative)
- **Change (reverted)**: denser schedule
- **Profiling results**:
  - **latency: +1.5% to +3.0%**, a regression
- **Conclusion**: reverted

### \u274c v3: transposed
- **Result:** 23.1 TFLOPS (-66%)
- **Issue:** the transpose killed performance

## Next attempts

### 1. Fix the fragments
- **Idea:** add them
- **Benefit:** could be 2x faster

## What was tried and failed

### 2) Larger batches
- Attempt: more rows, for wall time.
- Outcome: not adopted.
- Failure reason: faster kernels did not consistently improve the wall time.

## What was tried and worked

### 3) Bulk copy
- Replaced many calls with one.

## Recommendation

**Status:** 68.8 TFLOPS, correct
"""


def test_bullets_over_several_lines_and_what_is_no_attempt(tmp_path: Path) -> None:
    found = imported(tmp_path, ITERATIONS, "iterations.md")
    assert told(found) == [
        ("success", None), ("regression", None), ("regression", 0.34), ("neutral", None), ("success", None),
    ]  # fmt: skip
    first = found.experiments[0]
    assert (first.time[:10], "tiling of warps" in first.optimization) == ("2026-06-12", True)


@pytest.mark.parametrize(
    "text",
    [
        "# Softmax\n\n## Step 2: Run it\n\nIf the build failed, the driver is too old. It is 2x faster than others.\n",
        "# Softmax\n\n## Experiment 3: swizzle\n\nWe expect it to be 1.5x faster. It could hurt small sizes.\n",
        "# Softmax\n\n## Attempt 2: more stages\n\nRegisters went up by +12% and the cache misses by +3%.\n",
        "# Softmax\n\n| Phase of it | Time (ms) |\n|---|---|\n| load | 2.0 |\n",
        "# Softmax\n\n## Verdicts\n\n| verdict | time |\n|---|---|\n| faster | less |\n",
        "# Softmax\n\n## Next attempts\n\n### 1. Fuse\n\nIt is faster on paper.\n",
    ],
)
def test_nothing_is_made_of_what_is_no_result(tmp_path: Path, text: str) -> None:
    try:
        found = imported(tmp_path, text, "notes.md")
    except UsageError:
        return
    assert {one.outcome.value for one in found.experiments} <= {"unmeasured"}
    assert not any(one.speedup for one in found.experiments)
