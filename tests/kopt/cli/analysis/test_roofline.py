"""`kopt roofline` as a user types it: all forms, what is unknown, measured ceilings and points, and the picture."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.receipt.receipt import Receipt
from evaluator.receipt.timing import Figure
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.store.seal import ensure_key, seal
from evaluator.timing.ceilings import Ceilings, save
from kbs.common import canonical_json as canonical
from kbs.evidence.arithmetic import equation_holds
from tests.conftest import ROOT, Run
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv, without
from tests.evaluator.receipts import (
    KERNEL,
    REFERENCE,
    clocks,
    receipt,
    timed,
    timed_receipt,
    timing,
    trial,
    workload_timing,
)

LEVEL1 = Path(__file__).parents[3] / "third_party" / "kernelbench" / "level1"
DECLARED = ("--bytes", "2*4*n", "--operations", "5*n", "--peak", "fp32_throughput")
Kopt = Callable[..., Run]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A kernel, its reference and its inputs."""
    texts = {"kernel.py": KERNEL, "reference.py": REFERENCE, "inputs.json": '[["n", 4096]]'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    return {name: str(tmp_path / name) for name in texts}


@pytest.fixture
def words(files: dict[str, str]) -> list[str]:
    """The words that name them; nothing is run, since all is declared."""
    named = ["--kernel", files["kernel.py"], "--ref", files["reference.py"], "--inputs", files["inputs.json"]]
    return ["roofline", *named, "--dims", "n=64", *DECLARED]


def ceilings(**changes: Any) -> Ceilings:
    """What `kopt bench ceilings` keeps of an H200."""
    rows = [("copy 32 MiB", 2720.0), ("copy 512 MiB", 4101.26), ("read 512 MiB", 4670.0), ("fill 512 MiB", 3900.0)]
    figures = [Figure(name=name, value=value, unit="GB/s", us=100.0, n=20) for name, value in rows]
    figures.append(Figure(name="fp32 matmul 4096", value=51.5, unit="TFLOP/s", us=2667.0, n=20))
    figures.append(Figure(name="launch", value=2.5, unit="us", us=2.5, n=20))
    fields: dict[str, Any] = {
        "created": "2026-11-20T07:15:00Z",
        "device": "NVIDIA H200",
        "driver": "580.95.05",
        "torch": "2.13.0",
        "cuda": "13.0",
        "l2_bytes": 62914560,
        "empty_us": 1.3,
        "figures": tuple(figures),
        "clocks": clocks(),
    }
    return Ceilings(**{**fields, **changes})


def written(path: Path, made: Receipt) -> str:
    """A receipt as a file."""
    path.write_bytes(canonical.dumps(made.model_dump(mode="json")))
    return str(path)


def data(run: Run, code: int = 0) -> dict[str, Any]:
    """What is under `data`."""
    assert run.code == code, run.out + run.err
    found = run.json["data"]
    assert isinstance(found, dict)
    return found


def error(run: Run, code: int) -> str:
    """The code of the error."""
    assert run.code == code, run.out + run.err
    [found] = run.json["errors"]
    assert found["hint"]
    return str(found["code"])


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_kernelbench_problem_is_counted_line_by_line(kopt: Kopt) -> None:
    shown = kopt("roofline", "--ref", str(LEVEL1 / "23_Softmax.py"), "--gpu", "h100-sxm")
    assert shown.code == 0
    lines = [line.strip() for line in shown.out.splitlines()]
    for line in (
        "read input 0, float32    4,096 × 393,216 × 4 B = 6,442,450,944 B",
        "bytes                    6,442,450,944 B + 6,442,450,944 B = 12,884,901,888 B",
        "softmax, FP32            5 × 4,096 × 393,216 = 8,053,063,680 FLOP",
        "intensity                8,053,063,680 FLOP / 12,884,901,888 B = 0.625 FLOP/byte",
        "ridge point              66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte",
        "memory time              12,884,901,888 B / 3.35 TB/s = 3.85 ms",
        "target time              12,884,901,888 B / 3.35 TB/s / 0.9 = 4.27 ms",
        "bound    memory-bound: 0.625 FLOP/byte, the ridge point is 20.0",
    ):
        assert line in lines, shown.out
    cited = [line for line in lines if "<- gpu-wiki/hardware/h100-sxm.md:L" in line]
    assert len(cited) == 2
    for line in cited:
        claim = line.removeprefix("cited").strip()
        assert kopt("cite", claim).code == 0, claim


def test_the_command_needs_no_gpu_and_any_of_the_wiki_will_do(kopt: Kopt, words: list[str]) -> None:
    for gpu, bound in (("h200", "memory-bound"), ("a100-sxm-80gb", "memory-bound"), ("h100-nvl", "memory-bound")):
        assert data(kopt(*words, "--gpu", gpu, "--json"))["bound"] == bound


def test_every_line_of_arithmetic_holds(kopt: Kopt) -> None:
    found = data(kopt("roofline", "--ref", str(LEVEL1 / "40_LayerNorm.py"), "--gpu", "h200", "--json"))
    assert len(found["arithmetic"]) >= 8
    assert all(equation_holds(step["shown"]) for step in found["arithmetic"])
    assert found["work"]["how"] == "fake"
    assert found["flop"] == {"fp32_throughput": 7 * 16 * 64 * 256 * 256}


def test_forms_that_write_their_outputs(kopt: Kopt, tmp_path: Path) -> None:
    setup = (
        "import torch\ndef setup(n=8):\n    x = torch.ones(n, device='cuda')\n"
        "    return {'inputs': {'a': x, 'b': x * 2, 'c': torch.empty_like(x), 'n': n}, 'outputs': ['c']}\n"
    )
    reference = tmp_path / "ref.py"
    reference.write_text(setup + "def reference(a, b, c, n):\n    c.copy_(a + b)\n")
    kernels = {
        "k.cu": 'extern "C" void solve(const float* a, const float* b, float* c, int n) {}',
        "k.py": "import triton\n@triton.jit\ndef k(a):\n    pass\ndef run_kernel(a, b, c, n):\n    k[(1,)](a)\n",
    }
    for name, text in kernels.items():
        (tmp_path / name).write_text(text)
        said = ("--kernel", str(tmp_path / name), "--ref", str(reference), "--dims", "n=1073741824", "--gpu", "h200")
        found = data(kopt("roofline", *said, "--json"))
        assert (found["bytes"], found["flop"]) == (12 << 30, {"fp32_throughput": 1 << 30})
        assert found["form"] == {"k.cu": "solve", "k.py": "setup"}[name]


def test_a_function_with_its_inputs(kopt: Kopt, words: list[str]) -> None:
    found = data(kopt(*words[: -len(DECLARED)], "--gpu", "h200", "--json"))
    assert (found["bytes"], found["flop"]) == (2 * 4 * 64 * 4096, {"fp32_throughput": 5 * 64 * 4096})


def test_declared_work_is_taken_as_it_is(kopt: Kopt, words: list[str], files: dict[str, str]) -> None:
    found = data(kopt(*words, "--gpu", "h200", "--json"))
    assert found["work"] is None
    assert (found["bytes"], found["flop"]) == (512, {"fp32_throughput": 320})
    assert found["declared_bytes"] == {"expression": "2 × 4 × 64", "amount": 512, "by": "command line"}
    Path(files["reference.py"]).write_text(REFERENCE + "operations = '7*n'\nmin_bytes = 1024\n")
    own = [*words[: -len(DECLARED)], "--peak", "bf16"]
    found = data(kopt(*own, "--gpu", "h200", "--json"))
    assert (found["bytes"], found["flop"]) == (1024, {"bf16_tensor_throughput": 448})
    assert found["declared_operations"]["by"] == "reference"
    found = data(kopt(*words, "--gpu", "h200", "--json"))
    assert found["bytes"] == 512, "the command line goes first"


def test_a_missing_peak_is_unknown_and_logged(run: Callable[..., Run], home: Path, words: list[str]) -> None:
    shown = run(home, *words, "--gpu", "gfx942")
    assert shown.code == 3
    assert "gfx942 HBM bandwidth: UNKNOWN (gpu-wiki not found); what needs it is not computed" in shown.out
    assert "intensity" in shown.out, "it needs no rate"
    assert not re.search(r"^(floor|target)|ridge point  |memory time", shown.out, re.MULTILINE)
    logged = [json.loads(line) for line in (home / "gaps.jsonl").read_text("utf-8").splitlines()]
    assert any("UNKNOWN" in gap for gap in logged[-1]["gaps"])
    found = data(run(home, *words, "--gpu", "gfx942", "--json"), 3)
    assert (found["floor_seconds"], found["target_seconds"], found["bound"], found["ridge"]) == (None, None, "", {})


# --- what was measured ------------------------------------------------------------------------------------------------


def test_the_target_is_a_part_of_what_was_measured(run: Callable[..., Run], home: Path, words: list[str]) -> None:
    before = data(run(home, *words, "--gpu", "h200", "--json"))
    assert before["target_from"] == "cited"
    save(home, ceilings())
    save(home, ceilings(driver="500.1", created="2025-01-01T00:00:00Z", figures=ceilings().figures[:1]))
    save(home, ceilings(device="NVIDIA A100-SXM4-80GB"))
    found = data(run(home, *words, "--gpu", "h200", "--json"))
    assert found["target_from"] == "measured"
    assert found["target_seconds"] == pytest.approx(512 / 4101e9 / 0.9)
    assert found["floor_seconds"] == before["floor_seconds"], "the floor is that of the cited peaks"
    roofs = {(roof["origin"], roof["metric"]): roof for roof in found["roofs"]}
    assert roofs["measured", "hbm_bandwidth"]["shown"] == "4101 GB/s"
    assert "copy 512 MiB, measured 2026-11-20 on NVIDIA H200" in roofs["measured", "hbm_bandwidth"]["citation"]
    assert roofs["measured", "fp32_throughput"]["shown"] == "51.50 TFLOPS"
    assert data(run(home, *words, "--gpu", "h100-sxm", "--json"))["target_from"] == "cited", "another GPU"


def test_damaged_ceilings_are_named_and_left_out(run: Callable[..., Run], home: Path, words: list[str]) -> None:
    path = save(home, ceilings())
    path.write_text("{}")
    shown = run(home, *words, "--gpu", "h200", "--json")
    assert data(shown)["target_from"] == "cited"
    assert any("cannot be read" in warning for warning in shown.json["warnings"])


def test_a_receipt_is_the_measured_point(run: Callable[..., Run], home: Path, words: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "receipt.json", seal(timed_receipt(), ensure_key(home)))
    found = data(run(home, *words, "--gpu", "h200", "--profile", path, "--json"))
    assert found["point"]["seconds"] == pytest.approx(136e-6)
    shown = {step["name"]: step["shown"] for step in found["point"]["arithmetic"]}
    assert shown["achieved bandwidth"] == "512 B / 136.0 µs = 0.003765 GB/s"
    assert all(map(equation_holds, shown.values()))
    assert found["notes"] == []
    unsealed = written(tmp_path / "other.json", timed_receipt())
    found = data(run(home, *words, "--gpu", "h200", "--profile", unsealed, "--json"))
    assert any("seal: none" in note for note in found["notes"])


def test_a_doubtful_receipt_is_named(run: Callable[..., Run], home: Path, words: list[str], tmp_path: Path) -> None:
    wrong = timed_receipt(
        verdict=Verdict.INCORRECT,
        improvement=Improvement.UNSTABLE,
        correctness=(trial(passed=False),),
        reason="it is wrong",
    )
    path = written(tmp_path / "receipt.json", wrong)
    found = data(run(home, *words, "--gpu", "h200", "--profile", path, "--json"))
    assert any("verdict is incorrect: it is wrong" in note for note in found["notes"])


def test_points_of_something_else_are_refused(
    run: Callable[..., Run], home: Path, words: list[str], files: dict[str, str], tmp_path: Path
) -> None:
    good = written(tmp_path / "receipt.json", timed_receipt())
    elsewhere = timing(workload_timing(dims={"n": 128}))
    nothing = timing(workload_timing(candidate=timed(us=0.0)))
    cases = {
        "profile_of_another_gpu": (good, "h100-sxm"),
        "profile_no_times": (written(tmp_path / "cpu.json", receipt()), "h200"),
        "profile_no_times ": (written(tmp_path / "no-time.json", timed_receipt(nothing)), "h200"),
        "profile_of_other_sizes": (written(tmp_path / "sizes.json", timed_receipt(elsewhere)), "h200"),
        "file_not_found": (str(tmp_path / "none.json"), "h200"),
        "receipt_invalid": (files["inputs.json"], "h200"),
    }
    for code, (path, gpu) in cases.items():
        assert error(run(home, *words, "--gpu", gpu, "--profile", path, "--json"), 2) == code.strip()
    Path(files["kernel.py"]).write_text(KERNEL + "# another\n")
    assert error(run(home, *words, "--gpu", "h200", "--profile", good, "--json"), 2) == "profile_of_another"


def test_a_report_of_ncu_is_the_measured_point_with_the_bytes_that_it_counted(
    kopt: Kopt, words: list[str], files: dict[str, str], tmp_path: Path
) -> None:
    triton = "import triton\n@triton.jit\ndef softmax(x):\n    pass\ndef run(x):\n    softmax[(1,)](x)\n"
    Path(files["kernel.py"]).write_text(triton)
    report = tmp_path / "report.csv"
    report.write_text(raw_csv(("softmax", SOFTMAX)))
    given = (*words, "--gpu", "h200", "--profile", str(report), "--json")
    found = data(kopt(*given))
    assert found["point"]["seconds"] == pytest.approx(128.5e-6)
    assert found["point"]["bytes"] == 268435456 + 263100000
    shown = {step["name"]: step["shown"] for step in found["point"]["arithmetic"]}
    assert shown["achieved bandwidth"] == "531,535,456 B / 128.5 µs = 4,136 GB/s"
    report.write_text(raw_csv(("softmax", without("gpu__time_duration"))))
    assert error(kopt(*given), 2) == "profile_no_times"
    report.write_text(raw_csv(("another", SOFTMAX)))
    assert error(kopt(*given), 2) == "profile_of_another"
    report.write_text("what is this")
    assert kopt(*given).code == 2


# --- what is wrong ----------------------------------------------------------------------------------------------------


def test_wrong_words_have_names(kopt: Kopt, words: list[str], tmp_path: Path) -> None:
    plain = words[: -len(DECLARED)]
    cases = [
        (["roofline", "--gpu", "h200"], "no_kernel"),
        ([*words, "--gpu", "h100"], "gpu_ambiguous"),
        ([*words, "--gpu", "q9000"], "gpu_unknown"),
        ([*plain, *DECLARED[:4], "--gpu", "h200"], "peak_needed"),
        ([*plain, *DECLARED[:4], "--peak", "hbm_bandwidth", "--gpu", "h200"], "metric_unknown"),
        ([*plain, "--bytes", "2*m", *DECLARED[2:], "--gpu", "h200"], "size_invalid"),
        ([*words, "--gpu", "h200", "--plot", str(tmp_path / "a.gif")], "plot_format"),
        ([*words, "--gpu", "h200", "--plot", str(tmp_path / "none" / "a.png")], "plot_folder"),
    ]
    for given, code in cases:
        assert error(kopt(*given, "--json"), 2) == code
    assert error(kopt(*words, "--gpu", "auto", "--json", env={"PATH": "/nowhere"}), 6) == "no_gpu"


def test_dims_of_a_kernelbench_problem_are_its_constants(kopt: Kopt) -> None:
    reference = str(LEVEL1 / "23_Softmax.py")
    said = kopt("roofline", "--ref", reference, "--dims", "rows=5", "--gpu", "h200", "--json")
    assert error(said, 2) == "dims_do_not_fit"


# --- the picture ------------------------------------------------------------------------------------------------------


def texts(svg: str) -> list[str]:
    """What is written in a picture: matplotlib names each text in a comment."""
    return re.findall(r"<!-- (.*?) -->", svg, re.DOTALL)


def test_the_picture_tells_cited_measured_and_point_apart(
    run: Callable[..., Run], home: Path, words: list[str], tmp_path: Path
) -> None:
    save(home, ceilings())
    path = written(tmp_path / "receipt.json", timed_receipt())
    picture = tmp_path / "roofline.svg"
    given = (*words, "--gpu", "h200", "--profile", path, "--plot", str(picture))
    assert data(run(home, *given, "--json"))["plot"] == str(picture)
    svg = picture.read_text("utf-8")
    said = texts(svg)
    assert "cited: HBM bandwidth 4.8 TB/s" in said
    assert "cited: FP32 throughput 67 TFLOPS" in said
    assert "measured: HBM bandwidth 4101 GB/s (copy 512 MiB)" in said
    assert "measured: FP32 throughput 51.50 TFLOPS (fp32 matmul 4096)" in said
    assert "measured point: 136.0 µs (NVIDIA H200)" in said
    assert svg.count("stroke-dasharray") >= 4, "measured ceilings are dashed, here and in the legend"
    assert run(home, *given).code == 0, "its own picture is drawn again"
    assert picture.read_text("utf-8") == svg
    picture.write_text("<svg/>")
    assert error(run(home, *given, "--json"), 2) == "plot_exists"


def test_without_matplotlib_it_says_so_before_it_counts(
    run: Callable[..., Run], home: Path, words: list[str], tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nf = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'matplotlib' else f(name, *rest)\n"
    )
    given = (*words, "--gpu", "h200", "--plot", str(tmp_path / "a.png"), "--json")
    assert error(run(home, *given, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, fresh=True), 5) == "matplotlib_missing"


def test_nothing_is_drawn_of_what_is_not_known(kopt: Kopt, words: list[str], tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    found = data(kopt(*words, "--gpu", "gfx942", "--plot", str(picture), "--json"), 3)
    assert found["plot"] == ""
    assert not picture.exists()
    assert any("nothing is drawn" in note for note in found["notes"])
