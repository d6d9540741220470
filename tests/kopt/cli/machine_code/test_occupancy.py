"""`kopt occupancy` as a user types it: its answers, the lines that they cite, and all that can be asked wrongly."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.services.results.machine_code import OccupancyData
from tests.conftest import Run
from tests.evaluator.cubins import assemble

Kopt = Callable[..., Run]
KERNEL = ("--regs", "72", "--smem", "48KB", "--threads", "256")
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
LINE = re.compile(r"<- gpu-wiki/hardware/[a-z0-9-]+\.md:L\d+")


def test_the_answer_in_words(kopt: Kopt) -> None:
    done = kopt("occupancy", "--gpu", "h100-sxm", *KERNEL)
    assert done.code == 0
    assert "3 blocks of 8 warps per SM: 24 of 64 warps, 37.5%; limited by registers" in done.out
    assert "One more block (4) would need: at most 64 registers a thread (now 72)" in done.out
    assert "a carve-out of 164 KB leaves 92 KB to L1" in done.out
    cited = [line for line in done.out.splitlines() if LINE.search(line)]
    assert len(cited) == 19
    assert any("H100 SXM Compute capability: 9.0" in line for line in cited)
    assert any("CC 9.0 Register allocation unit: 256 registers" in line for line in cited)


def test_a_kernel_of_which_no_block_fits_is_told_what_one_would_need(kopt: Kopt) -> None:
    done = kopt("occupancy", "--gpu", "h100-sxm", "--regs", "200", "--threads", "1024")
    assert done.code == 0
    assert "A block would need: at most 64 registers a thread (now 200)" in done.out


def test_every_cited_line_says_so(kopt: Kopt) -> None:
    """`kopt cite` opens each line of an answer and finds the value there."""
    done = kopt("occupancy", "--gpu", "sm_120", *KERNEL)
    checked = kopt("cite", "-", "--json", stdin=done.out)
    assert checked.code == 0, checked.out
    assert len(checked.json["data"]["citations"]) == 18


@pytest.mark.parametrize(
    ("gpu", "capability"),
    [
        ("h100-sxm", "9.0"),
        ("H100", "9.0"),
        ("h200", "9.0"),
        ("a100", "8.0"),
        ("sm_90a", "9.0"),
        ("9.0", "9.0"),
        ("cc-8-6", "8.6"),
        ("compute capability 8.9", "8.9"),
        ("sm_100", "10.0"),
        ("12.0", "12.0"),
    ],
)
def test_names_of_a_gpu(gpu: str, capability: str, kopt: Kopt) -> None:
    done = kopt("occupancy", "--gpu", gpu, *KERNEL, "--json")
    assert done.code == 0
    data = OccupancyData.model_validate(done.json["data"])
    assert (data.gpu, data.compute_capability) == (gpu, capability)
    (kernel,) = data.kernels
    assert kernel.blocks * kernel.warps_per_block == kernel.warps
    assert kernel.occupancy == kernel.warps / kernel.max_warps
    assert kernel.blocks == min(each.blocks for each in kernel.resources if each.blocks is not None)
    stated = {limit.metric for limit in data.limits}
    assert all(set(each.metrics) <= stated for each in kernel.resources)
    assert all(LINE.search(limit.citation_line) for limit in data.limits)


def test_a_kernel_that_cannot_be_launched_is_an_answer(kopt: Kopt) -> None:
    done = kopt("occupancy", "--gpu", "sm_80", "--regs", "255", "--threads", "1024", "--json")
    assert done.code == 0
    (kernel,) = done.json["data"]["kernels"]
    assert (kernel["launchable"], kernel["blocks"], kernel["limiters"]) == (False, 0, ["registers"])
    (need,) = kernel["one_more_block"]
    assert need["at_most"] == 64
    said = kopt("occupancy", "--gpu", "sm_80", "--regs", "255", "--threads", "1024").out
    assert "not a single block fits, so it cannot be launched: not enough registers" in said


def test_the_opt_in_is_named(kopt: Kopt) -> None:
    asked = ("occupancy", "--gpu", "sm_90", "--regs", "32", "--threads", "128")
    assert "opt in" not in kopt(*asked, "--smem", "48KB").out
    more = kopt(*asked, "--smem", "49153").out
    assert re.search(r"Note: the launch must opt in .*without opt-in: 48 KB <- gpu-wiki/hardware/cc-9-0\.md:L\d+", more)


def test_a_preferred_carve_out(kopt: Kopt) -> None:
    asked = ("occupancy", "--gpu", "sm_80", "--regs", "32", "--threads", "32", "--smem", "15KB", "--json")
    blocks = [kopt(*asked, *more).json["data"]["kernels"][0]["blocks"] for more in ((), ("--carveout", "10"))]
    assert blocks == [164 // 16, 32 // 16]


@pytest.mark.parametrize(
    ("words", "gap"),
    [
        (("--gpu", "h1000"), "h1000: no GPU of this name is known; the nearest known ones are h100-"),
        (("--gpu", "sm_35"), "sm_35: no GPU of this name is known; the nearest known ones are "),
        (("--gpu", "mi300x"), "MI300X Compute capability: UNKNOWN (gpu-wiki not found)"),
    ],
)
def test_what_the_wiki_does_not_say(words: tuple[str, ...], gap: str, home: Path, run: Callable[..., Run]) -> None:
    """Abstained, in words and as JSON, with nothing computed; the gap is logged."""
    done = run(home, "occupancy", *words, *KERNEL, "--json")
    assert (done.code, done.json["status"]) == (3, "abstained")
    data = done.json["data"]
    assert data["gaps"][0].startswith(gap)
    assert data["kernels"] == []
    logged = [json.loads(line) for line in (home / "gaps.jsonl").read_text("utf-8").splitlines()]
    assert logged[-1]["gaps"] == data["gaps"]
    said = run(home, "occupancy", *words, *KERNEL)
    assert said.code == 3
    assert said.out.startswith(gap)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--gpu", "sm_90"), "kernel_missing"),
        (KERNEL, "kernel_missing"),
        (("--gpu", "sm_90", "--regs", "300", "--threads", "64"), "beyond_hardware"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "1025"), "beyond_hardware"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "64", "--smem", "228KB"), "beyond_hardware"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "64", "--barriers", "65"), "beyond_hardware"),
        (("--gpu", "sm_90", "--regs", "-1", "--threads", "64"), "value_invalid"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "0"), "value_invalid"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "64", "--smem", "much"), "value_invalid"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "64", "--smem", "-4"), "value_invalid"),
        (("--gpu", "sm_90", "--regs", "32", "--threads", "64", "--carveout", "101"), "value_invalid"),
        (("--gpu", "sm_90", *KERNEL, "--function", "f"), "function_alone"),
        (("--gpu", "sm_90", *KERNEL, "--num-warps", "4"), "compiled_alone"),
        (("--gpu", "sm_90", *KERNEL, "--kernel", "x.cubin"), "two_kernels"),
        (("--gpu", "sm_90", "--kernel", "absent.cubin"), "file_not_found"),
    ],
)
def test_what_makes_no_sense(words: tuple[str, ...], code: str, kopt: Kopt) -> None:
    done = kopt("occupancy", *words, "--json")
    assert done.code == 2
    (error,) = done.json["errors"]
    assert error["code"] == code
    assert error["hint"]


def test_a_value_beyond_the_hardware_cites_the_limit(kopt: Kopt) -> None:
    done = kopt("occupancy", "--gpu", "sm_86", "--regs", "300", "--threads", "64", "--smem", "100KB")
    assert done.code == 2
    assert "300 registers a thread are more than 255; 102,400 bytes of shared memory are more than 101,376" in done.err
    assert len(LINE.findall(done.err)) == 2


# --- compiled kernels -------------------------------------------------------------------------------------------------


def kernels(done: Run) -> dict[str, dict[str, object]]:
    return {kernel["kernel"]: kernel for kernel in done.json["data"]["kernels"]}


def test_from_a_compiled_kernel(kopt: Kopt, tmp_path: Path) -> None:
    """Target, block size, registers and static shared memory are the file's own."""
    cubin = assemble(tmp_path, "sm_90")
    done = kopt("occupancy", "--kernel", str(cubin), "--function", "demanding", "--json")
    assert done.code == 0, done.out
    data = done.json["data"]
    assert (data["gpu"], data["compute_capability"]) == ("sm_90", "9.0")
    (kernel,) = data["kernels"]
    assert (kernel["threads"], kernel["static_shared_memory"], kernel["shared_memory"]) == (192, 4096, 4096)
    assert kernel["allocated_shared_memory"] == 5120
    more = kopt("occupancy", "--kernel", str(cubin), "--function", "demanding", "--smem", "8KB", "--json")
    assert kernels(more)["demanding"]["shared_memory"] == 12 << 10


def test_every_kernel_of_a_file_and_what_was_assumed(kopt: Kopt, tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    missing = kopt("occupancy", "--kernel", str(cubin), "--json")
    assert (missing.code, missing.json["errors"][0]["code"]) == (2, "threads_missing")
    done = kopt("occupancy", "--kernel", str(cubin), "--threads", "192", "--json")
    assert set(kernels(done)) == {"demanding", "bounded", "free"}
    notes = kernels(kopt("occupancy", "--kernel", str(cubin), "--function", "bounded", "--json"))["bounded"]["notes"]
    assert notes == [
        "256 threads a block, as the launch bounds allow",
        "no dynamic shared memory is counted; give what the launch adds with --smem",
    ]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--gpu", "sm_90"), "other_gpu"),
        (("--gpu", "sm_80", "--function", "none"), "function_unknown"),
        (("--threads", "128", "--function", "demanding"), "threads_other"),
        (("--threads", "512", "--function", "bounded"), "threads_other"),
    ],
)
def test_a_compiled_kernel_that_does_not_fit_the_words(
    words: tuple[str, ...], code: str, kopt: Kopt, tmp_path: Path
) -> None:
    done = kopt("occupancy", "--kernel", str(assemble(tmp_path, "sm_80")), *words, "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, code)


def test_code_for_8_0_runs_on_8_6_and_code_for_9_0a_runs_there_alone(kopt: Kopt, tmp_path: Path) -> None:
    later = kopt(
        "occupancy", "--kernel", str(assemble(tmp_path, "sm_80")), "--gpu", "8.6", "--threads", "192", "--json"
    )
    assert later.json["data"]["compute_capability"] == "8.6"
    exact = kopt("occupancy", "--kernel", str(assemble(tmp_path, "sm_90a")), "--gpu", "10.0", "--json")
    assert exact.json["errors"][0]["code"] == "other_gpu"


def test_a_kernel_that_the_hardware_cannot_have_stands_beside_the_others(kopt: Kopt, tmp_path: Path) -> None:
    words = ("occupancy", "--kernel", str(assemble(tmp_path, "sm_80")), "--threads", "192", "--smem", "166000")
    done = kopt(*words, "--json")
    assert done.code == 0, done.out
    assert set(kernels(done)) == {"bounded", "free"}
    (refused,) = done.json["data"]["refused"]
    assert (refused["kernel"], refused["why"]) == (
        "demanding",
        "170,096 bytes of shared memory are more than 166,912",
    )
    said = kopt(*words).out
    assert LINE.search(said.partition("demanding: cannot be launched: ")[2].splitlines()[1])
    alone = kopt(*words, "--function", "demanding", "--json")
    assert (alone.code, alone.json["errors"][0]["code"]) == (2, "beyond_hardware")


# --- files that are compiled first ------------------------------------------------------------------------------------

TRITON = """
import torch, triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 1024}, num_warps=w) for w in (4, 8)], key=["n"])
@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=0.0)
    tl.store(y + tl.program_id(0) * n + at, v / tl.sum(v, 0), mask=at < n)

@triton.jit
def square(a, c, B: tl.constexpr, D: tl.constexpr, S: tl.constexpr):
    i, k = tl.arange(0, B), tl.arange(0, D)
    acc = tl.zeros((B, B), tl.float32)
    for step in tl.range(0, 4, num_stages=S):
        tile = tl.load(a + step + i[:, None] * D + k[None, :])
        acc += tl.dot(tile, tl.trans(tile))
    tl.store(c + i[:, None] * B + i[None, :], acc)

def setup(N=1000):
    x = torch.rand(8, N, device="cuda")
    return {"inputs": {"x": x, "y": torch.empty_like(x), "n": N}, "outputs": ["y"]}

def run_kernel(x, y, n):
    rows[(x.shape[0],)](x, y, n)
    a = torch.empty(64, 64, device="cuda", dtype=torch.float16)
    square[(1,)](a, torch.empty(64, 64, device="cuda"), 64, 64, 4)
"""
CUDA = """
extern "C" __global__ void __launch_bounds__(128) bounded(float *x) {
    __shared__ float t[256];
    t[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = t[127 - threadIdx.x];
}
extern "C" __global__ void plain(float *x) { x[threadIdx.x] = 1; }
"""


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


@needs_triton
def test_every_kernel_of_a_triton_file_as_kopt_sass_compiles_it(kopt: Kopt, tmp_path: Path) -> None:
    """Constants, registers and shared memory of each configuration; the block size is the code's own."""
    file = written(tmp_path, "k.py", TRITON)
    done = kopt("occupancy", "--kernel", file, "--gpu", "h100-sxm", "--dims", "N=1024", "--json")
    assert done.code == 0, done.out
    data = OccupancyData.model_validate(done.json["data"])
    assert data.how.startswith("one call of run_kernel")
    assert [(kernel.kernel.partition(" ")[0], kernel.threads) for kernel in data.kernels] == [
        ("rows", 128),
        ("rows", 256),
        ("square", 128),
    ]
    assert data.refused == []
    compiled = kopt("sass", file, "--gpu", "h100-sxm", "--dims", "N=1024", "--json").json["data"]["functions"]
    for kernel, function in zip(data.kernels, compiled, strict=True):
        needs = function["resources"]
        assert kernel.kernel == f"{function['name']} [{function['version']}]"
        assert (kernel.registers, kernel.threads, kernel.barriers) == (
            needs["registers"],
            needs["required_threads"],
            needs["barriers"],
        )
        assert kernel.shared_memory == needs["static_shared_bytes"] + needs["dynamic_shared_bytes"]
    assert data.kernels[2].shared_memory >= 64 * 64 * 2


@needs_triton
def test_a_triton_kernel_from_types_alone(kopt: Kopt, tmp_path: Path) -> None:
    file = written(tmp_path, "k.py", TRITON)
    words = ("occupancy", "--kernel", file, "--gpu", "sm_100", "--signature", "rows: *fp32:16, *fp32:16, i32, 1024")
    done = kopt(*words, "--num-warps", "2", "--json")
    assert done.code == 0, done.out
    (kernel,) = done.json["data"]["kernels"]
    assert (kernel["threads"], kernel["warps_per_block"]) == (64, 2)


@needs_nvcc
def test_a_cuda_file(kopt: Kopt, tmp_path: Path) -> None:
    file = written(tmp_path, "k.cu", CUDA)
    words = ("occupancy", "--kernel", file, "--gpu", "sm_90")
    done = kopt(*words, "--threads", "128", "--smem", "2KB", "--json")
    assert done.code == 0, done.out
    assert done.json["data"]["how"].startswith("nvcc -arch=sm_90a")
    assert {name: (k["static_shared_memory"], k["shared_memory"]) for name, k in kernels(done).items()} == {
        "bounded": (1024, 3072),
        "plain": (0, 2048),
    }
    assert "bounded on compute capability 9.0 (sm_90): 128 threads" in kopt(*words, "--function", "bounded").out
    assert kopt(*words, "--json").json["errors"][0]["code"] == "threads_missing"


@needs_nvcc
def test_a_file_that_does_not_compile_is_rejected(kopt: Kopt, tmp_path: Path) -> None:
    file = written(tmp_path, "k.cu", CUDA.replace("t[127", "y[127"))
    words = ("occupancy", "--kernel", file, "--gpu", "sm_90")
    done = kopt(*words, "--json")
    assert (done.code, done.json["status"]) == (4, "rejected")
    assert done.json["errors"][0]["code"] == "compile_error"
    assert done.json["data"]["kernels"] == []
    assert 'identifier "y" is undefined' in kopt(*words).out


def test_nvcc_runs_in_the_jail(kopt: Kopt, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "nvcc").write_text('#!/bin/sh\necho "user $USER at $HOME" >&2\nexit 1\n', "utf-8")
    (tools / "nvcc").chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    file = written(tmp_path, "k.cu", CUDA)
    done = kopt("occupancy", "--kernel", file, "--gpu", "sm_90", "--cuda-home", str(tmp_path), "--json")
    told = re.search(r"user user at (/\S+)", done.json["errors"][0]["message"])
    assert told is not None
    assert told[1] != str(Path.home())
    assert not Path(told[1]).exists(), "a folder of its own, which is gone"


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_what_to_compile_for_must_be_named(kopt: Kopt, tmp_path: Path) -> None:
    done = kopt("occupancy", "--kernel", written(tmp_path, "k.cu", CUDA), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (6, "no_gpu")
    assert "--gpu sm_90" in done.json["errors"][0]["hint"]


@pytest.mark.parametrize(
    ("name", "text", "words", "code"),
    [
        ("k.txt", "pass", (), "kernel_form"),
        ("k.py", "pass\n", (), "no_kernel"),
        ("k.cu", "int x;\n", (), "no_kernel"),
        ("k.cubin", "no binary\n", (), "not_a_cubin"),
        ("k.cubin", "no binary\n", ("--dims", "N=4"), "compiled_alone"),
        ("k.py", "pass\n", ("--signature", "k"), "signature_invalid"),
    ],
)
def test_files_that_no_kernel_can_be_read_of(
    name: str, text: str, words: tuple[str, ...], code: str, kopt: Kopt, tmp_path: Path
) -> None:
    file = written(tmp_path, name, text)
    done = kopt("occupancy", "--kernel", file, "--gpu", "sm_90", *words, "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, code)
    assert done.json["errors"][0]["hint"]
