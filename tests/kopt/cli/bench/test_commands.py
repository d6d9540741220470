"""`kopt bench` as a user types it: forms, files of inputs, receipts, and everything that can be given wrongly."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.conftest import Run
from tests.waiting import wait_until

REFERENCE = """
import torch
M = 8
N = 96
class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        return torch.relu(x) * self.scale
def get_inputs():
    return [torch.randn(M, N)]
def get_init_inputs():
    return [N]
"""
KERNEL = """
import torch, triton
import triton.language as tl
@triton.jit
def scaled_relu(x, scale, y, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n)
    s = tl.load(scale + i, mask=i < n)
    tl.store(y + row * n + i, tl.maximum(v, 0.0) * s, mask=i < n)
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        scaled_relu[(x.shape[0],)](x, self.scale, y, x.shape[1], B=triton.next_power_of_2(x.shape[1]))
        return y
"""
SETUP_KERNEL = """
import torch, triton
import triton.language as tl
def setup(M=4, N=80):
    x = torch.randn(M, N, device="cuda")
    return {"inputs": {"x": x, "alpha": 0.5, "y": torch.empty(M, N, device="cuda")}, "outputs": ["y"]}
@triton.jit
def scaled(x, y, alpha, n, B: tl.constexpr):
    i = tl.program_id(0) * n + tl.arange(0, B)
    mask = tl.arange(0, B) < n
    tl.store(y + i, tl.load(x + i, mask=mask) * alpha, mask=mask)
def run_kernel(x, alpha, y):
    scaled[(x.shape[0],)](x, y, alpha, x.shape[1], B=triton.next_power_of_2(x.shape[1]))
"""
SETUP_REFERENCE = "def reference(x, alpha, y):\n    y.copy_(x * alpha)\n"
FUNCTION_KERNEL = """
import torch, triton
import triton.language as tl
@triton.jit
def added(a, b, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y + i, tl.load(a + i, mask=i < n) + tl.load(b + i, mask=i < n), mask=i < n)
def add(a, b):
    y = torch.empty_like(a)
    added[(1,)](a, b, y, a.numel(), B=triton.next_power_of_2(a.numel()))
    return y
"""
FUNCTION_REFERENCE = "def add(a, b):\n    return a + b\n"

Bench = Callable[..., Run]


@pytest.fixture
def bench(tmp_path: Path, run: Callable[..., Run]) -> Bench:
    """Writes the given files (name=text) beside each other and runs `kopt bench` there."""
    home = tmp_path / "home"
    home.mkdir()

    def bench(*words: str, env: dict[str, str] | None = None, **files: str | bytes) -> Run:
        for name, text in files.items():
            path = tmp_path / name.replace("__", ".")
            path.write_bytes(text.encode() if isinstance(text, str) else text)
        return run(home, "bench", *words, cwd=tmp_path, env=env)

    return bench


def data(result: Run) -> dict[str, Any]:
    """What stands under `data`."""
    assert result.out, result.err
    found = result.json["data"]
    assert isinstance(found, dict), result.out
    return found


def error(result: Run) -> str:
    """The code of the one error; there is a hint and no traceback."""
    assert "Traceback" not in result.err + result.out
    (found,) = result.json["errors"]
    assert found["hint"]
    assert found["message"]
    return str(found["code"])


CPU = ("--device", "cpu", "--json")


def test_the_whole_way_of_a_receipt(bench: Bench, tmp_path: Path) -> None:
    """Accepted, verified, edited, replayed."""
    done = bench("k.py", "--ref", "r.py", *CPU, "--receipt", "receipt.json", k__py=KERNEL, r__py=REFERENCE)
    found = data(done)
    assert (done.code, found["verdict"], found["improvement"]) == (0, "accepted", "not_timed")
    assert {row["distribution"] for row in found["correctness"]} >= {"given", "normal", "small", "large", "offset"}
    assert any("timed" in text for text in found["not_checked"])
    assert found["receipt"] == "receipt.json"

    assert data(bench("verify", "receipt.json", "--json"))["seal"] == "own key"
    kept = Path(data(bench("k.py", "--ref", "r.py", *CPU))["receipt"])
    for id in (json.loads(kept.read_bytes())["id"], kept.stem[:8]):
        assert data(bench("verify", id, "--json"))["seal"] == "own key", "one that is kept, by its id"
    assert error(bench("verify", "0" * 64, "--json")) == "file_not_found"
    whole = (tmp_path / "receipt.json").read_bytes()
    (tmp_path / "edited.json").write_bytes(whole.replace(b'"accepted"', b'"accEpted"', 1))
    edited = bench("verify", "edited.json", "--json")
    assert edited.code == 4
    assert not data(edited)["ok"]

    again = bench("replay", "receipt.json", "--json")
    assert again.code == 0, again.out
    assert data(again)["same"]
    assert data(again)["differences"] == []


def test_a_person_reads_the_verdict_first(bench: Bench) -> None:
    wrong = KERNEL.replace("tl.maximum(v, 0.0)", "v")
    done = bench("k.py", "--ref", "r.py", "--device", "cpu", k__py=wrong, r__py=REFERENCE)
    assert done.code == 4
    assert done.out.splitlines()[0].startswith("INCORRECT  k.py (triton) against r.py, on the CPU")
    assert "not checked" in done.out
    assert len(done.out.splitlines()) < 40


def test_dims_replace_the_constants_of_the_reference(bench: Bench, tmp_path: Path) -> None:
    done = bench(
        "k.py",
        "--ref",
        "r.py",
        "--dims",
        '{"M": 3, "N": 70}',
        *CPU,
        "--receipt",
        "t.json",
        k__py=KERNEL,
        r__py=REFERENCE,
    )
    assert data(done)["verdict"] == "accepted"
    assert json.loads((tmp_path / "t.json").read_text())["problem"]["dims"] == {"M": 3, "N": 70}


def test_weights_that_a_candidate_has_no_place_for(bench: Bench) -> None:
    bare = KERNEL.replace("self.scale = torch.nn.Parameter(torch.ones(width))", "self.scale = torch.ones(width)")
    found = data(bench("k.py", "--ref", "r.py", *CPU, k__py=bare, r__py=REFERENCE))
    assert found["verdict"] == "incorrect"
    assert "scale" in found["reason"]


def test_setup_form_maps_cuda_to_the_cpu(bench: Bench) -> None:
    done = bench("k.py", "--ref", "r.py", "--dims", "M=5,N=67", *CPU, k__py=SETUP_KERNEL, r__py=SETUP_REFERENCE)
    assert data(done)["verdict"] == "accepted", done.out


def test_setup_form_without_reference_is_its_own_oracle(bench: Bench, tmp_path: Path) -> None:
    done = bench("k.py", *CPU, "--receipt", "t.json", k__py=SETUP_KERNEL)
    assert data(done)["verdict"] == "accepted", done.out
    assert json.loads((tmp_path / "t.json").read_text())["problem"]["oracle"] == "original kernel"
    assert data(bench("replay", "t.json", "--json"))["same"]


def test_an_original_kernel_as_reference(bench: Bench) -> None:
    slower = SETUP_KERNEL.replace("* alpha, mask", "* (alpha + alpha) * 0.5, mask")
    done = bench("k.py", "--ref", "r.py", *CPU, "--receipt", "t.json", k__py=SETUP_KERNEL, r__py=slower)
    assert data(done)["verdict"] == "accepted", done.out
    wrong = SETUP_KERNEL.replace("* alpha, mask", "* alpha * 1.01, mask")
    assert data(bench("k.py", "--ref", "r.py", *CPU, k__py=wrong, r__py=slower))["verdict"] == "incorrect"
    assert data(bench("replay", "t.json", "--json"))["same"]


@pytest.mark.parametrize("bad", ['[{"M": 4}]', "M=x", '{"M": -1}', "{"])
def test_a_workload_that_cannot_be_read_is_named_with_its_line(bench: Bench, bad: str) -> None:
    lines = f'{{"M": 4}}\n\n{bad}\n'
    done = bench("k.py", "--ref", "r.py", *CPU, "--workloads", "w.jsonl", "--json", w__jsonl=lines, **KB)
    (error,) = done.json["errors"]
    assert (done.code, error["code"]) == (2, "dims_invalid")
    assert error["message"].startswith("line 3 of w.jsonl: ")
    assert "--dims" not in error["message"] + error["hint"]


def test_workloads_are_all_tried(bench: Bench) -> None:
    whole = "triton.next_power_of_2(x.shape[1])"
    wrong_there = SETUP_KERNEL.replace(f"B={whole}", f"B=128 if x.shape[1] == 160 else {whole}")
    files: dict[str, str] = {"k__py": wrong_there, "r__py": SETUP_REFERENCE}
    one = '{"M": 2, "N": 128}\n'
    base = ("k.py", "--ref", "r.py", *CPU, "--workloads", "w.jsonl")
    assert data(bench(*base, w__jsonl=one, **files))["verdict"] == "accepted"
    found = data(bench(*base, w__jsonl=one + '{"M": 2, "N": 160}\n', **files))
    assert found["verdict"] == "incorrect"
    assert {tuple(row["dims"].items()) for row in found["correctness"] if not row["passed"]} == {(("M", 2), ("N", 160))}


def test_free_dims_are_tried_at_prime_sizes(bench: Bench) -> None:
    whole = SETUP_KERNEL.replace("mask = tl.arange(0, B) < n", "mask = tl.arange(0, B) < n // 16 * 16")
    base = ("k.py", "--ref", "r.py", "--dims", "M=4,N=64", *CPU)
    files = {"k__py": whole, "r__py": SETUP_REFERENCE}
    assert data(bench(*base, "--plan", "signal", **files))["verdict"] == "accepted"
    for words, distributions in ((("--vary", "N"), 8), ((), 1)):  # unasked, one call is made at another size
        found = data(bench(*base, *words, **files))
        wrong = [row for row in found["correctness"] if not row["passed"]]
        assert found["verdict"] == "incorrect"
        assert {row["dims"]["N"] for row in wrong} == {61}
        assert len({row["distribution"] for row in wrong}) >= distributions


def _npz(path: Path) -> None:
    np.savez(path, a=np.random.rand(50).astype("float32"), b=np.random.rand(50).astype("float32"))


def _safetensors(path: Path) -> None:
    save_file({"a": torch.rand(50), "b": torch.rand(50)}, path)


def _pt(path: Path) -> None:
    torch.save({"a": torch.rand(50), "b": torch.rand(50)}, path)


def _shapes(path: Path) -> None:
    path.write_text("[[50], [50]]")


def _raw(path: Path) -> None:
    path.with_suffix(".bin").write_bytes(np.random.rand(100).astype("float32").tobytes())
    tensors = [{"name": n, "shape": ["n"], "dtype": "float32", "offset": 200 * i} for i, n in enumerate("ab")]
    path.write_text(json.dumps({"file": path.with_suffix(".bin").name, "tensors": tensors}))


def _python(path: Path) -> None:
    path.write_text("import torch\ndef get_inputs():\n    return [torch.rand(50), torch.rand(50)]\n")


@pytest.mark.parametrize(
    ("name", "write", "fixed"),
    [
        ("in.npz", _npz, True),
        ("in.safetensors", _safetensors, True),
        ("in.pt", _pt, True),
        ("in.json", _shapes, False),
        ("raw.json", _raw, True),
        ("in.py", _python, False),
    ],
)
def test_files_of_inputs(bench: Bench, tmp_path: Path, name: str, write: Callable[[Path], None], fixed: bool) -> None:
    write(tmp_path / name)
    words = ("k.py", "--ref", "r.py", "--inputs", name, "--dims", "n=50", *CPU, "--receipt", "t.json")
    done = bench(*words, k__py=FUNCTION_KERNEL, r__py=FUNCTION_REFERENCE)
    found = data(done)
    assert found["verdict"] == "accepted", done.out
    assert any(h["id"] == "fixed_inputs" for h in found["hazards"]) is fixed
    again = bench("replay", "t.json", "--json", *(("--inputs", name) if fixed else ()))
    assert data(again)["same"], again.out


def test_the_tolerance_of_the_reference_is_used_and_named_looser(bench: Bench, tmp_path: Path) -> None:
    loose = "atol = 1e-1\nrtol = 1e-1\n" + SETUP_REFERENCE
    near = SETUP_KERNEL.replace("* alpha, mask", "* alpha * 1.01, mask")
    done = bench("k.py", "--ref", "r.py", *CPU, "--receipt", "t.json", k__py=near, r__py=loose)
    assert data(done)["verdict"] == "accepted", done.out
    tolerance = json.loads((tmp_path / "t.json").read_text())["problem"]["tolerance"]
    assert tolerance == {"atol": 0.1, "rtol": 0.1, "declared_by": "reference", "looser": True}


def test_a_foreign_receipt_is_told_apart(bench: Bench, tmp_path: Path) -> None:
    bench("k.py", *CPU, "--plan", "signal", "--receipt", "t.json", k__py=SETUP_KERNEL)
    (tmp_path / "home" / "receipt.key").unlink()
    bench("k.py", *CPU, "--plan", "signal", "--receipt", "other.json")
    assert data(bench("verify", "t.json", "--json"))["seal"] == "foreign key"


def test_a_given_seed_gives_the_same_trials(bench: Bench) -> None:
    words = ("k.py", "--ref", "r.py", *CPU, "--seed", "7", "--plan", "signal")
    one, two = (data(bench(*words, k__py=KERNEL, r__py=REFERENCE))["correctness"] for _ in range(2))
    same = ("distribution", "worst", "rms_ratio", "memory", "passed")
    assert [[row[key] for key in same] for row in one] == [[row[key] for key in same] for row in two]


# --- what can be given wrongly ----------------------------------------------------------------------------------------


KB = {"k__py": KERNEL, "r__py": REFERENCE}
SETUP = {"k__py": SETUP_KERNEL, "r__py": SETUP_REFERENCE}
FUNCTION = {"k__py": FUNCTION_KERNEL, "r__py": FUNCTION_REFERENCE}
PAIR = ("k.py", "--ref", "r.py")


@pytest.mark.parametrize(
    ("words", "files", "code", "exit_code"),
    [
        (("none.py",), {}, "file_not_found", 2),
        (("k.py", "--ref", "none.py"), KB, "file_not_found", 2),
        (("k.py",), {"k__py": "x = 1\n"}, "no_kernel", 2),
        (("k.py",), {"k__py": KERNEL + SETUP_KERNEL}, "two_kernels", 2),
        (("k.py",), {"k__py": "def f(:\n"}, "syntax_error", 2),
        (PAIR, {**KB, "r__py": "x = 1\n"}, "reference_form", 2),
        (PAIR, {**KB, "r__py": REFERENCE.replace("torch.relu", "torch.rel")}, "reference_failed", 2),
        (PAIR, {**KB, "r__py": "import nowhere_at_all\n" + REFERENCE}, "missing_import", 2),
        ((*PAIR, "--dims", "Q=3"), SETUP, "dims_do_not_fit", 2),
        ((*PAIR, "--dims", "Q=3"), KB, "dims_do_not_fit", 2),
        ((*PAIR, "--dims", "M=x"), KB, "dims_invalid", 2),
        (PAIR, FUNCTION, "inputs_missing", 2),
        ((*PAIR, "--inputs", "in.txt"), {**FUNCTION, "in__txt": "1"}, "inputs_format", 2),
        ((*PAIR, "--inputs", "in.npz"), {**FUNCTION, "in__npz": "PK"}, "inputs_invalid", 2),
        ((*PAIR, "--inputs", "in.json"), {**FUNCTION, "in__json": "[[1"}, "inputs_invalid", 2),
        (("k.py", "--plan", "guess"), SETUP, "plan_unknown", 2),
        (("k.py", "--tolerance", "1"), SETUP, "tolerance_invalid", 2),
        (("k.py", "--sanitize", "lint"), SETUP, "sanitizer_unknown", 2),
        (("k.py", "--vary", "Z"), SETUP, "vary_unknown", 2),
        (("k.py", "--python", "/nowhere/python"), SETUP, "python_not_started", 5),
        (("k.py", "--receipt", "nowhere/t.json"), SETUP, "receipt_folder", 2),
        (("k.py", "--receipt", "k.py"), SETUP, "receipt_exists", 2),
        (("k.py", "--baselines", "eager,fast"), SETUP, "baseline_unknown", 2),
        (("k.py", "--baselines", "mine=torch.relu"), SETUP, "baseline_invalid", 2),
        (("k.py", "--baselines", "eager,eager"), SETUP, "baseline_invalid", 2),
        (("k.py", "--restarts", "1"), SETUP, "usage", 2),
        (("k.py", "--restarts", "51"), SETUP, "usage", 2),
        (("k.py", "--restarts", "many"), SETUP, "usage", 2),
        (("k.py", "--seconds", "0"), SETUP, "usage", 2),
        (("k.py", "--seconds", "nan"), SETUP, "usage", 2),
        (("k.py", "--bytes", "M*N", "--dims", "M=4"), SETUP, "size_invalid", 2),
        (("k.py", "--operations", "2**9"), SETUP, "size_invalid", 2),
        (("k.cu", "--ptr-size", "x=4"), {"k__cu": 'extern "C" void solve(float* x) {}'}, "no_gpu", 6),
    ],
)
def test_bad_input_is_named(
    bench: Bench, words: tuple[str, ...], files: dict[str, str], code: str, exit_code: int
) -> None:
    done = bench(*words, *CPU, **files)
    assert (error(done), done.code) == (code, exit_code)


@pytest.mark.parametrize("option", ["--bytes", "--operations"])
def test_a_figure_that_cannot_be_computed_is_refused_before_the_run(bench: Bench, tmp_path: Path, option: str) -> None:
    """Not when all is measured."""
    done = bench("k.py", option, "M*K", "--dims", "M=4,N=80", *CPU, **SETUP)
    assert (error(done), done.code) == ("size_invalid", 2)
    (said,) = done.json["errors"]
    assert "there is no size K" in said["message"]
    assert f"the names of dims (M, N): {option} " in said["hint"]
    assert not (tmp_path / "home" / "receipts").exists()  # not even a plan


def test_what_is_counted_is_kept_for_a_replay(bench: Bench, tmp_path: Path) -> None:
    words = ("--bytes", "8*M*N", "--operations", "M*N", "--dims", "M=4,N=80", "--plan", "signal")
    first = bench("k.py", *words, *CPU, "--receipt", "first.json", **SETUP)
    assert first.code == 0, first.out
    again = bench("replay", "first.json", "--receipt", "again.json", "--json")
    assert again.code == 0, again.out
    for name in ("first.json", "again.json"):
        problem = json.loads((tmp_path / name).read_bytes())["problem"]
        assert (problem["bytes"], problem["operations"]) == ("8*M*N", "M*N")


def test_a_missing_device_is_named(bench: Bench) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("there is a GPU")
    done = bench("k.py", "--device", "cuda:0", "--json", k__py=SETUP_KERNEL)
    assert (error(done), done.code) == ("no_gpu", 6)
    for device in ("gpu", "cuda:²", "cuda:01", "cuda:", "cuda:99999999999999999999"):
        assert error(bench("k.py", "--device", device, "--json")) == "device_unknown"


def test_a_pickle_in_a_file_of_inputs_is_not_run(bench: Bench, tmp_path: Path) -> None:
    class Planted:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'planted'}",)

    torch.save([Planted()], tmp_path / "in.pt")
    done = bench("k.py", "--ref", "r.py", "--inputs", "in.pt", *CPU, k__py=FUNCTION_KERNEL, r__py=FUNCTION_REFERENCE)
    assert error(done) == "inputs_invalid"
    assert not (tmp_path / "planted").exists()


def test_a_candidate_that_cannot_be_imported_is_a_verdict(bench: Bench) -> None:
    found = data(bench("k.py", "--ref", "r.py", *CPU, k__py="import nowhere_at_all\n" + KERNEL, r__py=REFERENCE))
    assert found["verdict"] == "compile_error"
    assert "nowhere_at_all" in found["reason"]
    assert "--python" in found["reason"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"kind": "kopt-receipt"}', "\0", "nothing"])
def test_what_is_no_receipt(bench: Bench, text: str) -> None:
    assert error(bench("replay", "t.json", "--json", t__json=text)) == "receipt_invalid"
    verified = bench("verify", "t.json", "--json")
    assert verified.code in (2, 4)
    assert "Traceback" not in verified.err


@pytest.mark.processes
def test_an_interrupted_bench_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    import signal
    import subprocess

    head = "def run_kernel(x, alpha, y):"
    endless = f"{head}\n    print('begun', flush=True)\n    while True: pass"
    (tmp_path / "k.py").write_text(SETUP_KERNEL.replace(head, endless))
    (tmp_path / "tmp").mkdir(mode=0o755)
    started = subprocess.Popen(
        [sys.executable, "-m", "kopt", "bench", "k.py", "--device", "cpu"],
        cwd=tmp_path,
        env={**os.environ, "KOPT_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    printed = "*/*/output.txt"
    wait_until(lambda: any("begun" in file.read_text() for file in (tmp_path / "tmp").glob(printed)), 60)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert started.returncode == 1
    assert b"Traceback" not in said
    assert not list((tmp_path / "tmp").iterdir())


def test_bench_needs_no_gpu_tools_to_say_so(bench: Bench) -> None:
    done = bench("k.py", "--device", "cpu", k__py=SETUP_KERNEL, env={"PATH": "/usr/bin:/bin"})
    assert done.code == 0, done.err + done.out
