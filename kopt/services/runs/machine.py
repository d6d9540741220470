"""The machine of a run: its programs, and whether its clocks are locked."""

from __future__ import annotations

import shutil
from pathlib import Path

from evaluator.receipt.environment import cpu_model, driver_version, nvcc_version, package_version
from evaluator.timing.gpu_clocks import DeviceClock
from loop.journal.record import RunRecord
from loop.planning.step0 import Check, ClockNote, EnvNote


def environment_of(record: RunRecord) -> EnvNote:
    """The machine and the programs that matter to a run."""
    build = record.build
    nvcc = shutil.which(f"{build.cuda_home}/bin/nvcc") if build.cuda_home else shutil.which("nvcc")
    gpu = record.device_name or record.device != "cpu"
    driver = driver_version() if gpu else None
    toolkit = (nvcc_version(Path(nvcc)) or "unknown version") if nvcc else None
    checks = (
        Check(name="kopt", found=record.kopt),
        Check(name="processor", found=cpu_model()),
        Check(name="GPU", found=record.device_name, why="" if gpu else "no time is taken"),
        Check(name="driver", found=driver or "", why="" if gpu else "needs a GPU"),
        Check(name="PyTorch", found=package_version("torch") or ""),
        _check("Triton", package_version("triton"), "Triton kernels cannot run without it"),
        *([Check(name="interpreter of the kernels", found=build.python)] if build.python else []),
        _check("nvcc", toolkit, "kernels in .cu files cannot be compiled"),
        Check(name="ncu", found="on the PATH" if shutil.which("ncu") else "", why=record.profile_why),
        _check("git", "on the PATH" if shutil.which("git") else None, "a run needs it"),
        _check("matplotlib", package_version("matplotlib"), "no pictures are drawn"),
    )
    clocks = clocks_of(record.device) if record.device != "cpu" else None
    return EnvNote(device=record.device, device_name=record.device_name, checks=checks, clocks=clocks)


def clocks_of(device: str) -> ClockNote:
    """The clocks of a device `cuda:N` as they are now."""
    index = int(device.partition(":")[2] or 0)
    clock = DeviceClock(index)
    now = clock.sample()
    return ClockNote.model_validate({"locked": clock.locked, "megahertz": now, "detail": clock.why, "index": index})


def _check(name: str, found: str | None, without: str) -> Check:
    return Check(name=name, found=found or "", why="" if found else without)
