"""Taking a profile: the words of ncu, and the error for each thing that it says instead of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.profiling.collect import _chosen, profiling_error
from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import ConfigurationError, ExitCode, KoptError, UsageError


def test_launches_are_chosen_by_name_or_number() -> None:
    assert _chosen("") == ["--launch-count", "16"]
    assert _chosen("3") == ["--launch-skip", "2", "--launch-count", "1"]
    assert _chosen("²")[0] == "--kernel-name"
    with pytest.raises(UsageError, match="launch 0 does not exist"):
        _chosen("0")
    assert _chosen("soft.max<int>")[:2] == ["--kernel-name", r"regex:soft\.max<int>"]


STOPPED = """==PROF== Connected to process 7 (/usr/bin/python3)
Traceback (most recent call last):
RuntimeError: the kernel's own words
==PROF== Disconnected from process 7
==ERROR== The application returned an error code (1).
==WARNING== No kernels were profiled.
"""


@pytest.mark.parametrize(
    ("said", "launch", "code", "kind"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not", "", "no_counter_permission", ConfigurationError),
        ("permission to access NVIDIA GPU Performance Counters", "", "no_counter_permission", ConfigurationError),
        ("==WARNING== No kernels were profiled.", "softmax", "kernel_not_launched", UsageError),
        ("==WARNING== No kernels were profiled.", "", "kernel_not_launched", UsageError),
        ("==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool", "",
         "counters_in_use", ConfigurationError),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded. Check that", "", "no_profiler",
         ConfigurationError),
        ("==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).\n"
         "==ERROR== The application returned an error code (1).", "", "no_profiler", ConfigurationError),
        (STOPPED, "softmax", "profile_failed", KoptError),
        ("RuntimeError: something else", "", "profile_failed", KoptError),
        ("", "", "profile_failed", KoptError),
    ],
)  # fmt: skip
def test_what_ncu_says_instead_is_a_named_error(said: str, launch: str, code: str, kind: type[KoptError]) -> None:
    error = profiling_error(said, launch)
    assert (error.code, type(error)) == (code, kind)
    assert error.hint


def test_what_was_not_launched_is_told() -> None:
    nothing = "==WARNING== No kernels were profiled."
    assert profiling_error(nothing, "17").message == "the profiled call launched fewer than 17 kernels"
    assert profiling_error(nothing, "relu").message == "no kernel like 'relu' was launched by the profiled call"
    assert profiling_error(nothing, "").message == "no kernel was launched by the profiled call"


def test_a_program_that_stopped_is_told_in_its_own_words() -> None:
    error = profiling_error(STOPPED, "softmax")
    assert "RuntimeError: the kernel's own words | ==ERROR== The application returned" in error.message
    assert "==PROF==" not in error.message
    assert "No kernels" not in error.message


def test_all_three_remedies_for_counters_are_named() -> None:
    error = profiling_error("ERR_NVGPUCTRPERM", "")
    assert all(word in error.hint for word in ("root", "NVreg_RestrictProfilingToAdminUsers=0", "SYS_ADMIN"))
    assert error.exit_code == ExitCode.CONFIGURATION


FILES: dict[str, Callable[[Path], object]] = {
    "a link": lambda path: path.symlink_to("/etc/passwd"),
    "a second name": lambda path: os.link(_plain(path.with_name("other")), path),
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda path: path.unlink(missing_ok=True),
    "too large": lambda path: _plain(path, 101),
}


def _plain(path: Path, size: int = 1) -> Path:
    path.write_bytes(b"x" * size)
    return path


@pytest.mark.parametrize("what", FILES)
def test_nothing_but_an_ordinary_file_is_read(server: ForkServer, what: str) -> None:
    with server.spawn("files", Limits(1 << 30, 64, 1 << 30, True), {}) as worker:
        FILES[what](worker.folder / "profile.csv")
        assert worker.read_file("profile.csv", 100) is None


@pytest.mark.parametrize("name", ["../server.txt", "/etc/passwd", "a/b"])
def test_no_file_outside_is_read(server: ForkServer, name: str) -> None:
    with server.spawn("files", Limits(1 << 30, 64, 1 << 30, True), {}) as worker:
        assert worker.read_file(name, 1 << 20) is None


def test_an_ordinary_file_is_read(server: ForkServer) -> None:
    with server.spawn("files", Limits(1 << 30, 64, 1 << 30, True), {}) as worker:
        (worker.folder / "profile.csv").write_bytes(b"table")
        assert worker.read_file("profile.csv", 5) == b"table"
