"""The clock in a worker: what it measures, on a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from evaluator.worker.measurement.clock import Clock


@pytest.fixture
def device() -> Iterator[torch.device]:
    """The GPU, with nothing under way."""
    torch.cuda.synchronize()
    yield torch.device("cuda:0")
    torch.cuda.synchronize()


def work(device: torch.device, n: int = 4096) -> Callable[[], torch.Tensor]:
    """A product that takes milliseconds, warm."""
    a = torch.randn(n, n, device=device)
    b = torch.empty_like(a)
    torch.mm(a, a, out=b)
    torch.cuda.synchronize()
    return lambda: torch.mm(a, a, out=b)


def new_stream() -> Any:
    """A stream of its own."""
    make: Any = torch.cuda.Stream  # torch does not annotate it
    return make()


def microseconds(clock: Clock, call: Callable[[], Any], spin_us: float = 500.0) -> float:
    """One turn's time on the device."""
    return float(clock.finish(clock.sample(call, spin_us)[0])["us"])


@pytest.mark.gpu
def test_a_turn_tells_the_time_and_gives_the_result(device: torch.device) -> None:
    clock = Clock(device)
    assert clock.flush_bytes >= max(2 * clock.l2_bytes, 64 << 20)
    assert Clock(device, 1 << 20).flush_bytes == 1 << 20
    call = work(device)
    measured, result = clock.sample(call, 500.0)
    done = clock.finish(measured)
    assert result is call()
    assert not done["late"]
    assert 0 < done["enqueue_us"] < 500
    one, two = (min(microseconds(clock, work(device, n)) for _ in range(5)) for n in (2048, 4096))
    assert 4 < two / one < 16  # eight times the operations


@pytest.mark.gpu
def test_the_spin_before_a_call_is_not_in_its_time(device: torch.device) -> None:
    clock = Clock(device)
    assert microseconds(clock, lambda: None, 20_000.0) < 1000


@pytest.mark.gpu
@pytest.mark.parametrize(("spin_us", "host_us", "late"), [(1.0, 20_000, True), (100_000.0, 1000, False)])
def test_a_call_that_the_spin_was_too_short_for_is_late(
    device: torch.device, spin_us: float, host_us: int, late: bool
) -> None:
    clock = Clock(device)
    measured, _ = clock.sample(lambda: time.sleep(host_us / 1e6), spin_us)
    assert measured["late"] is late
    assert measured["enqueue_us"] >= host_us
    clock.finish(measured)


@pytest.mark.gpu
def test_empty_pairs_are_short(device: torch.device) -> None:
    found = Clock(device).empty_pairs()
    assert len(found) == 20
    assert all(0 <= us < 100 for us in found)
    assert min(found) < 20


@pytest.mark.gpu
def test_the_events_belong_to_the_default_stream_whatever_the_call_leaves(device: torch.device) -> None:
    clock, call = Clock(device), work(device, 8192)
    honest = microseconds(clock, call)
    other = new_stream()

    def leaves() -> None:
        call()
        torch.cuda.set_stream(other)

    assert microseconds(clock, leaves) > honest / 2
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


class NoEvent:
    """An event that says that nothing takes any time."""

    def __init__(self, *_: Any, **named: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        """Nothing."""

    def elapsed_time(self, *_: Any) -> float:
        """No time."""
        return 0.0

    query = synchronize = wait = elapsed_time


@pytest.mark.gpu
def test_replaced_names_of_torch_change_nothing(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, call = Clock(device), work(device, 8192)
    before = microseconds(clock, call)
    torch.cuda.synchronize()
    for owner, name in (
        (torch.cuda, "Event"),
        (torch, "Event"),
        (torch._C, "_CudaEventBase"),
    ):
        monkeypatch.setattr(owner, name, NoEvent)
    for owner, name in (
        (torch.cuda, "synchronize"),
        (torch.cuda, "default_stream"),
        (torch.cuda, "current_stream"),
        (torch._C, "_cuda_synchronize"),
        (torch._C, "_cuda_sleep"),
        (time, "perf_counter"),
    ):
        monkeypatch.setattr(owner, name, lambda *_: 0.0)
    after = microseconds(clock, call)
    fresh = microseconds(Clock(device), call) if after else 0.0
    monkeypatch.undo()
    assert after > before / 2
    assert fresh > before / 2
