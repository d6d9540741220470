"""From a file to its machine code: what is compiled, with which constants, and what goes wrong."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.sass.compile import Machine, machine_code
from evaluator.sass.tools import Target
from evaluator.sass.triton_types import read_kernel_types
from evaluator.source.source_file import SourceFile
from kbs.common.errors import ConfigurationError, KoptError, UsageError

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")

KERNEL = """
import os, torch, triton, triton.language as tl

@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)
"""
SETUP = """
def setup(N=4096):
    x = torch.randn(N, device="cuda")
    return {"inputs": {"x": x, "y": torch.empty_like(x), "n": N}, "outputs": ["y"]}

def run_kernel(x, y, n):
    assert x.is_cuda and torch.cuda.get_device_capability() == CAPABILITY
    scale[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024, num_warps=8)
    torch.cuda.synchronize()
"""
CALLED = KERNEL + SETUP


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer("cuda", "", passed_environment(())) as started:
        yield started


def made(server: ForkServer, text: str, name: str = "k.py", target: int = 90, *kernels: str, **more: Any) -> Machine:
    request = Request(candidate=SourceFile(name=name, text=text), environment=passed_environment(()), **more)
    return machine_code(server, request, Target(target), [read_kernel_types(words) for words in kernels])


@needs_triton
@pytest.mark.parametrize("target", [80, 90])
def test_types_and_constants_are_those_of_the_launch(server: ForkServer, target: int) -> None:
    text = CALLED.replace("CAPABILITY", str(divmod(target, 10)))
    (function,) = made(server, text, target=target).functions
    assert function.label == "scale [BLOCK=1024 num_warps=8 num_stages=3]"
    # 4,096 is a multiple of 16, which Triton's own specialization finds: the mask does not end wide accesses.
    assert any(opcode.startswith("LDG") and ".128" in opcode for opcode in function.opcodes)
    assert function.resources.spill_store_bytes == 0
    assert function.resources.registers
    (odd,) = made(server, text, target=target, dims={"N": 4097}).functions
    assert not any(".128" in opcode for opcode in odd.opcodes)


@needs_triton
def test_the_candidate_runs_in_the_sandbox_and_not_here(server: ForkServer) -> None:
    spy = CALLED.replace("CAPABILITY", "(9, 0)") + "\nimport sys\nassert 'pytest' not in sys.modules\n"
    assert made(server, spy).functions


@needs_nvcc
@pytest.mark.parametrize("target", [80, 90, 100, 120])
def test_static_shared_memory_is_the_kernels_own(server: ForkServer, target: int) -> None:
    """From sm_90 on the compiler lays the system's 1,024 bytes in front of it; they are no part of it."""
    text = (
        'extern "C" __global__ void __launch_bounds__(128) some(float *x) { __shared__ float t[300];'
        " t[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = t[127 - threadIdx.x]; }\n"
        'extern "C" __global__ void none(float *x) { x[threadIdx.x] = 1; }\n'
    )
    found = {f.name: f.resources for f in made(server, text, "k.cu", target).functions}
    assert {name: needs.static_shared_bytes for name, needs in found.items()} == {"some": 1200, "none": 0}
    assert {name: needs.max_threads for name, needs in found.items()} == {"some": 128, "none": None}


@needs_triton
@pytest.mark.parametrize("target", [80, 90])
def test_a_triton_kernel_demands_its_block_size(server: ForkServer, target: int) -> None:
    (function,) = made(server, KERNEL, "k.py", target, "scale: *fp32:16, *fp32:16, i32, 1024").functions
    needs = function.resources
    assert (function.kernel, needs.required_threads, needs.static_shared_bytes) == (True, 128, 0)


@needs_triton
def test_every_configuration_of_an_autotuner_is_compiled_once(server: ForkServer) -> None:
    tuned = CALLED.replace("CAPABILITY", "(9, 0)").replace(
        "@triton.jit",
        "@triton.autotune([triton.Config({'BLOCK': b}, num_warps=4) for b in (256, 512)], key=['n'])\n@triton.jit",
    )
    tuned = tuned.replace(", BLOCK=1024, num_warps=8", "")
    labels = [function.label for function in made(server, tuned).functions]
    assert labels == ["scale [BLOCK=256 num_warps=4 num_stages=3]", "scale [BLOCK=512 num_warps=4 num_stages=3]"]


@needs_triton
def test_host_code_that_stumbles_over_results_is_told(server: ForkServer) -> None:
    text = CALLED.replace("CAPABILITY", "(9, 0)") + "    raise ValueError('no result')\n"
    found = made(server, text)
    assert len(found.functions) == 1
    assert any("ValueError: no result" in note for note in found.notes)


@needs_triton
def test_a_kernel_is_compiled_from_types_alone(server: ForkServer) -> None:
    text = KERNEL + "\ndef launch(x):\n    raise SystemExit\n"
    wide, narrow = (
        made(server, text, "k.py", 100, f"scale: {types}, 1024").functions[0]
        for types in ("*fp32:16, *fp32:16, i32:16", "*fp32, *fp32, i32")
    )
    assert any(".128" in opcode for opcode in wide.opcodes)
    assert not any(".128" in opcode for opcode in narrow.opcodes)


@needs_triton
def test_what_does_not_compile_is_a_value(server: ForkServer) -> None:
    broken = KERNEL.replace("tl.load(x + at, mask=at < n) * 2", "tl.nothing(x)")
    found = made(server, broken, "k.py", 90, "scale: *fp32, *fp32, i32, 1024")
    assert not found.functions
    assert "nothing" in found.compile_error


@needs_triton
@pytest.mark.parametrize(
    ("text", "kernels", "code", "says"),
    [
        (KERNEL, (), "no_kernel", "--signature"),
        (KERNEL, ("other: i32",), "no_kernel", "other"),
        (KERNEL, ("scale: i32",), "no_kernel", "4 parameters (x, y, n, BLOCK), not 1"),
        (KERNEL, ("os: i32",), "no_kernel", "no @triton.jit function"),
        ("def run_kernel(x): pass\ndef setup(): return {'inputs': {'x': 1}}\n", (), "no_kernel", "no @triton.jit"),
        (
            CALLED.replace("    scale[", "    pass; 0 and scale[").replace("CAPABILITY", "(9, 0)"),
            (),
            "no_kernel",
            "launches",
        ),
    ],
)
def test_no_kernel(server: ForkServer, text: str, kernels: tuple[str, ...], code: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        made(server, text, "k.py", 90, *kernels)
    assert caught.value.code == code
    assert says in caught.value.message + caught.value.hint


@needs_triton
def test_a_candidate_that_stops_before_its_launch(server: ForkServer) -> None:
    with pytest.raises(KoptError, match="AssertionError") as caught:
        made(server, CALLED.replace("CAPABILITY", "(1, 2)"))
    assert caught.value.code == "candidate_failed"
    assert "--signature" in caught.value.hint


@needs_triton
def test_a_candidate_that_hangs(server: ForkServer) -> None:
    with pytest.raises(KoptError) as caught:
        made(server, KERNEL + "\nwhile True: pass\n", "k.py", 90, "scale: *fp32, *fp32, i32, 1024", load_seconds=3)
    assert caught.value.code == "worker_lost"


@needs_nvcc
def test_cuda_is_compiled_and_not_run(server: ForkServer) -> None:
    text = "__global__ void scale(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }\n"
    (function,) = made(server, text, "k.cu").functions
    assert function.short_name == "scale"
    assert function.resources.spill_load_bytes == 0
    assert function.resources.dynamic_shared_bytes is None


@needs_nvcc
def test_cuda_that_does_not_compile(server: ForkServer) -> None:
    found = made(server, "__global__ void scale(float* y) { y[0] = oops; }\n", "k.cu")
    assert "oops" in found.compile_error


def test_cuda_without_a_kernel(server: ForkServer) -> None:
    with pytest.raises(UsageError, match="no __global__ function"):
        made(server, "int solve() { return 0; }\n", "k.cu")


@needs_nvcc
def test_a_template_that_is_not_used_leaves_no_function(server: ForkServer) -> None:
    with pytest.raises(UsageError, match="leaves no function") as caught:
        made(server, "template <int N> __global__ void scale(float* y) { y[N] = 1; }\n", "k.cu")
    assert caught.value.code == "no_kernel"


@needs_triton
def test_a_disassembler_that_does_not_know_the_code(server: ForkServer, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cuobjdump").write_text("#!/bin/sh\necho fatal: unknown architecture >&2\nexit 1\n")
    (tmp_path / "bin" / "cuobjdump").chmod(0o755)
    with pytest.raises(ConfigurationError) as caught:
        made(server, CALLED.replace("CAPABILITY", "(9, 0)"), cuda_home=tmp_path)
    assert caught.value.code == "disassembler_failed"


def test_no_disassembler(server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.sass.tools.find_tool", lambda *_: None)
    with pytest.raises(ConfigurationError) as caught:
        made(server, CALLED)
    assert caught.value.code == "no_disassembler"
