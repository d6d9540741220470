"""The real tools of a run, on the CPU, with the real evaluator and the bundled wiki."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import render
from evaluator.receipt.verdict import Verdict
from evaluator.store.seal import load_key, verify
from evaluator.timing import gpu_clocks
from kbs.common.errors import ConfigurationError, NoGpuError, UsageError
from kbs.evidence.checking import Status, check_text
from kopt.services.engine import Engine
from kopt.services.runs import machine
from kopt.services.runs import tools as run_tools
from kopt.services.runs.planning import environment as surroundings
from kopt.services.runs.tools import RunTools
from kopt.services.settings import load_settings
from loop.journal.folder import RunFolder
from loop.journal.record import BuildWords
from loop.pages import step0_files
from loop.planning.hints import parse_hints
from loop.planning.plan import ResolvedPlan, read_hints, resolve, run_id
from loop.planning.step0 import ClockNote
from loop.planning.wanted import Wanted
from loop.workspace import inventory
from tests.evaluator.timed_processes import Nvml

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2.0 * tl.load(x + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
REFERENCE = """import torch

N = 300


class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
"""


class NoServer:
    """In place of a fork server that would want a GPU."""

    def __init__(self, device: str, *_: object) -> None:
        assert device == "cuda"

    def __enter__(self) -> NoServer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing runs."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, ResolvedPlan]]:
    base = tmp_path_factory.mktemp("bench")
    workspace = base / "work"
    workspace.mkdir()
    (workspace / "k.py").write_text(KERNEL)
    (workspace / "m.py").write_text(REFERENCE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOPT_HOME", str(base / "home"))
        engine = Engine(load_settings())
        wanted = Wanted(proposer="agent")
        found = inventory.take(workspace)
        read = read_hints(found, wanted, surroundings.methods_of(engine))
        here = surroundings.survey(engine, found, wanted, read[0], device="cpu", gpu="h200-sxm")
        yield engine, resolve(found, wanted, here, read, engine.settings.home)


@pytest.fixture(scope="module")
def bench(plan: tuple[Engine, ResolvedPlan], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunTools]:
    engine, resolved = plan
    root = tmp_path_factory.mktemp("run")
    (root / "v0").mkdir()
    for name, data in resolved.files().items():
        (root / "v0" / name if name == "kernel.py" else root / name).write_bytes(data)
    record = resolved.record(run_id(resolved.name, "2026-11-21T14:05:00Z", "abcd"), "3" * 64)
    with RunTools(engine, RunFolder(root), record) as made:
        yield made


def test_kernels_are_built_and_run_as_the_run_was_told(bench: RunTools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALE", "2")
    build = BuildWords(
        include=("/a", "/b"), nvcc_flags=("-lineinfo",), cuda_home="/cuda", python="/py", variables=("SCALE",)
    )
    with RunTools(bench.engine, bench.folder, bench.record.model_copy(update={"build": build})) as tools:
        request = tools.request(KERNEL, "kernel.py", None)
    assert (request.include, request.nvcc_flags) == ((Path("/a"), Path("/b")), ("-lineinfo",))
    assert (request.cuda_home, request.python, request.environment["SCALE"]) == (Path("/cuda"), "/py", "2")
    plain = bench.request(KERNEL, "kernel.py", None)
    assert (plain.include, plain.nvcc_flags, plain.cuda_home, plain.python) == ((), (), None, sys.executable)
    assert "SCALE" not in plain.environment


def test_survey_says_what_is_there(plan: tuple[Engine, ResolvedPlan]) -> None:
    here = plan[1].environment
    assert (here.device, here.gpu, here.gpu_from) == ("cpu", "h200-sxm", "--gpu h200-sxm")
    assert here.grade == "none"
    assert "gpu-wiki" in here.wikis
    assert here.wikis["gpu-wiki"].pages["kernel/softmax.md"]
    assert "rewrite" in here.methods


def test_without_a_gpu_none_is_guessed(plan: tuple[Engine, ResolvedPlan]) -> None:
    engine, resolved = plan
    here = surroundings.survey(engine, resolved.inventory, resolved.wanted, resolved.hints, device="cpu", gpu=None)
    assert (here.gpu, here.gpu_from) == ("", "no --gpu, and no GPU is present")
    with pytest.raises(UsageError) as caught:
        surroundings.survey(engine, resolved.inventory, resolved.wanted, resolved.hints, device="cpu", gpu="gx9000")
    assert caught.value.code == "gpu_unknown"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NoGpuError):
        surroundings.device_of("cuda:0")
    assert surroundings.device_of(None) == "cpu"


@pytest.mark.slow
@pytest.mark.processes
def test_a_receipt_is_sealed_and_of_the_planned_problem(bench: RunTools) -> None:
    receipt = bench.evaluate(bench.request(KERNEL, "kernel.py", None), SeedSchedule.secret())
    assert receipt.verdict is Verdict.ACCEPTED
    assert receipt.problem.hash == bench.record.problem_hash
    assert verify(render(receipt), load_key(bench.engine.settings.home)).ok
    note = bench.diagnose("", receipt, "kernel.py")
    assert note.bottleneck == "unknown"
    assert "no time is taken on the CPU" in note.text


def test_the_parent_is_the_first_baseline(bench: RunTools) -> None:
    request = bench.request(KERNEL, "kernel.py", KERNEL + "\n")
    assert (request.baselines[0].name, request.baselines[0].how) == ("parent", "incumbent")
    assert request.incumbent is not None
    assert (request.incumbent.name, request.incumbent.text) == ("parent.py", KERNEL + "\n")
    other = bench.request(KERNEL, "kernel.py", '#include <x>\nextern "C" void solve(float* x, int n) {}\n').incumbent
    assert other is not None
    assert other.name == "parent.cu"
    assert [one.name for one in bench.request(KERNEL, "kernel.py", None).baselines] == ["eager", "compile"]


def test_a_rewrite_forgets_what_was_said_of_the_first_language(bench: RunTools) -> None:
    problem = bench.record.problem.model_copy(update={"backend": "triton", "entry": "ModelNew"})
    other = RunTools(bench.engine, bench.folder, bench.record.model_copy(update={"problem": problem}))
    assert other.request(KERNEL, "kernel.py", None).backend == "triton"
    assert other.request("", "kernel.cu", None).backend is None


def test_no_profile_on_the_cpu(bench: RunTools) -> None:
    taken = bench.profile(bench.request(KERNEL, "kernel.py", None))
    assert (taken.grade, taken.csv, taken.report) == ("none", "", None)
    assert taken.why


@pytest.mark.slow
@pytest.mark.processes
def test_step_0(bench: RunTools) -> None:
    found = bench.targets()
    assert found.bytes == 2 * 300 * 4
    assert found.operations == 300
    assert found.bound == "memory"
    assert any(spec.line.startswith("H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/") for spec in found.specs)
    assert found.floor_us == pytest.approx(2400 / 4.8e12 * 1e6)
    files = step0_files(bench.record, bench.environment(), found)
    assert files.keys() == {"env.json", "roofline.json", "env_check.md", "README.md"}
    assert b"- H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-sxm.md:L" in files["README.md"]


@pytest.mark.slow
@pytest.mark.processes
def test_without_a_gpu_targets_are_unknown_and_the_work_is_counted(bench: RunTools) -> None:
    other = RunTools(bench.engine, bench.folder, bench.record.model_copy(update={"gpu": ""}))
    found = other.targets()
    assert (found.bytes, found.operations, found.floor_us) == (2400, 300, None)
    assert found.lines[-1].startswith("bound, floor and target: UNKNOWN: no GPU is named")


def test_clocks_are_read_and_never_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(1755, applications=(1500, 1980))
    monkeypatch.setattr(gpu_clocks, "load_nvml", lambda: nvml)
    assert machine.clocks_of("cuda:3") == ClockNote(locked="yes", megahertz=1755, detail="", index=3)
    assert not any("Set" in name for name, _ in nvml.calls)
    nvml.broken.add("nvmlDeviceGetApplicationsClock")
    assert machine.clocks_of("cuda:0").locked == "unknown"


def test_search_cites_lines_with_their_hash(bench: RunTools) -> None:
    found = bench.search("kernel", "vectorized loads in Triton")
    assert found.hits
    text = "\n".join(hit.reference for hit in found.hits)
    assert "@" in found.hits[0].reference
    checked = check_text(text, bench.engine.library, bench.engine.terms)
    assert [one.status for one in checked] == [Status.OK] * len(found.hits)


@pytest.mark.slow
@pytest.mark.processes
def test_machine_code_shows_methods(bench: RunTools) -> None:
    note = bench.machine_code(KERNEL, "kernel.py", ("vectorized_access", "no_such_method"))
    assert note.target == "sm_90a"
    assert list(note.functions) == ["scale_kernel [BLOCK=256 num_warps=4 num_stages=3]"]
    assert note.methods["no_such_method"].startswith("unverifiable: no signature")
    again = bench.machine_code("# a comment\n" + KERNEL, "kernel.py", ())
    assert again.functions == note.functions
    other = bench.machine_code(KERNEL.replace("2.0 *", "2.0 + 3.0 *"), "kernel.py", ())
    assert other.functions != note.functions
    constant = bench.machine_code(KERNEL.replace("2.0 *", "3.0 *"), "kernel.py", ())
    assert constant.functions != note.functions
    broken = bench.machine_code(KERNEL.replace("tl.arange(0, BLOCK)", "tl.arange(0, 100)"), "kernel.py", ())
    assert not broken.functions
    assert broken.why


def test_ncu_is_probed_with_its_reason(bench: RunTools, monkeypatch: pytest.MonkeyPatch) -> None:
    from evaluator.profiling import collect as profiling

    request = bench.request(KERNEL, "kernel.py", None).model_copy(update={"device": "cuda:0"})
    hints = parse_hints("no ncu", ())
    assert surroundings.probe(bench.engine, request, hints) == ("degraded", "ncu is not to run (HINTS.md:L1)")

    def refuses(*args: object, **words: object) -> None:
        raise ConfigurationError("ncu may not read them", code="no_counter_permission", hint="Ask.")

    monkeypatch.setattr(profiling, "take_profile", refuses)
    monkeypatch.setattr(surroundings, "ForkServer", NoServer)
    monkeypatch.setattr(run_tools, "ForkServer", NoServer)
    assert surroundings.probe(bench.engine, request, parse_hints("", ())) == ("degraded", "ncu may not read them")
    record = bench.record.model_copy(update={"profile": "full", "profile_why": ""})
    taken = RunTools(bench.engine, bench.folder, record).profile(request)
    assert (taken.grade, taken.why) == ("degraded", "ncu may not read them")


@pytest.mark.processes
def test_torch_is_not_imported_before_it_is_needed() -> None:
    modules = "kopt.services.runs.tools, kopt.services.runs.planning.environment, loop.run.parts, loop.pages"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
