"""GPUs by name: what is one, and whether it is there."""

from __future__ import annotations

import pytest
import torch

from evaluator.sandbox.devices import crowded, device_name, require_gpu
from kbs.common.errors import ExitCode, NoGpuError, UsageError


def gpus(monkeypatch: pytest.MonkeyPatch, count: int, total: int = 80 << 30) -> None:
    """As if there were so many GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"GPU {index}")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1 << 30, total))


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        "",
        "cuda:-1",
        "cuda:x",
        "cuda:",
        "cuda:0:1",
        "gpu:0",
        "cuda:1.0",
        "cuda:²",
        "cuda:٣",
        "cuda:01",
        "cuda:0\n",
        "mps",
    ],
)
def test_what_names_no_gpu(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    gpus(monkeypatch, 8)
    with pytest.raises(UsageError) as raised:
        require_gpu(device, "hint")
    assert (raised.value.code, raised.value.exit_code) == ("device_unknown", ExitCode.USAGE)
    assert repr(device) in raised.value.message


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:1"])
def test_a_gpu_that_is_there(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    gpus(monkeypatch, 2)
    require_gpu(device, "hint")
    assert device_name(device) == ("GPU 1" if device == "cuda:1" else "GPU 0")


@pytest.mark.parametrize(
    ("device", "count", "cuda", "said"),
    [
        ("cuda:0", 0, "12.8", "cuda:0 was asked for, and there is no GPU"),
        ("cuda", 0, None, "cuda was asked for, and there is no GPU (this PyTorch is a CPU build)"),
        ("cuda:2", 2, "12.8", "cuda:2 was asked for, and there is no more than 2"),
    ],
)
def test_a_gpu_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, device: str, count: int, cuda: str | None, said: str
) -> None:
    gpus(monkeypatch, count)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    with pytest.raises(NoGpuError) as raised:
        require_gpu(device, "Try --device cpu.")
    assert (raised.value.message, raised.value.hint, raised.value.code) == (said, "Try --device cpu.", "no_gpu")
    assert raised.value.exit_code == ExitCode.NO_GPU
    assert device_name(device) == ""


def test_a_driver_that_counts_devices_it_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoGpuError):
        require_gpu("cuda:0", "hint")
    assert device_name("cuda:0") == ""


def test_the_cpu_has_no_name_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    assert device_name("cpu") == ""


@pytest.mark.parametrize(("size", "expected"), [(2 << 30, False), ((2 << 30) + 1, True), (0, False)])
def test_a_problem_of_more_than_a_fortieth_is_crowded(
    monkeypatch: pytest.MonkeyPatch, size: int, expected: bool
) -> None:
    gpus(monkeypatch, 1)
    assert crowded(torch.device("cuda:0"), size) is expected


def test_on_the_cpu_nothing_is_crowded() -> None:
    assert not crowded(torch.device("cpu"), 1 << 60)
