"""What compiled kernels take, read from real ones: assembled here by Triton's assembler, with no GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from evaluator.cubin import Cubin, kernel_resources
from evaluator.disassembler import Target, find_tool
from kbs.errors import UsageError
from tests.evaluator.cubins import assemble

RESERVED = 1024
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")


def reserved(_: Target) -> int:
    return RESERVED


def read(path: Path, target: Target | None = None) -> Cubin:
    return kernel_resources(path, target, reserved)


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_compiled_kernel_takes(target: str, tmp_path: Path) -> None:
    """Shared memory without the part that the system reserves, on targets that lay it out and on those that do not."""
    found = read(assemble(tmp_path, target))
    assert (found.target.name, found.exact) == (target.rstrip("a"), target.endswith("a"))
    kernels = {kernel.name: kernel for kernel in found.kernels}
    assert set(kernels) == {"demanding", "bounded", "free"}
    demanding, bounded, free = (kernels[name] for name in ("demanding", "bounded", "free"))
    assert [kernel.static_shared_memory for kernel in (demanding, bounded, free)] == [4096, 0, 0]
    assert (demanding.required_threads, bounded.required_threads, free.required_threads) == (192, None, None)
    assert (bounded.max_threads, free.max_threads) == (256, None)
    assert all(0 < kernel.registers <= 32 for kernel in found.kernels)
    assert all(kernel.local_memory == 0 for kernel in found.kernels)
    assert all(kernel.dynamic_shared_memory is None for kernel in found.kernels)


@pytest.mark.parametrize("target", TARGETS)
def test_barriers(target: str, tmp_path: Path) -> None:
    """Barrier 3 is used, so a block takes four; older assemblers write it into the section's flags."""
    found = {kernel.name: kernel.barriers for kernel in read(assemble(tmp_path, target)).kernels}
    assert found == {"demanding": 4, "bounded": 1, "free": 1}


def test_registers_as_the_assembler_says(tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    ptxas = find_tool("ptxas", os.environ)
    command = [str(ptxas), "-arch=sm_80", "-v", "-maxrregcount=24", "-o", str(cubin), str(tmp_path / "sm_80.ptx")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr
    counts = [int(line.split("Used ")[1].split()[0]) for line in said.splitlines() if "Used " in line]
    assert sorted(kernel.registers for kernel in read(cubin).kernels) == sorted(counts)


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ({"name": "demanding", "shared": 8192}, 8192),
        ({"name": "other", "shared": 8192}, None),
        ({"name": "demanding", "shared": -1}, None),
        ({"name": "demanding", "shared": True}, None),
        ({"name": "demanding"}, None),
        ([1], None),
    ],
)
def test_tritons_description_beside_the_file(described: object, expected: int | None, tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    cubin.with_suffix(".json").write_text(json.dumps(described), "utf-8")
    found = {kernel.name: kernel.dynamic_shared_memory for kernel in read(cubin).kernels}
    assert found == {"demanding": expected, "bounded": None, "free": None}


def test_a_cu_file_is_compiled(tmp_path: Path) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("needs nvcc")
    source = tmp_path / "k.cu"
    source.write_text(
        'extern "C" __global__ void __launch_bounds__(128) solve(float *x) {'
        " __shared__ float t[256]; t[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = t[127]; }\n",
        "utf-8",
    )
    found = read(source, Target(90))
    (kernel,) = found.kernels
    assert (kernel.name, kernel.static_shared_memory, kernel.max_threads) == ("solve", 1024, 128)
    source.write_text("__global__ void solve(float *x) { x[0] = y; }\n", "utf-8")
    with pytest.raises(UsageError, match='identifier "y" is undefined') as refused:
        read(source, Target(90))
    assert refused.value.code == "compile_error"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("absent.cubin", None, "file_not_found"),
        ("text.cubin", b"no binary\n", "not_a_cubin"),
        ("empty.cubin", b"", "not_a_cubin"),
        ("elf.cubin", b"\x7fELF\x02\x01\x01" + bytes(200), "not_a_cubin"),
        ("kernel.py", b"pass\n", "kernel_form"),
        ("kernel.cu", b"int x;\n", "gpu_missing"),
    ],
)
def test_another_file_is_refused_by_name(name: str, content: bytes | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read(tmp_path / name)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_truncated_cubin_is_refused(tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    content = cubin.read_bytes()
    for share in (0.1, 0.5, 0.9):
        cubin.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(UsageError) as refused:
            read(cubin)
        assert refused.value.code in ("not_a_cubin", "no_kernel")
