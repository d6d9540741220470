"""What compiled kernels take, read from real ones: assembled here by Triton's assembler, with no GPU."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from evaluator.sass.cubin import read_cubin
from evaluator.sass.tools import find_tool
from kbs.common.errors import UsageError
from tests.evaluator.cubins import assemble

pytestmark = pytest.mark.processes

CALLED = """.version 8.0
.target sm_90
.address_size 64

.visible .func (.reg .b32 %out) called(.reg .b32 %in)
{
    add.u32 %out, %in, 1;
    ret;
}

.visible .entry calling(.param .u64 out)
{
    .reg .b32 %a<2>; .reg .b64 %p<2>;
    call.uni (%a1), called, (7);
    ld.param.u64 %p1, [out];
    st.global.u32 [%p1], %a1;
    ret;
}
"""
TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120")


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_compiled_kernel_takes(target: str, tmp_path: Path) -> None:
    """Shared memory without the part that the system reserves, on targets that lay it out and on those that do not."""
    found = read_cubin(assemble(tmp_path, target))
    assert (found.target.name, found.exact) == (target.rstrip("a"), target.endswith("a"))
    kernels = {kernel.name: kernel for kernel in found.kernels}
    assert set(kernels) == {"demanding", "bounded", "free"}
    demanding, bounded, free = (kernels[name] for name in ("demanding", "bounded", "free"))
    assert [kernel.usage.shared for kernel in (demanding, bounded, free)] == [4096, 0, 0]
    assert (demanding.usage.required_threads, bounded.usage.required_threads, free.usage.required_threads) == (
        192,
        None,
        None,
    )
    assert (bounded.usage.max_threads, free.usage.max_threads) == (256, None)
    assert all(0 < kernel.usage.registers <= 32 for kernel in found.kernels)
    assert all(kernel.usage.stack + kernel.usage.local == 0 for kernel in found.kernels)
    assert all(kernel.dynamic_shared is None for kernel in found.kernels)


@pytest.mark.parametrize("target", TARGETS)
def test_barriers(target: str, tmp_path: Path) -> None:
    """Barrier 3 is used, so a block takes four; older assemblers write it into the section's flags."""
    found = {kernel.name: kernel.usage.barriers for kernel in read_cubin(assemble(tmp_path, target)).kernels}
    assert found == {"demanding": 4, "bounded": 1, "free": 1}


def test_registers_as_the_assembler_says(tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    ptxas = find_tool("ptxas", os.environ)
    command = [str(ptxas), "-arch=sm_80", "-v", "-maxrregcount=24", "-o", str(cubin), str(tmp_path / "sm_80.ptx")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stderr
    counts = [int(line.split("Used ")[1].split()[0]) for line in said.splitlines() if "Used " in line]
    assert sorted(kernel.usage.registers for kernel in read_cubin(cubin).kernels) == sorted(counts)


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
    found = {kernel.name: kernel.dynamic_shared for kernel in read_cubin(cubin).kernels}
    assert found == {"demanding": expected, "bounded": None, "free": None}


def test_a_function_that_kernels_call_is_no_kernel(tmp_path: Path) -> None:
    cubin = tmp_path / "called.cubin"
    source = tmp_path / "called.ptx"
    source.write_text(CALLED, "utf-8")
    command = [str(find_tool("ptxas", os.environ)), "-c", "-arch=sm_90", "-o", str(cubin), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert [kernel.name for kernel in read_cubin(cubin).kernels] == ["calling"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("absent.cubin", None, "file_not_found"),
        ("text.cubin", b"no binary\n", "not_a_cubin"),
        ("empty.cubin", b"", "not_a_cubin"),
        ("elf.cubin", b"\x7fELF\x02\x01\x01" + bytes(200), "not_a_cubin"),
    ],
)
def test_another_file_is_refused_by_name(name: str, content: bytes | None, code: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_cubin(tmp_path / name)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_truncated_cubin_is_refused(tmp_path: Path) -> None:
    cubin = assemble(tmp_path, "sm_80")
    content = cubin.read_bytes()
    for share in (0.1, 0.5, 0.9):
        cubin.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(UsageError) as refused:
            read_cubin(cubin)
        assert refused.value.code in ("not_a_cubin", "no_kernel")
