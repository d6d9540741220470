"""Find the installed tools that read machine code, and parse the names of compile targets."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kbs.common.errors import ConfigurationError

_EXACT_FROM = 90
"""From this target on, code for one architecture alone (`sm_90a`) has instructions that plain `sm_90` lacks."""
_TARGET = re.compile(r"(?:sm[_-]?|cc[ -]?|compute[_ ]?)?(?P<major>\d{1,2})[.-]?(?P<minor>\d)[af]?", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """An architecture that code is compiled for."""

    number: int
    """Ten times the major version of the compute capability, plus the minor: 90."""

    @property
    def name(self) -> str:
        """`sm_90`."""
        return f"sm_{self.number}"

    @property
    def exact(self) -> str:
        """The name that compilers are given, with what exists on this architecture alone: `sm_90a`, `sm_80`."""
        return self.name + ("a" if self.number >= _EXACT_FROM else "")


def read_target(text: str) -> Target | None:
    """The target that `sm_90`, `sm_90a`, `9.0`, `cc-9-0` or `90` names; None for anything else."""
    match = _TARGET.fullmatch(text.strip())
    if match is None:
        return None
    number = int(match["major"]) * 10 + int(match["minor"])
    return Target(number) if 50 <= number < 200 else None


def find_tool(name: str, environment: Mapping[str, str], cuda_home: Path | None = None) -> Path | None:
    """A program of the CUDA toolkit: in the folder that is named, in Triton's package, in CUDA_HOME, on the PATH.

    Triton carries cuobjdump, nvdisasm and ptxas, and those read all that it compiles.
    """
    homes = [environment.get("CUDA_HOME"), environment.get("CUDA_PATH")]
    folders = [
        *([cuda_home / "bin"] if cuda_home else []),
        *_triton_folder(),
        *(Path(home) / "bin" for home in homes if home),
    ]
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    found = shutil.which(name, path=environment.get("PATH"))
    return Path(found) if found else None


def _triton_folder() -> list[Path]:
    """Where Triton's package keeps them; found without importing it."""
    spec = importlib.util.find_spec("triton")
    return [Path(spec.origin).parent / "backends" / "nvidia" / "bin"] if spec and spec.origin else []


def disassembler(environment: Mapping[str, str], cuda_home: Path | None = None) -> Path:
    """cuobjdump. Raises `ConfigurationError` (`no_disassembler`)."""
    found = find_tool("cuobjdump", environment, cuda_home)
    if found is None:
        raise ConfigurationError(
            "cuobjdump, which reads machine code, was not found",
            code="no_disassembler",
            hint="Install triton, which includes it, put the CUDA toolkit on the PATH, or use --cuda-home.",
        )
    return found
