"""What is written down about the machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from evaluator.receipt.environment import (
    Environment,
    Layer,
    WorkerEnvironment,
    cpu_model,
    driver_version,
    gather,
    nvcc_version,
    package_version,
)
from evaluator.worker.process import isolation

WORKER = WorkerEnvironment(executable=sys.executable, python="3.11.9", torch="2.13.0")


def looked(device: str = "cpu", variables: Mapping[str, str] | None = None, nvcc: Path | None = None) -> Environment:
    """What is found on this machine."""
    layers: list[Layer | isolation.Layer] = [
        Layer(name="landlock", applied=True),
        isolation.Layer("pid namespace", False, "not permitted"),
    ]
    return gather(
        kopt="0.1.0", device=device, worker=WORKER, variables=variables or {}, layers=layers, nvcc=nvcc
    )  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of the PATH, with no NVML beside it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return tmp_path


def tool(path: Path, script: str) -> Path:
    """A program of the shell."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.processes
def test_this_machine() -> None:
    found = looked(variables={"PATH": "/usr/bin"})
    assert found.kernel == os.uname().release
    assert found.cpu
    assert found.device_name == found.cpu
    assert 1 <= found.cpu_count <= (os.cpu_count() or 1)
    assert found.memory > 1 << 28
    assert found.torch == torch.__version__
    assert found.python == sys.version.split()[0]
    assert found.variables == {"PATH": "/usr/bin"}
    assert [(layer.name, layer.applied) for layer in found.isolation] == [("landlock", True), ("pid namespace", False)]
    assert (found.driver, found.compute_capability, found.device_memory, found.nvcc) == (None, None, None, None)
    assert Environment.model_validate_json(found.model_dump_json()) == found


@pytest.mark.processes
def test_torch_is_not_imported_for_the_cpu() -> None:
    code = """
import sys
from evaluator.receipt.environment import WorkerEnvironment, gather
worker = WorkerEnvironment(executable="", python="")
found = gather(kopt="0", device="cpu", worker=worker, variables={}, layers=())
print(found.torch, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [torch.__version__, "False"]


@pytest.mark.gpu
def test_a_gpu() -> None:
    found = looked("cuda:0")
    assert found.device_name == torch.cuda.get_device_name(0)
    assert found.device_memory is not None
    assert found.device_memory > 1 << 30
    assert found.driver
    major, minor = torch.cuda.get_device_capability(0)
    assert found.compute_capability == f"{major}.{minor}"


@pytest.mark.processes
def test_what_torch_says_of_a_gpu(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def properties(device: str) -> Any:
        asked.append(device)
        return SimpleNamespace(name="NVIDIA H200", total_memory=150 << 30, major=9, minor=0)

    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    tool(tools / "nvidia-smi", 'echo "580.159.04"; echo "580.159.04"')
    found = looked("cuda:1")
    assert asked == ["cuda:1"]
    assert (found.device_name, found.device_memory) == ("NVIDIA H200", 150 << 30)
    assert (found.compute_capability, found.driver) == ("9.0", "580.159.04")


@pytest.mark.processes
@pytest.mark.parametrize("script", ["exit 9", "true", "echo Failed to initialize NVML; exit 18"])
def test_a_driver_that_does_not_answer(tools: Path, script: str) -> None:
    tool(tools / "nvidia-smi", script)
    assert driver_version() is None


@pytest.mark.processes
def test_no_tool_for_the_driver(tools: Path) -> None:
    assert driver_version() is None


@pytest.mark.processes
def test_a_tool_that_does_not_end(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluator.receipt.environment.TOOL_SECONDS", 0.2)
    tool(tools / "nvidia-smi", "exec /bin/sleep 60")
    assert driver_version() is None


class NVMLError(Exception):
    """The error of NVML's package."""


def nvml(version: str | bytes | None) -> ModuleType:
    """A package of NVML; None: the library is not there."""

    def system_version() -> str | bytes | None:
        if version is None:
            raise NVMLError
        return version

    module = ModuleType("pynvml")
    functions = {"nvmlInit": lambda: None, "nvmlShutdown": lambda: None, "nvmlSystemGetDriverVersion": system_version}
    for name, value in {**functions, "NVMLError": NVMLError}.items():
        setattr(module, name, value)
    return module


@pytest.mark.processes
@pytest.mark.parametrize(
    ("version", "says"), [("580.159.04", "580.159.04"), (b"535.1", "535.1"), (None, "from the tool")]
)
def test_nvml_is_asked_first(
    tools: Path, monkeypatch: pytest.MonkeyPatch, version: str | bytes | None, says: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(version))
    tool(tools / "nvidia-smi", "echo from the tool")
    assert driver_version() == says


@pytest.mark.processes
@pytest.mark.parametrize(
    ("script", "version"),
    [
        ("echo 'Cuda compilation tools, release 13.0, V13.0.88'; echo 'Build cuda_13.0.r13.0/compiler.1_0'", "13.0.88"),
        ("echo 'Cuda compilation tools, release 12.4'", "12.4"),
        ("echo hello", None),
        ("exit 1", None),
    ],
)
def test_the_version_of_nvcc(tools: Path, script: str, version: str | None) -> None:
    assert nvcc_version(tool(tools / "nvcc", script)) == version
    assert looked(nvcc=tools / "nvcc").nvcc == version


@pytest.mark.processes
def test_an_nvcc_that_is_not_there(tmp_path: Path) -> None:
    assert nvcc_version(tmp_path / "nvcc") is None


def test_the_processor(tmp_path: Path) -> None:
    described = tmp_path / "cpuinfo"
    assert cpu_model(described) == os.uname().machine
    described.write_text("processor\t: 0\nBogoMIPS\t: 50.00\n")
    assert cpu_model(described) == os.uname().machine
    described.write_bytes(b"processor\t: 0\nmodel name\t: A processor (R) \xff 9\nmodel name\t: Another\n")
    assert cpu_model(described) == "A processor (R) \ufffd 9"


def test_a_package_that_is_not_there() -> None:
    assert package_version("no-such-package-of-any-kind") is None


def test_what_a_worker_says_must_be_what_is_known() -> None:
    with pytest.raises(ValidationError):
        WorkerEnvironment.model_validate({"executable": "python3", "python": "3.11", "verdict": "accepted"})
