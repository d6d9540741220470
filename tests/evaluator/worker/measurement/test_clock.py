"""The clock in a worker: what it measures, and what it says of work outside its window."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.worker.measurement.clock import _SLOP_NS, Clock, _union, _window

FLUSH = (0, 1_000_000, "void at::native::vectorized_elementwise_kernel")
SPIN = (1_000_000, 2_000_000, "at::cuda::spin_kernel(long)")
MARK = (5_000_000, 5_001_000, "at::cuda::spin_kernel(long)")


def window(*own: tuple[int, int, str]) -> dict[str, Any]:
    """What is said of these kernels beside a flush, a spin that ends at 2 ms, and a marker that begins at 5 ms."""
    return _window(sorted([FLUSH, SPIN, MARK, *own]))


# --- the window -------------------------------------------------------------------------------------------------------


def test_nothing_ran() -> None:
    assert window() == {"watched": True, "kernels": 0, "outside": 0, "outside_name": "", "busy_us": 0.0}


def test_work_between_the_spin_and_the_marker() -> None:
    found = window((2_000_100, 2_500_000, "a"), (2_400_000, 3_000_000, "b"), (4_000_000, 4_000_500, "c"))
    assert found == {"watched": True, "kernels": 3, "outside": 0, "outside_name": "", "busy_us": 1000.4}


@pytest.mark.parametrize(
    ("begin", "end", "outside"),
    [
        (2_000_000 - _SLOP_NS, 3_000_000, 0),
        (2_000_000 - _SLOP_NS - 1, 3_000_000, 1),
        (3_000_000, 5_000_000 + _SLOP_NS, 0),
        (3_000_000, 5_000_000 + _SLOP_NS + 1, 1),
        (1_200_000, 1_800_000, 1),
        (5_500_000, 5_600_000, 1),
        (1_100_000, 6_000_000, 1),
    ],
)
def test_what_reaches_beyond_the_window_is_outside(begin: int, end: int, outside: int) -> None:
    found = window((2_100_000, 2_200_000, "honest"), (begin, end, "stray"))
    assert (found["kernels"], found["outside"], found["outside_name"]) == (2, outside, "stray" if outside else "")
    assert found["watched"]


def test_the_first_of_those_outside_is_named_and_cut() -> None:
    found = window((1_500_000, 1_600_000, "x" * 300), (1_700_000, 1_800_000, "later"))
    assert (found["outside"], found["outside_name"]) == (2, "x" * 200)


@pytest.mark.parametrize(
    "work",
    [
        [FLUSH, SPIN],
        [FLUSH, MARK],
        [FLUSH, SPIN, (3_000_000, 3_100_000, "a spin_kernel of the candidate's own"), MARK],
        [SPIN, MARK],
        [FLUSH, (500_000, 600_000, "under the flush"), SPIN, MARK],
        [(0, 10, "before"), (20, 30, "flush"), SPIN, MARK],
    ],
)
def test_a_window_that_is_not_clear_holds_all_against_the_call(work: list[tuple[int, int, str]]) -> None:
    found = _window(work)
    assert (found["watched"], found["outside"], found["kernels"]) == (True, len(work), len(work))
    assert found["outside_name"].startswith(f"no clear window: {work[0][2][:60]}")
    assert len(found["outside_name"]) <= 400


def test_a_profiler_that_saw_nothing() -> None:
    found = _window([])
    assert (found["watched"], found["kernels"], found["outside"]) == (False, 0, 0)


spans = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], pair[0] + pair[1], "k")), max_size=12
).map(sorted)


@given(spans)
def test_time_in_which_several_run_counts_once(work: list[tuple[int, int, str]]) -> None:
    assert _union(work) == len({tick for begin, end, _ in work for tick in range(begin, end)})


@given(spans)
def test_work_in_the_window_is_never_outside(work: list[tuple[int, int, str]]) -> None:
    moved = [(2_000_000 + begin, 2_000_000 + end, name) for begin, end, name in work]
    found = window(*moved)
    assert (found["kernels"], found["outside"]) == (len(work), 0)
    assert found["busy_us"] == _union(work) / 1e3


# --- on a GPU ---------------------------------------------------------------------------------------------------------


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
def test_the_profiler_sees_joined_work_inside(device: torch.device) -> None:
    clock, call = Clock(device), work(device)
    side = new_stream()

    def joined() -> Any:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = call()
        torch.cuda.current_stream().wait_stream(side)
        return result

    for one in (call, joined):
        found, _ = clock.spans(one, 2000.0)
        assert (found["watched"], found["outside"], found["outside_name"]) == (True, 0, "")
        assert found["kernels"] >= 1
        assert 0 < found["busy_us"] <= found["us"] * 1.1


@pytest.mark.gpu
def test_the_profiler_sees_work_on_a_stream_that_nobody_joins_outside(device: torch.device) -> None:
    clock, call = Clock(device), work(device, 8192)
    side = new_stream()

    def unjoined() -> None:
        time.sleep(0.0005)  # until the flush is over
        with torch.cuda.stream(side):
            call()

    found, _ = clock.spans(unjoined, 2000.0)
    assert found["watched"]
    assert found["outside"] >= 1
    assert found["outside_name"]
    assert found["us"] < found["busy_us"] / 2  # the events saw next to nothing of it


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
