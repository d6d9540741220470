"""Logs of thirteen further forms: real ones where their license allows it, and else others of the same form."""

from __future__ import annotations

import contextlib
import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kbs.common.errors import UsageError
from kbs.experience.transfer.import_export import Import, read
from kbs.experience.transfer.public_form import UNNAMED

FORMS = Path(__file__).parent / "data" / "forms"
REAL = Path(__file__).parents[3] / "third_party" / "autokernel" / "EXPERIMENTS.md"
BASE = ("unmeasured", None)
BAD = ("failed", None)
READ: dict[str, tuple[str, str, int, list[tuple[str, float | None]]]] = {
    "kernel_layer_norm_3_results.tsv": ("layer_norm", "layernorm", 0, [
        BASE, ("success", 1.508), ("regression", 0.9705), ("regression", 0.5957), ("success", 1.0354),
        ("neutral", 0.9949), ("regression", 0.762), ("incorrect", None),
    ]),
    "orchestration.json": ("matmul", "matmul", 0, [("success", 2.0), ("neutral", 1.0), ("success", 1.2), BASE]),
    "fast_softmax_kernel/v3_0.8ms/optimization_history.json": ("softmax_kernel", "softmax", 0, [
        BASE, ("success", 1.6), ("regression", 0.8), ("neutral", 1.0004), BAD, ("success", 1.2495), ("incorrect", None),
    ]),
    "results/history.csv": (UNNAMED, "", 0, [BASE, BASE, BAD, ("incorrect", None)]),
    "level_summary.md": ("3_Softmax", "softmax", 0, [BAD, ("success", 2.0), ("regression", 0.25), ("neutral", 1.001)]),
    "manifest.json": ("rmsnorm_small.py", "rmsnorm", 0, [("success", 1.5), ("success", 1.2), ("incorrect", None)]),
    "flash_attn_steps.md": ("my-flash-attn", "attention", 0, [
        BASE, ("success", 4.0), ("success", 2.0), ("neutral", 1.003), ("regression", 0.7976), ("regression", None),
    ]),
    "sgemm_ladder.md": ("SGEMM_Study", "matmul", 0, [
        BASE, ("regression", 0.9), ("success", None), BASE, ("success", None), ("regression", 0.75), BASE,
    ]),
    "tuner.log": ("conv2d_nchw", "", 0, [BASE, BASE, BAD]),
    "LOOP2_ITERATION.md": (UNNAMED, "", 0, [BASE, BAD, BAD]),
    "autoresearch.jsonl": ("rmsnorm", "rmsnorm", 1, [
        BAD, BASE, ("success", 1.2038), ("regression", 0.9062), ("neutral", 1.0031), BAD, ("success", 1.16),
        ("regression", 0.9483), BAD, ("success", 1.0223),
    ]),
    "kernel_experiments.yaml": ("softmax-fwd", "softmax", 1, [
        BASE, ("success", 1.514), ("success", 1.263), ("incorrect", None), ("regression", 0.926), ("neutral", 0.998),
        BASE,
    ]),
    "EXPERIMENTS.md": ("NVFP4 Matmul", "matmul", 4, [
        BASE, ("success", 10.4693), BAD, ("success", 1.2834), BAD, ("success", 4.0407), ("incorrect", None),
        ("success", 1.0159), ("success", 1.2767), ("regression", 0.8031), ("incorrect", None), ("incorrect", None),
        ("success", 3.32),
    ]),
}  # fmt: skip
"""File → the first record's kernel and operation, how many are left out, and the outcome and ratio of each kept one."""


def of_form(name: str) -> Import:
    return read(REAL if name == REAL.name else FORMS / name, lambda _: "")


@pytest.mark.parametrize("name", READ)
def test_a_log_of_another_form_is_read(name: str) -> None:
    kernel, op, left_out, wanted = READ[name]
    found = of_form(name)
    assert [(one.outcome.value, one.speedup and round(one.speedup.median, 4)) for one in found.experiments] == wanted
    assert (found.experiments[0].kernel, found.experiments[0].op, len(found.left_out)) == (kernel, op, left_out)


def test_what_stands_beside_the_result_is_read_too() -> None:
    first, second, *_ = of_form("results/history.csv").experiments
    assert (dict(first.parameters), first.methods) == ({"block_size_m": "64", "num_warps": "4"}, ())
    assert second.observed == "ms: 1.0", "a time that is compared with none is kept"
    assert dict(of_form("kernel_layer_norm_3_results.tsv").experiments[6].parameters) == {
        "num_warps": "16", "stages": "3",
    }  # fmt: skip
    assert dict(of_form("tuner.log").experiments[0].parameters)["tile_f"] == "[-1, 4, 8, 1]"
    assert of_form("autoresearch.jsonl").experiments[0].gpu == "rtx-4090"
    assert of_form("autoresearch.jsonl").experiments[0].time.startswith("2026-06-01")
    assert {one.gpu for one in of_form("LOOP2_ITERATION.md").experiments} == {"l4"}
    assert of_form("sgemm_ladder.md").experiments[2].methods == ("tiling_smem",)
    assert [one.op for one in of_form("tuner.log").experiments] == ["", "matmul", "matmul"]


def told(folder: Path, text: Any, name: str = "log.csv") -> list[tuple[str, float | None]]:
    path = folder / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")
    found = read(path, lambda _: "")
    return [(one.outcome.value, round(one.speedup.median, 3) if one.speedup else None) for one in found.experiments]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"status": "✅", "speedup": 0.5}, ("regression", 0.5)),
        ({"status": "✅"}, ("unmeasured", None)),
        ({"status": "success"}, ("unmeasured", None)),
        ({"status": "success", "speedup": 0.5}, ("regression", 0.5)),
        ({"decision": "keep"}, ("unmeasured", None)),
        ({"decision": "keep", "speedup": 0.9}, ("unmeasured", None)),
        ({"decision": "reject", "speedup": 0.9}, ("regression", 0.9)),
        ({"decision": "revert"}, ("unmeasured", None)),
        ({"decision": "revert", "speedup": 2.0}, ("unmeasured", None)),
        ({"tag": "revert", "speedup": 2.0}, ("unmeasured", None)),
        ({"anything": "discard", "speedup": 2.0}, ("unmeasured", None)),
        ({"tensor cores": "yes", "speedup": 2.0}, ("success", 2.0)),
        ({"result": "FAIL (9/12 shapes)", "speedup": 0.4}, ("incorrect", None)),
        ({"result": "PASS (12/12)", "speedup": 2.0}, ("success", 2.0)),
        ({"TFLOPS": "FAIL", "result": "REVERT"}, ("failed", None)),
        ({"Latency (us)": "OOM"}, ("failed", None)),
        ({"before (GB/s)": 100, "after (GB/s)": 150}, ("success", 1.5)),
        ({"baseline_tflops": 100, "best_tflops": 90}, ("regression", 0.9)),
        ({"baseline_ms": 2.0, "tflops": 90}, ("unmeasured", None)),
        ({"best_ms": 1.0, "time_ms": 2.0, "baseline_ms": 4.0}, ("success", 2.0)),
        ({"S": 4096, "baseline_s": 8192}, ("unmeasured", None)),
        ({"baseline_compile_ms": 9, "compile_ms": 3}, ("unmeasured", None)),
        ({"peak_gbps": 3000, "baseline_gbps": 1000}, ("unmeasured", None)),
        ({"status": "done", "notes": "-30% registers"}, ("unmeasured", None)),
        ({"time": "55 us (wrong results)", "speedup": 2.0}, ("incorrect", None)),
        ({"before_ms": 4.0, "after_ms": 3.0, "gain": "25%"}, ("success", 1.333)),
        ({"before_ms": 4.0, "after_ms": 3.0, "gain": "50%"}, ("unmeasured", None)),
    ],
)
def test_an_outcome_needs_evidence(tmp_path: Path, row: dict[str, Any], wanted: tuple[str, float | None]) -> None:
    for form in ([{"kernel": "softmax", "change": "wide loads", **row}], [{"change": "wide loads", **row}]):
        assert told(tmp_path, form, "log.json") in ([wanted], [] if wanted == BASE else [wanted])


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ("gemm,,baseline,10\ngemm,,a,5\n", [BASE, ("success", 2.0)]),
        ("gemm,,baseline,10\ngemm,,a,5\ngemm,,b,6\n", [BASE, ("success", 2.0), BASE]),
        ("gemm,,baseline,10\ngemm,,a,12\ngemm,,a + b,9\n", [BASE, ("regression", 0.833), ("success", 1.333)]),
        ("gemm,64,baseline,10\ngemm,128,a,5\n", [BASE, BASE]),
        ("gemm,,a,10\ngemm,,b,5\n", [BASE, BASE]),
        ("gemm,,baseline,10\ngemm,,+ a,5\ngemm,,+ b,8\n", [BASE, ("success", 2.0), ("regression", 0.625)]),
        ("gemm,,baseline,10\nsoftmax,,a,5\n", [BASE, BASE]),
    ],
)
def test_rows_are_compared_where_it_is_known_with_what(tmp_path: Path, rows: str, wanted: list[Any]) -> None:
    assert told(tmp_path, f"kernel,N,change,latency_us\n{rows}") == wanted


def test_yaml_is_read_without_tags_and_without_end(tmp_path: Path) -> None:
    path = tmp_path / "log.yaml"
    for text in (
        "kernel: &c0 [x, x]\n" + "".join(f"c{i}: &c{i} [{', '.join([f'*c{i - 1}'] * 10)}]\n" for i in range(1, 9)),
        "kernel: !!python/object/apply:os.system ['true']\nchange: x\nspeedup: 2\n",
        "change: " + "[" * 5000,
        "change: {a: &x [*x]}\nspeedup: 2\n",
    ):
        path.write_text(text, "utf-8")
        with contextlib.suppress(UsageError):
            assert read(path, lambda _: "").experiments == ()


KEYS = [
    "Kernels",
    "change",
    "What Was Tried",
    "Tag",
    "Result",
    "TFLOPS",
    "ms",
    "Speedup",
    "GB/s (x)",
    "Status",
    "N",
    "v",
]
CELLS = st.sampled_from(
    ["", "✅", "❌", "keep", "revert", "FAIL", "baseline", "1.5x", "-3%", "12", "3.5 ms", "a + b", "NaN"]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(CELLS, min_size=4, max_size=4), min_size=1, max_size=6), st.permutations(KEYS))
@example([["", "keep", "1.5x", ""], ["", "keep", "12", ""]], ["Kernels", "Tag", "TFLOPS", "change", *KEYS[4:]])
def test_a_table_gives_no_ratio_that_its_figures_do_not(tmp_path: Path, rows: list[list[str]], keys: list[str]) -> None:
    header = keys[:4]
    path = tmp_path / "log.md"
    lines = [header, ["---"] * 4, *rows]
    path.write_text("".join(f"| {' | '.join(row)} |\n" for row in lines), "utf-8")
    try:
        found = read(path, lambda _: "")
    except UsageError:
        return
    assert len(found.experiments) + len(found.left_out) + found.repeated == len(rows)
    figures = {1.5, 0.97, 12 / 3.5, 3.5 / 12, 1.12, 12.0, 1.0, 3.5, 0.88}
    scales = [one * 10**power for one in figures for power in (-3, 0, 3)]
    for one in found.experiments:
        assert one.speedup is None or any(abs(one.speedup.median / ratio - 1) < 0.01 for ratio in scales), one
        assert one.outcome.value != "success" or one.speedup is None or one.speedup.median > 1


@pytest.mark.parametrize(
    "row",
    ["| a + a | 3 ms | keep |", "# step 1: " + "x " * 20 + "3 ms (", "tried a" * 30, "#" * 99, f"# a{' ' * 9000}b"],
)
def test_long_texts_take_no_long_time(tmp_path: Path, row: str) -> None:
    path = tmp_path / "log.md"
    head = "# kernel softmax\n\n| Change | Time | Result |\n|---|---|---|\n| baseline | 9 ms | keep |\n"
    lines = [row.replace("a", f"a{random.Random(place).random()}", 1) for place in range(1000)]
    path.write_text(head + "\n".join(lines), "utf-8")
    begun = time.perf_counter()
    read(path, lambda _: "")
    assert time.perf_counter() - begun < 20
