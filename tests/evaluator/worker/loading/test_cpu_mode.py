"""Code that was written for a GPU, on the CPU: it runs, and nothing of the arrangement stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from evaluator.worker.loading.cpu_mode import STAND_INS, on_the_cpu

CUDA = ("cuda", "cuda:0", torch.device("cuda"), torch.device("cuda:0"), torch.device("cuda", 1))
MAKERS: dict[str, Callable[[Any], torch.Tensor]] = {
    "empty": lambda device: torch.empty(2, device=device),
    "empty_like": lambda device: torch.empty_like(torch.ones(2), device=device),
    "empty_strided": lambda device: torch.empty_strided((2, 2), (1, 2), device=device),
    "zeros": lambda device: torch.zeros(2, 3, device=device),
    "full": lambda device: torch.full((2,), 3.0, device=device),
    "ones_like": lambda device: torch.ones_like(torch.ones(2), device=device),
    "rand": lambda device: torch.rand(2, device=device, dtype=torch.float16),
    "randn": lambda device: torch.randn((2, 2), device=device),
    "randint": lambda device: torch.randint(0, 9, (4,), device=device),
    "arange": lambda device: torch.arange(0, 4, device=device),
    "tensor": lambda device: torch.tensor([1.0, 2.0], device=device),
    "as_tensor": lambda device: torch.as_tensor([1.0], device=device),
    "eye": lambda device: torch.eye(2, device=device, pin_memory=False),
    "new_empty": lambda device: torch.ones(2).new_empty(3, device=device),
    "new_zeros": lambda device: torch.ones(2).new_zeros(3, device=device),
    "to": lambda device: torch.ones(2).to(device),
    "to named": lambda device: torch.ones(2).to(device=device, dtype=torch.float16, non_blocking=True),
    "to with dtype": lambda device: torch.ones(2).to(device, torch.bfloat16),
    "cuda": lambda device: torch.ones(2).cuda(device),
    "cuda alone": lambda _: torch.ones(2).cuda(),
    "cuda, not waiting": lambda _: torch.ones(2).cuda(non_blocking=True),
    "pinned": lambda device: torch.empty(2, pin_memory=True).pin_memory().to(device),
    "Linear": lambda device: torch.nn.Linear(2, 2, device=device).weight,
    "Module.to": lambda device: torch.nn.Linear(2, 2).to(device).weight,
    "Module.to with dtype": lambda device: torch.nn.Linear(2, 2).to(device, torch.float64).weight,
    "Module.cuda": lambda _: torch.nn.Sequential(torch.nn.BatchNorm1d(2)).cuda().state_dict()["0.running_mean"],
    "Parameter": lambda device: torch.nn.Parameter(torch.empty(2, device=device)),
}


@pytest.fixture
def cpu() -> Iterator[None]:
    """Inside, CUDA is the CPU."""
    with on_the_cpu():
        yield


@pytest.mark.parametrize("device", CUDA, ids=str)
@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_a_tensor_made_for_a_gpu_lies_on_the_cpu(cpu: None, make: Callable[[Any], torch.Tensor], device: Any) -> None:
    assert make(device).device.type == "cpu"


@pytest.mark.parametrize("device", ["cuda", torch.device("cuda:0")])
def test_a_default_device_is_the_cpu(cpu: None, device: Any) -> None:
    with torch.device(device):
        assert torch.zeros(2).device.type == "cpu"
    torch.set_default_device(device)
    try:
        assert torch.zeros(2).device.type == "cpu"
    finally:
        torch.set_default_device(None)


def test_other_devices_are_left_alone(cpu: None) -> None:
    assert torch.empty(2, device="meta").device.type == "meta"
    assert torch.ones(2).to("meta").device.type == "meta"
    assert torch.ones(2).to("cpu").device.type == "cpu"


def test_values_and_other_words_are_kept(cpu: None) -> None:
    x = torch.randn(3, 4)
    assert torch.equal(x.cuda(), x)
    assert torch.equal(torch.einsum("ij->ji", x), x.T)
    assert torch.full((2,), 7, dtype=torch.int16, device="cuda").tolist() == [7, 7]
    assert torch.ones(2, requires_grad=True, device="cuda").requires_grad


def test_a_kernel_that_asks_whether_its_input_is_on_a_gpu_goes_on(cpu: None) -> None:
    x = torch.ones(2, device="cuda")
    assert x.is_cuda
    assert torch.nn.Parameter(x).is_cuda
    assert not torch.ones(2).is_sparse


def test_calls_that_wait_for_or_choose_a_device_do_nothing(cpu: None) -> None:
    x = torch.ones(2, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.synchronize("cuda:0")
    torch.cuda.empty_cache()
    torch.cuda.set_device(0)
    torch.cuda.manual_seed(0)
    with torch.cuda.device(x.device), torch.cuda.device(1), torch.cuda.device_of(x):
        assert torch.cuda.current_device() == 0
    assert isinstance(torch.cuda.device, type)


@pytest.mark.parametrize("told", STAND_INS, ids=lambda told: told.name)
def test_who_asks_for_the_device_is_told_of_a_real_one(told: Any) -> None:
    with on_the_cpu(told):
        for device in ((), (0,), ("cuda",), (torch.device("cuda"),)):
            properties: Any = torch.cuda.get_device_properties(*device)
            assert (properties.name, properties.multi_processor_count) == (told.name, told.multiprocessors)
        for name in ("major", "minor", "total_memory", "warp_size", "max_threads_per_multi_processor"):
            assert getattr(properties, name) is not None
        assert torch.cuda.get_device_capability() == told.capability
        assert torch.cuda.get_device_name() == told.name


def test_a_device_is_there_for_who_asks_whether_there_is_one() -> None:
    before = torch.cuda.device_count()
    with on_the_cpu(available=True):
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
    with on_the_cpu():
        assert torch.cuda.device_count() == before


@pytest.mark.parametrize("raised", [False, True])
def test_everything_is_as_before_afterwards(raised: bool) -> None:
    names = [name for name in dir(torch.cuda) if not name.startswith("__")]
    before = {name: getattr(torch.cuda, name) for name in names}
    try:
        with on_the_cpu():
            assert torch.cuda.synchronize is not before["synchronize"]
            if raised:
                raise KeyError("inside")
    except KeyError:
        assert raised
    assert [name for name in names if getattr(torch.cuda, name) is not before[name]] == []
    assert not torch.ones(2).is_cuda
    with pytest.raises((RuntimeError, AssertionError), match=r"CUDA|NVIDIA"):
        torch.empty(2, device="cuda:99")
