"""What the kernels of a compiled file take of an SM: registers, shared memory, block size, barriers.

`cuobjdump --dump-resource-usage` prints registers and shared memory; `cuobjdump -elf` prints the attributes that the
compiler left for the driver: `EIATTR_REQNTID` (the block size that the code demands, as Triton's does),
`EIATTR_MAX_THREADS` (`__launch_bounds__`) and `EIATTR_NUM_BARRIERS` (before CUDA 13 the barriers stand in bits 20 to 26
of the flags of the kernel's section instead). From sm_90 on the printed shared memory begins
with the part that the system reserves; the file then has a section `.nv.shared.reserved.0`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path

from evaluator.disassembler import Target, disassembler, find_tool
from evaluator.disassembly import read_usage
from kbs.errors import ConfigurationError, UsageError

_TIMEOUT = 300
_RESERVED_FROM = 90
"""Targets from here on have the reserved shared memory laid out in front of a kernel's own."""
_TARGET = re.compile(r"^64-?bit elf:[^\n]*\bsm=(?P<number>\d{2,3})(?P<suffix>[af]?)\b", re.IGNORECASE | re.MULTILINE)
_SECTION = re.compile(r"^\.nv\.info\.(?P<name>\S+)$")
_ATTRIBUTE = re.compile(r"Attribute:\s*(?P<name>EIATTR_\w+)\s*Format:\s*\w+\s*Value:\s*(?P<value>[^\n]*)")
_TEXT = re.compile(
    r"^(?:\s*[0-9a-f]+){5}\s+PROGBITS\s+(?P<flags>[0-9a-f]+)\s+[0-9a-f]+\s+[0-9a-f]+\s+\.text\.(?P<name>\S+)\s*$",
    re.MULTILINE,
)
_RESERVED = re.compile(r"\s\.nv\.shared\.reserved\.0\s*$", re.MULTILINE)
_LAST_LINES = 12


@dataclass(frozen=True)
class KernelResources:
    """What one kernel of a compiled file takes."""

    name: str
    """As it stands in the file; a C++ name is mangled."""
    registers: int
    """Of a thread."""
    static_shared_memory: int
    """Bytes of a block, without the part that the system reserves."""
    local_memory: int
    """Bytes of a thread: stack and spills."""
    barriers: int
    """Of a block; 1 where the file does not say."""
    required_threads: int | None
    """Block size that the code demands."""
    max_threads: int | None
    """Largest block size that the code was compiled for."""
    dynamic_shared_memory: int | None
    """Bytes that the launcher adds, where Triton's description of the kernel lies beside the file."""


@dataclass(frozen=True)
class Cubin:
    """The kernels of one file for one target."""

    target: Target
    exact: bool
    """Whether the code runs on that target alone (`sm_90a`), and not on later ones of its major version."""
    kernels: tuple[KernelResources, ...]


def kernel_resources(path: Path, target: Target | None, reserved: Callable[[Target], int]) -> Cubin:
    """The kernels of a `.cubin`, or of a `.cu` file that is compiled for `target`.

    `reserved` says how many bytes of shared memory the system takes of each block.
    Raises `UsageError` for another file, one that the compiler refuses, or one without a kernel; `ConfigurationError`
    where nvcc or cuobjdump is missing.
    """
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}", code="file_not_found", hint="Give --kernel a .cubin or a .cu file."
        )
    if path.suffix == ".cubin":
        return read_cubin(path, reserved)
    if path.suffix != ".cu":
        raise UsageError(
            f"{path.name} is neither a .cubin nor a .cu file",
            code="kernel_form",
            hint="`kopt sass` compiles Python files and prints registers and shared memory; Triton keeps a kernel's "
            "cubin in its cache.",
        )
    if target is None:
        raise UsageError(
            f"{path.name} must be compiled for a GPU", code="gpu_missing", hint="Name one with --gpu, such as sm_90."
        )
    with tempfile.TemporaryDirectory(prefix="kopt-") as folder:
        return read_cubin(_compiled(path, target, Path(folder)), reserved)


def read_cubin(path: Path, reserved: Callable[[Target], int]) -> Cubin:
    """The kernels of a file that the CUDA compiler has written for one target; raises as `kernel_resources`."""
    tool = str(disassembler(os.environ))
    usage, elf = (_run([tool, option, str(path.resolve())]) for option in ("--dump-resource-usage", "-elf"))
    targets = sorted({(int(match["number"]), match["suffix"].lower()) for match in _TARGET.finditer(elf.stdout)})
    if usage.returncode or elf.returncode or not targets:
        said = (usage.stderr or elf.stderr).strip().splitlines()[-1:]
        raise UsageError(
            f"{path.name} is no compiled kernel" + (f" ({' '.join(said[0].split())})" if said else ""),
            code="not_a_cubin",
            hint="Give a .cubin (`nvcc -cubin`, or Triton's from its cache), or a .cu file.",
        )
    if len(targets) > 1:
        names = ", ".join(f"sm_{number}{suffix}" for number, suffix in targets)
        raise UsageError(
            f"{path.name} has code for several targets: {names}",
            code="several_targets",
            hint="Take the one for your GPU out: `cuobjdump -xelf all FILE`.",
        )
    (number, suffix) = targets[0]
    laid_out = number >= _RESERVED_FROM and _RESERVED.search(elf.stdout) is not None
    kept = reserved(Target(number)) if laid_out else 0
    attributes, flagged = _attributes(elf.stdout), _barriers(elf.stdout)
    kernels = []
    for name, found in read_usage(usage.stdout).items():
        if name not in attributes:  # a device function, not a kernel
            continue
        of = attributes[name]
        kernels.append(
            KernelResources(
                name=name,
                registers=found.registers,
                static_shared_memory=found.shared - (kept if found.shared >= kept else 0),
                local_memory=found.stack + found.local,
                barriers=int(of["EIATTR_NUM_BARRIERS"], 0) if "EIATTR_NUM_BARRIERS" in of else flagged.get(name, 1),
                required_threads=_threads(of.get("EIATTR_REQNTID")),
                max_threads=_threads(of.get("EIATTR_MAX_THREADS")),
                dynamic_shared_memory=_launcher_shared_memory(path, name),
            )
        )
    if not kernels:
        hint = "A kernel is a __global__ function; a template must be instantiated."
        raise UsageError(f"{path.name} has no kernel", code="no_kernel", hint=hint)
    return Cubin(Target(number), suffix == "a", tuple(kernels))


def _compiled(path: Path, target: Target, folder: Path) -> Path:
    """A cubin of a `.cu` file, in `folder`. nvcc reads the file and executes nothing of it."""
    nvcc = find_tool("nvcc", os.environ)
    if nvcc is None:
        raise ConfigurationError(
            "there is no nvcc, which compiles .cu files",
            code="no_nvcc",
            hint="Put the CUDA toolkit on the PATH, or give the kernel's numbers with --regs, --smem and --threads.",
        )
    compiled = folder / f"{path.stem}.cubin"
    done = _run([str(nvcc), "-cubin", f"-arch={target.exact}", "-o", str(compiled), str(path.resolve())])
    if done.returncode or not compiled.exists():
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_LAST_LINES:])
        raise UsageError(
            f"nvcc does not compile {path.name} for {target.exact}:\n{said}",
            code="compile_error",
            hint="Mend the file, or give the kernel's numbers with --regs, --smem and --threads.",
        )
    return compiled


def _attributes(text: str) -> dict[str, dict[str, str]]:
    """Attribute → value of each kernel, as `cuobjdump -elf` prints them."""
    found: dict[str, dict[str, str]] = {}
    for block in re.split(r"\n(?=\.\S+\n)", text):
        heading, _, body = block.partition("\n")
        section = _SECTION.match(heading)
        if section:
            found[section["name"]] = {match["name"]: match["value"].strip() for match in _ATTRIBUTE.finditer(body)}
    return found


def _barriers(text: str) -> dict[str, int]:
    """Barriers of a block of each kernel whose section says so in its flags, as files of toolkits before 13 do."""
    counts = {match["name"]: int(match["flags"], 16) >> 20 & 0x7F for match in _TEXT.finditer(text)}
    return {name: count for name, count in counts.items() if count}


def _threads(sides: str | None) -> int | None:
    """Threads of a block of the size `0x100 0x1 0x1`."""
    numbers = [int(side, 0) for side in (sides or "").split()]
    return prod(numbers) if len(numbers) == 3 else None


def _launcher_shared_memory(path: Path, name: str) -> int | None:
    """Triton writes `<kernel>.json` beside the cubin; its `shared` is what the launcher asks for."""
    try:
        described = json.loads(path.with_suffix(".json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(described, dict) or described.get("name") != name:
        return None
    shared = described.get("shared")
    return shared if isinstance(shared, int) and not isinstance(shared, bool) and shared >= 0 else None


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigurationError(
            f"{Path(command[0]).name} did not answer: {error}", code="tool_failed", hint="Run `kopt doctor`."
        ) from error
