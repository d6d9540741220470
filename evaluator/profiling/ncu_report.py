"""Read a Nsight Compute report as CSV, from a CSV, a .ncu-rep file, or a folder that kopt wrote.

An installed ncu reads a .ncu-rep file, or else NVIDIA's `ncu-report` package (the extra `kopt[ncu]`). Either runs in a
process with a time limit.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from evaluator.profiling import ncu_package
from evaluator.profiling.ncu_csv import MAX_BYTES
from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.visible_text import visible

RAW = "ncu_raw.csv"
"""The raw CSV in a folder of `kopt profile`."""
SUFFIX = ".ncu-rep"
_MAGIC = b"NVR\x00"
_SECONDS = 300.0
_TAIL = 400


def report_csv(path: Path) -> tuple[bytes, str]:
    """The CSV of the report at `path`, and the name of its file.

    Raises `UsageError`: `file_not_found`, `file_unreadable`, `report_too_large`, `report_damaged`,
    `report_of_another_tool`; `ConfigurationError`: `ncu_missing`.
    """
    file = path / RAW if path.is_dir() else path
    try:
        if not file.exists():
            hint = f"A folder is read if `kopt profile` wrote {RAW} into it." if path.is_dir() else "Check the path."
            raise UsageError(f"{file} does not exist", code="file_not_found", hint=hint)
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise UsageError(
                f"{file} has {size} bytes, more than {MAX_BYTES}",
                code="report_too_large",
                hint="Profile fewer launches, with -c N.",
            )
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", code="file_unreadable", hint="Check the file's permissions."
        ) from error
    if data.startswith(_MAGIC) or file.suffix == SUFFIX:
        return _exported(file.resolve()), file.name
    if file.suffix in (".nsys-rep", ".qdrep", ".sqlite"):
        raise UsageError(
            f"{file} is a report of Nsight Systems, which does not contain kernel counters",
            code="report_of_another_tool",
            hint="Profile with Nsight Compute: ncu --set full -o report …",
        )
    return data, file.name


def _exported(file: Path) -> bytes:
    ncu = shutil.which("ncu")
    if ncu is not None:
        words = [ncu, "--import", str(file), "--csv", "--page", "raw"]
        done = _run([*words, "--print-units", "base"], file)
        if done.returncode != 0 and b"print-units" in done.stdout + done.stderr:  # before 2021 it was --units
            done = _run([*words, "--units", "base"], file)
        return _output(done, file)
    if importlib.util.find_spec("ncu_report") is not None:
        done = _run([sys.executable, "-I", str(Path(ncu_package.__file__)), str(file)], file)
        return _output(done, file)
    raise ConfigurationError(
        f"{file.name} needs Nsight Compute to be read, and neither ncu nor NVIDIA's package ncu-report is installed",
        code="ncu_missing",
        hint=f"pip install 'kopt[ncu]'; or, where ncu is: ncu --import {file.name} --csv --page raw > {file.stem}.csv"
        f" and give kopt {file.stem}.csv.",
    )


def _run(words: list[str], file: Path) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            words,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _damaged(file, f"Nsight Compute's reader did not end within {_SECONDS:.0f} s") from error
    except OSError as error:
        raise ConfigurationError(
            f"{words[0]} cannot be started: {error.strerror}", code="ncu_broken", hint="Repair the installation of ncu."
        ) from error


def _output(done: subprocess.CompletedProcess[bytes], file: Path) -> bytes:
    if done.returncode == 0 and done.stdout:
        return done.stdout
    said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-_TAIL:]
    raise _damaged(file, f"its reader finds no launch in it (exit code {done.returncode}): {visible(said)}")


def _damaged(file: Path, why: str) -> UsageError:
    return UsageError(
        f"{file.name} cannot be read: {why}",
        code="report_damaged",
        hint="Profile again; a report of a newer Nsight Compute needs a reader as new.",
    )
