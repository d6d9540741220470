"""Compiled kernels for tests: three small ones, assembled by Triton's assembler for any target, with no GPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from evaluator.sass.tools import find_tool

PTX = """
.version {version}
.target {target}
.address_size 64

.visible .entry demanding(.param .u64 out)
.reqntid 96, 2, 1
{{
    .reg .b32 %a<3>; .reg .b64 %p<2>;
    .shared .align 16 .b8 tile[4096];
    ld.param.u64 %p1, [out];
    mov.u32 %a1, tile;
    st.shared.u32 [%a1], 7;
    bar.sync 3, 64;
    ld.shared.u32 %a2, [%a1+64];
    st.global.u32 [%p1], %a2;
    ret;
}}

.visible .entry bounded(.param .u64 out)
.maxntid 256, 1, 1
{{
    .reg .b64 %p<2>;
    ld.param.u64 %p1, [out];
    st.global.u32 [%p1], 1;
    ret;
}}

.visible .entry free(.param .u64 out)
{{
    .reg .b64 %p<2>;
    ld.param.u64 %p1, [out];
    st.global.u32 [%p1], 1;
    ret;
}}
"""


def assemble(folder: Path, target: str) -> Path:
    """A cubin of the three kernels for a target."""
    return _assembled(folder / target, target, PTX.format(version=_version(target), target=target))


def _version(target: str) -> str:
    """Of PTX: the first that knows the target, and that its assembler reads."""
    return "8.7" if _number(target) >= 100 else "8.0"


def _number(target: str) -> int:
    return int("".join(filter(str.isdigit, target)))


def _assembled(stem: Path, target: str, text: str) -> Path:
    ptxas = find_tool("ptxas-blackwell" if _number(target) >= 100 else "ptxas", os.environ)
    if ptxas is None or find_tool("cuobjdump", os.environ) is None:
        pytest.skip("needs ptxas and cuobjdump, which Triton's package has")
    source, cubin = stem.with_suffix(".ptx"), stem.with_suffix(".cubin")
    source.write_text(text, "utf-8")
    command = [str(ptxas), f"-arch={target}", "-o", str(cubin), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return cubin


def assemble_heavy(folder: Path, target: str, live: int, shared: int, barriers: int) -> Path:
    """A cubin of the kernel `heavy`, with about `live` registers, `shared` bytes and `barriers` barriers."""
    values = range(live)
    lines = [
        ".reg .b32 %v<" + str(live + 2) + ">; .reg .b64 %p<2>;",
        *([f".shared .align 16 .b8 tile[{shared}];"] if shared else []),
        "ld.param.u64 %p1, [out];",
        *(f"ld.volatile.global.u32 %v{n}, [%p1+{4 * n}];" for n in values),
        *(f"bar.sync {n};" for n in range(barriers)),
        *([f"mov.u32 %v{live}, tile;", f"st.shared.u32 [%v{live}], %v0;"] if shared else []),
        *(f"st.volatile.global.u32 [%p1+{4096 + 4 * n}], %v{n};" for n in reversed(values)),
        "ret;",
    ]
    text = "\n".join(lines)
    return _assembled(
        folder / f"heavy-{live}-{shared}-{barriers}",
        target,
        f".version {_version(target)}\n.target {target}\n.address_size 64\n"
        f".visible .entry heavy(.param .u64 out)\n{{\n{text}\n}}\n",
    )
