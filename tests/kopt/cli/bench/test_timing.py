"""`kopt bench ceilings`, `kopt bench noise`, and what `--baselines` names."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluator import noise
from evaluator.noise import NoiseRun
from evaluator.receipt import environment
from evaluator.receipt.plan import BaselineChoice
from evaluator.receipt.timing import Figure
from evaluator.receipt.verdict import Improvement
from evaluator.request import Request
from evaluator.sandbox import devices
from evaluator.sandbox import fork_server as sandbox
from evaluator.timing import ceilings as ceilings_module
from evaluator.timing.ceilings import Ceilings, path_of, save
from kbs.common.errors import UsageError
from kopt.cli.main import app
from kopt.services.arguments import read_baselines
from tests.conftest import Run
from tests.evaluator.receipts import clocks, ratio

# --- baselines --------------------------------------------------------------------------------------------------------

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", fullmatch=True).filter(
    lambda name: name not in ("eager", "compile", "candidate")
)
PATHS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}(\.[A-Za-z_][A-Za-z0-9_]{0,8}){0,2}", fullmatch=True)
BLANKS = st.sampled_from(["", " ", "  "])


@pytest.mark.slow
@given(st.lists(NAMES, unique=True, max_size=5), st.data())
def test_what_is_written_is_read(chosen: list[str], data: st.DataObject) -> None:
    own = [BaselineChoice(name=name, how=f"{data.draw(PATHS)}:{data.draw(PATHS)}") for name in chosen]
    built_in = [
        BaselineChoice(name=name, how=name) for name in data.draw(st.sets(st.sampled_from(["eager", "compile"])))
    ]
    every = data.draw(st.permutations([*own, *built_in]))
    words = [one.how if one.name == one.how else f"{one.name}={one.how}" for one in every]
    text = ",".join(f"{data.draw(BLANKS)}{word}{data.draw(BLANKS)}" for word in words)
    assert read_baselines(text) == tuple(every)
    assert read_baselines(f",{text},,") == tuple(every)


@given(st.text(string.ascii_letters + "=:,._- \n\0é", max_size=40))
def test_any_text_is_read_or_refused_with_a_hint(text: str) -> None:
    refused: list[UsageError] = []
    found: tuple[BaselineChoice, ...] = ()
    try:
        found = read_baselines(text)
    except UsageError as error:
        refused.append(error)
    assert all(error.code in ("baseline_unknown", "baseline_invalid") and error.hint for error in refused)
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert one.how in ("eager", "compile") or ":" in one.how
        assert (one.name == one.how) is (":" not in one.how)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("fast", "baseline_unknown", "unknown baseline 'fast'"),
        ("eager,Compile", "baseline_unknown", "'Compile'"),
        ("torch:relu", "baseline_unknown", "'torch:relu'"),
        ("mine=torch.relu", "baseline_invalid", "'mine=torch.relu'"),
        ("mine=eager", "baseline_invalid", "'mine=eager'"),
        ("eager=torch:relu", "baseline_invalid", "'eager=torch:relu'"),
        ("compile=torch:relu", "baseline_invalid", "'compile=torch:relu'"),
        ("candidate=torch:relu", "baseline_invalid", "'candidate=torch:relu'"),
        ("=torch:relu", "baseline_invalid", "'=torch:relu'"),
        ("mine=torch:", "baseline_invalid", "'mine=torch:'"),
        ("mine=:relu", "baseline_invalid", "'mine=:relu'"),
        ("mine=../torch:relu", "baseline_invalid", "'mine=../torch:relu'"),
        ("my own=torch:relu", "baseline_invalid", "'my own=torch:relu'"),
        ("mine=a:b=c", "baseline_invalid", "'mine=a:b=c'"),
        ("eager,eager", "baseline_invalid", "eager is named twice"),
        ("a=x:y,eager,a=z:w", "baseline_invalid", "a is named twice"),
    ],
)
def test_what_names_no_baseline(text: str, code: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_baselines(text)
    assert (raised.value.code, bool(raised.value.hint)) == (code, True)
    assert said in raised.value.message


def test_no_baseline_is_none() -> None:
    assert read_baselines("") == read_baselines(" , ") == ()


# --- without a GPU ----------------------------------------------------------------------------------------------------

REFERENCE = "import torch\ndef reference(x):\n    return x * 2\n"


@pytest.fixture
def bench(tmp_path: Path, run: Callable[..., Run]) -> Callable[..., Run]:
    """Runs `kopt bench` where there is a reference and a file of shapes, and no GPU."""
    (tmp_path / "home").mkdir()
    (tmp_path / "r.py").write_text(REFERENCE)
    (tmp_path / "in.json").write_text("[[64]]")
    return lambda *words: run(tmp_path / "home", "bench", *words, cwd=tmp_path)


def refused(done: Run) -> dict[str, str]:
    """The one error, which says what to do."""
    assert "Traceback" not in done.out + done.err
    (found,) = done.json["errors"]
    assert found["message"]
    assert found["hint"]
    return dict(found)


def test_another_kernel_is_kept_in_the_receipt_and_replayed(bench: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(REFERENCE.replace("x * 2", "x + x"))
    (tmp_path / "other.py").write_text("import torch\ndef mine(x):\n    return 2 * x\n")
    words = ("--ref", "r.py", "--inputs", "in.json", "--device", "cpu", "--allow-library", "--plan", "signal")
    done = bench("k.py", "--against", "other.py", "--entry", "reference", *words, "--receipt", "receipt.json", "--json")
    assert done.code == 0, done.out + done.err
    kept = json.loads((tmp_path / "receipt.json").read_bytes())["incumbent"]
    assert (kept["name"], "mine" in kept["text"]) == ("other.py", True)
    again = bench("replay", "receipt.json", "--inputs", "in.json", "--receipt", "again.json", "--json")
    assert again.code == 0, again.out + again.err
    assert json.loads((tmp_path / "again.json").read_bytes())["incumbent"] == kept


def test_another_kernel_is_called_by_its_own_entry_also_in_a_replay(bench: Callable[..., Run], tmp_path: Path) -> None:
    """The candidate's entry helps where the other's text leaves it open, and nowhere else."""
    from evaluator.receipt.receipt import Receipt
    from evaluator.request import InputsFile, of_receipt

    (tmp_path / "k.py").write_text(REFERENCE)
    (tmp_path / "other.py").write_text(REFERENCE + "def mine(x):\n    return 2 * x\n")
    words = ("k.py", "--against", "other.py", "--ref", "r.py", "--inputs", "in.json", "--device", "cpu", "--json")
    assert bench(*words, "--allow-library", "--receipt", "receipt.json").code == 0
    receipt = Receipt.model_validate_json((tmp_path / "receipt.json").read_bytes())
    inputs = InputsFile(name="in.json", content=(tmp_path / "in.json").read_bytes())
    request, _ = of_receipt(receipt, inputs=inputs, device=None, environment={})
    assert (request.recognised().entry, request.of_parent().recognised().entry) == ("reference", "mine")


def test_the_entry_is_also_that_of_another_kernel_that_has_it(bench: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(REFERENCE)
    words = ("k.py", "--entry", "reference", "--ref", "r.py", "--inputs", "in.json", "--device", "cpu", "--json")
    helper = "def helper(x):\n    return x\n"
    for name, text in {"same": REFERENCE, "both": helper + REFERENCE}.items():
        (tmp_path / f"{name}.py").write_text(text)
        done = bench(*words, "--allow-library", "--against", f"{name}.py")
        assert done.code == 0, done.out
    (tmp_path / "others.py").write_text(helper + helper.replace("helper", "other"))
    assert refused(bench(*words, "--against", "others.py"))["code"] == "two_kernels"


def test_another_kernel_that_is_none(bench: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("x = 1\n")
    words = ("r.py", "--entry", "reference", "--ref", "r.py", "--inputs", "in.json", "--device", "cpu", "--json")
    found = refused(bench(*words, "--against", "other.py"))
    assert (found["code"], "other.py" in found["message"]) == ("no_kernel", True)
    assert refused(bench(*words, "--against", "none.py"))["code"] == "file_not_found"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
@pytest.mark.parametrize("words", [("ceilings",), ("ceilings", "--show"), ("noise", "r.py", "--inputs", "in.json")])
def test_there_is_no_gpu_to_take_times_on(bench: Callable[..., Run], tmp_path: Path, words: tuple[str, ...]) -> None:
    done = bench(*words, "--json")
    found = refused(done)
    assert (done.code, found["code"], done.json["command"]) == (6, "no_gpu", f"bench {words[0]}")
    assert "--device cpu" in found["hint"]
    plain = bench(*words)
    assert plain.code == 6
    assert found["hint"] in plain.err
    assert not (tmp_path / "home" / "ceilings").exists()


@pytest.mark.parametrize("device", ["cpu", "tpu", "cuda:x", "cuda:-1", "", "0", "cuda:0.5"])
@pytest.mark.parametrize("words", [("ceilings",), ("noise", "r.py")])
def test_what_is_no_gpu(bench: Callable[..., Run], words: tuple[str, ...], device: str) -> None:
    done = bench(*words, "--device", device, "--json")
    assert (done.code, refused(done)["code"]) == (2, "device_unknown")


@pytest.mark.parametrize(
    "words",
    [
        ("noise",),
        ("noise", "r.py", "--runs", "0"),
        ("noise", "r.py", "--runs", "1001"),
        ("noise", "r.py", "--seconds", "0"),
        ("noise", "r.py", "--seconds", "nan"),
        ("noise", "r.py", "--restarts", "1"),
        ("ceilings", "r.py"),
    ],
)
def test_words_that_are_not_taken(bench: Callable[..., Run], words: tuple[str, ...]) -> None:
    done = bench(*words, "--json")
    assert (done.code, refused(done)["code"]) == (2, "usage")


# --- as if there were one ---------------------------------------------------------------------------------------------

GPU = "NVIDIA H200 (made up)"
FOUND = Ceilings(
    created="2026-11-21T10:00:00Z",
    device=GPU,
    driver="575.1",
    torch="2.13.0",
    cuda="13.0",
    l2_bytes=60 << 20,
    empty_us=1.25,
    figures=(
        Figure(name="copy 512 MiB", value=4012.345, unit="GB/s", us=267.6, n=20),
        Figure(name="launch", value=2.5, unit="us", us=2.5, n=20),
    ),
    clocks=clocks(),
)


class Result:
    """What a command printed."""

    def __init__(self, found: Any) -> None:
        self.code = int(found.exit_code)
        self.out = str(found.stdout)
        assert found.exception is None or isinstance(found.exception, SystemExit), found.exception

    @property
    def json(self) -> dict[str, Any]:
        """The envelope."""
        return dict(json.loads(self.out))


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs `kopt bench` in this process, which takes a GPU for present; nothing reaches a device."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(devices, "require_gpu", lambda *_: None)
    monkeypatch.setattr(devices, "device_name", lambda _: GPU)
    monkeypatch.setattr(environment, "driver_version", lambda: "575.1")

    def server(*_: Any, **__: Any) -> AbstractContextManager[None]:
        return nullcontext()

    monkeypatch.setattr(sandbox, "ForkServer", server)
    return lambda *words: Result(CliRunner().invoke(app, ["bench", *words]))


def test_ceilings_that_were_never_measured(gpu: Callable[..., Result]) -> None:
    done = gpu("ceilings", "--show", "--json")
    (error,) = done.json["errors"]
    assert (done.code, error["code"]) == (1, "ceilings_missing")
    assert "kopt bench ceilings" in error["hint"]


@pytest.mark.slow
def test_ceilings_are_measured_kept_and_shown(
    gpu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ceilings_module, "measure", lambda *_: FOUND)
    done = gpu("ceilings", "--json")
    assert done.code == 0
    place = path_of(tmp_path, GPU, "575.1")
    assert place.is_file()
    assert done.json["data"]["path"] == str(place)
    monkeypatch.setattr(ceilings_module, "measure", None)  # nothing is measured
    assert gpu("ceilings", "--show", "--json").json == done.json
    text = gpu("ceilings", "--show").out
    assert f"{GPU}, driver 575.1, PyTorch 2.13.0, 2026-11-21T10:00:00Z" in text
    (copy,) = [line for line in text.splitlines() if line.startswith("copy 512 MiB")]
    assert "4012.34 GB/s  (median 267.60 µs, n 20)" in copy
    (launch,) = [line for line in text.splitlines() if line.startswith("launch")]
    assert "2.50 µs  (median 2.50 µs, n 20)" in launch
    assert str(place) in text


def test_those_of_another_driver_are_others(
    gpu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, FOUND)
    assert gpu("ceilings", "--show", "--json").code == 0
    monkeypatch.setattr(environment, "driver_version", lambda: "580.2")
    assert gpu("ceilings", "--show", "--json").json["errors"][0]["code"] == "ceilings_missing"


def test_kept_ceilings_that_are_damaged(gpu: Callable[..., Result], tmp_path: Path) -> None:
    save(tmp_path, FOUND).write_text("{}")
    done = gpu("ceilings", "--show", "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (1, "ceilings_damaged")


RUNS = [
    NoiseRun(
        run=n,
        improvement=said,
        ratio=ratio(1.0, noise=0.001 * (n + 1)),
        median_us=136.0,
        turns=40,
        seconds=9.5,
        turn_seconds=2.0,
    )
    for n, said in enumerate([Improvement.SAME, Improvement.FASTER, Improvement.SLOWER, Improvement.UNSTABLE])
]


def test_a_reference_is_compared_with_itself(
    gpu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Request, int, Path | None]] = []

    def compare(request: Request, runs: int, out: Path | None, **_: Any) -> list[NoiseRun]:
        asked.append((request, runs, out))
        return RUNS

    monkeypatch.setattr(noise, "compare_with_itself", compare)
    (tmp_path / "r.py").write_text(REFERENCE)
    (tmp_path / "in.json").write_text("[[64]]")
    words = ("noise", "r.py", "--inputs", "in.json", "--dims", "M=4", "--runs", "4", "--seconds", "0.5")
    done = gpu(*words, "--restarts", "3", "--device", "cuda:1", "--out", "runs.jsonl", "--json")
    assert done.code == 0
    ((request, runs, out),) = asked
    assert request.reference is not None
    assert request.candidate.text == request.reference.text == REFERENCE
    assert request.baselines == (BaselineChoice(name="eager", how="eager"),)
    assert (request.restarts, request.timing_seconds, request.device, request.dims) == (3, 0.5, "cuda:1", {"M": 4})
    assert (runs, out) == (4, Path("runs.jsonl"))
    assert request.inputs is not None
    assert done.json["data"]["wrong"] == 2
    assert done.json["data"]["largest_noise"] == pytest.approx(0.004)
    text = gpu(*words).out.splitlines()
    assert text[0].startswith("run 1    same      ratio 1.0000 [0.9960, 1.0040], noise 0.10%, median 136.00 µs, 9.5 s")
    assert text[-1] == "2 of 4 runs called a difference where there is none"


@pytest.mark.parametrize("out", [".", "nowhere/runs.jsonl"])
def test_runs_that_could_not_be_written_are_not_made(
    gpu: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    monkeypatch.setattr(noise, "compare_with_itself", None)
    (tmp_path / "r.py").write_text(REFERENCE)
    done = gpu("noise", "r.py", "--out", out, "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "out_folder")


# --- on a GPU ---------------------------------------------------------------------------------------------------------

KERNEL = """
import torch, triton
import triton.language as tl
@triton.jit
def positive(x, y, n, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    tl.store(y + i, tl.maximum(tl.load(x + i, mask=i < n), 0.0), mask=i < n)
def reference(x):
    y = torch.empty_like(x)
    positive[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), B=1024)
    return y
"""
SLOW = "import torch\ndef reference(x):\n    return ((x.abs() + x) / 2).clone().clone()\n"
"""Five kernels, for which one is enough; without rounding."""
SHAPES = "[[33554432]]"
"""128 MiB."""


@pytest.fixture
def timed(tmp_path: Path, run: Callable[..., Run], built_home: Path) -> Callable[..., Run]:
    """Runs `kopt bench` beside a kernel, a slow reference, and shapes; the home has the wiki."""
    for name, text in {"k.py": KERNEL, "r.py": SLOW, "in.json": SHAPES}.items():
        (tmp_path / name).write_text(text)
    return lambda *words: run(built_home, "bench", *words, cwd=tmp_path, fresh=True)


PAIR = ("k.py", "--ref", "r.py", "--inputs", "in.json", "--entry", "reference", "--device", "cuda:0", "--json")


@pytest.mark.gpu
def test_a_verdict_with_times_end_to_end(timed: Callable[..., Run], tmp_path: Path) -> None:
    libraries = "relu=torch:relu,wrong=torch:square,add=torch:add"  # torch.add takes two arguments, and gets one
    words = ("--baselines", f"eager,compile,{libraries}", "--restarts", "2", "--seconds", "2")
    files = ("--report", "benchmark.md", "--plot", "samples.svg", "--receipt", "receipt.json")
    done = timed(*PAIR, *words, *files, "--bytes", "268435456", "--operations", "33554432")
    assert done.code == 0, done.out + done.err
    data = done.json["data"]
    times = data["timing"]
    assert (data["verdict"], data["improvement"]) == ("accepted", "faster"), times["baselines"]
    assert list(times["baselines"]) == ["eager", "compile", "relu", "wrong", "add"]
    assert times["against"] == "eager"
    assert times["ratio"]["ci_low"] > 1
    assert 2 < times["ratio"]["median"] < 12
    found = {name: one["status"] for name, one in times["baselines"].items()}
    assert found == {"eager": "timed", "compile": "timed", "relu": "timed", "wrong": "failed", "add": "failed"}
    assert "of a timed turn" in times["baselines"]["wrong"]["detail"]
    assert "TypeError" in times["baselines"]["add"]["detail"]
    assert 0.5 < times["baselines"]["relu"]["ratio"]["median"] < 2  # it moves the same bytes
    assert len(times["candidate"]["samples_us"]) == times["candidate"]["n"] > 0
    receipt = json.loads((tmp_path / "receipt.json").read_bytes())
    (workload,) = receipt["timing"]["workloads"]
    assert (workload["bytes"], workload["operations"]) == (268435456, 33554432)
    assert workload["bytes"] == workload["read_bytes"] + workload["written_bytes"]
    assert workload["gb_per_s"] == pytest.approx(
        268435456 / workload["candidate"]["summary"]["median_us"] / 1e3, rel=0.05
    )
    assert workload["ceiling"]["floor_us"] > 0
    assert receipt["physics"]["status"] == ("possible" if receipt["physics"]["peak"] else "not checked")
    assert workload["audit"]["status"] == "confirmed"
    report = (tmp_path / "benchmark.md").read_text("utf-8")
    assert "relu" in report
    assert "N/A: no time was taken." not in report
    assert "<svg" in (tmp_path / "samples.svg").read_text("utf-8")
    again = timed("replay", "receipt.json", "--inputs", "in.json", "--receipt", "again.json", "--json")
    plans = [json.loads((tmp_path / name).read_bytes())["plan"]["timing"] for name in ("receipt.json", "again.json")]
    assert plans[0] == plans[1]
    assert again.code == 0, again.json["data"]["differences"]


@pytest.mark.gpu
def test_a_signal_takes_a_few_turns_and_compares_with_nothing(timed: Callable[..., Run], tmp_path: Path) -> None:
    done = timed(*PAIR, "--plan", "signal", "--receipt", "receipt.json")
    assert done.code == 0, done.out + done.err
    times = done.json["data"]["timing"]
    assert (times["plan"], times["ratio"], times["against"]) == ("signal", None, "")
    assert done.json["data"]["improvement"] == "not_compared"
    assert times["candidate"]["median_us"] > 0
    assert json.loads((tmp_path / "receipt.json").read_bytes())["plan"]["timing"]["restarts"] == 1


@pytest.mark.gpu
def test_a_kernel_that_is_slower_is_accepted_and_said_to_be_slower(timed: Callable[..., Run]) -> None:
    words = ("r.py", "--ref", "k.py", *PAIR[3:], "--allow-library", "--baselines", "eager", "--restarts", "2")
    done = timed(*words, "--seconds", "2")
    assert done.code == 0, done.out + done.err
    data = done.json["data"]
    assert (data["verdict"], data["improvement"]) == ("accepted", "slower")
    assert data["timing"]["ratio"]["ci_high"] < 1


@pytest.mark.gpu
def test_a_long_kernel_is_called_without_a_pause_too(timed: Callable[..., Run], tmp_path: Path) -> None:
    """2 ms and more of fp32 multiplications: what the library does against itself."""
    (tmp_path / "long.py").write_text("import torch\ndef reference(a, b):\n    return a @ b\n")
    (tmp_path / "in.json").write_text("[[4096, 4096], [4096, 4096]]")
    words = ("long.py", "--ref", "long.py", *PAIR[3:], "--allow-library", "--baselines", "eager", "--restarts", "2")
    done = timed(*words, "--seconds", "2", "--report", "benchmark.md")
    assert done.code == 0, done.out + done.err
    data = done.json["data"]
    assert (data["verdict"], data["improvement"]) == ("accepted", "same"), data["timing"]
    (workload,) = data["timing"]["workloads"]
    found = workload["back_to_back"]
    for side in ("candidate", "baseline"):
        assert found[side]["calls"] * found[side]["alone_us"] >= 30_000
        assert 0.9 < found[side]["per_call_us"] / found[side]["alone_us"] < 1.3
        assert found[side]["min_mhz"] > 0
    assert 0.95 < found["ratio"] < 1.05
    assert "Back to back" in (tmp_path / "benchmark.md").read_text("utf-8")


@pytest.mark.gpu
def test_a_kernel_against_another_one(timed: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text((tmp_path / "k.py").read_text() + "# the same\n")
    words = ("--against", "same.py", "--baselines", "eager", "--restarts", "2", "--seconds", "2")
    done = timed(*PAIR, *words, "--receipt", "receipt.json")
    assert done.code == 0, done.out + done.err
    times = done.json["data"]["timing"]
    assert (times["against"], list(times["baselines"])) == ("incumbent", ["incumbent", "eager"])
    assert times["ratio"]["ci_low"] <= 1.01
    assert times["ratio"]["ci_high"] >= 0.99
    assert times["baselines"]["eager"]["ratio"]["ci_low"] > 1


@pytest.mark.gpu
def test_ceilings_of_this_gpu(timed: Callable[..., Run]) -> None:
    done = timed("ceilings", "--json")
    assert done.code == 0, done.out + done.err
    data = done.json["data"]
    assert data["device"] == torch.cuda.get_device_name(0)
    figures = {figure["name"]: figure for figure in data["figures"]}
    assert len(figures) == len(data["figures"]) == 20
    assert figures["bf16 matmul 8192"]["value"] > figures["fp32 matmul 4096"]["value"] > 0
    assert figures["copy 1024 MiB"]["unit"] == "GB/s"
    assert figures["copy 1024 MiB"]["us"] > figures["copy 128 MiB"]["us"] > figures["launch"]["us"]
    shown = timed("ceilings", "--show", "--json")
    assert shown.json["data"] == data


@pytest.mark.gpu
def test_noise_of_one_run(timed: Callable[..., Run], tmp_path: Path) -> None:
    words = ("noise", "r.py", "--inputs", "in.json", "--runs", "1", "--restarts", "2", "--seconds", "1")
    done = timed(*words, "--out", "runs.jsonl", "--json")
    assert done.code == 0, done.out + done.err
    (one,) = done.json["data"]["runs"]
    assert 0.8 < one["ratio"]["median"] < 1.25
    assert one["turns"] > 0
    (line,) = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert json.loads(line) == one
