"""What the device does at best: kernels that move exactly so many bytes, and turns that are not late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from evaluator.sandbox.fork_server import ForkServer
from evaluator.worker.measurement import rates
from evaluator.worker.measurement.clock import Clock
from evaluator.worker.measurement.rates import MATMULS, rate
from tests.evaluator.workers import kernel, shaped, specs, values

CPU = torch.device("cpu")


class Traffic(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Counts what copies and fills read and write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self.read = self.written = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and run."""
        name = func.overloadpacket.__name__
        if name in ("copy_", "fill_"):
            self.written += args[0].nbytes
        if name == "copy_":
            self.read += args[1].nbytes
        return func(*args, **(kwargs or {}))


def moved(kind: str, read: int, written: int, patch: pytest.MonkeyPatch) -> tuple[int, int]:
    """(bytes read, bytes written) by one call."""
    by_kernel = 0

    def reading(source: torch.Tensor) -> Callable[[], None]:
        def read_all() -> None:
            nonlocal by_kernel
            by_kernel += source.nbytes

        return read_all

    patch.setattr(rates, "reading", reading)
    call = rates.traffic(kind, read, written, CPU)
    with Traffic() as seen:
        call()
    return seen.read + by_kernel, seen.written


sizes = st.integers(1, 5000).map(lambda n: 4 * n)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sizes, sizes)
def test_every_kind_moves_what_it_says(monkeypatch: pytest.MonkeyPatch, one: int, two: int) -> None:
    most, least = max(one, two), min(one, two)
    for kind, read, written in (
        ("copy", one, one),
        ("read", one, 0),
        ("fill", 0, one),
        ("copy+read", most, least),
        ("copy+fill", least, most),
        ("read+fill", one, two),
        ("copy+read", one, one),
        ("copy+fill", one, one),
    ):
        assert moved(kind, read, written, monkeypatch) == (read, written), kind


def test_a_sum_of_every_block_reads_all(server: ForkServer) -> None:
    """In Triton's interpreter, which a worker for the CPU has."""
    text = (
        "import torch\nfrom evaluator.worker.measurement import rates\n"
        "def run(x):\n"
        "    call = rates.reading(x)\n"
        "    call()\n"
        "    cells = dict(zip(call.__code__.co_freevars, (c.cell_contents for c in call.__closure__)))\n"
        "    return cells['target']\n"
    )
    x = torch.randint(-8, 8, (20_000,)).float()
    expected = torch.stack([part.sum() for part in torch.split(x, rates.BLOCK)])
    run = kernel(server, text)
    try:
        (found,) = run.call(values(x), shaped(specs(expected), [], [])).outputs
    finally:
        run.close()
    assert found.tolist() == expected.tolist()


class HostClock:
    """Takes as given how long a spin must be so that a call is not late."""

    def __init__(self, needed_us: float) -> None:
        self.needed_us = needed_us
        self.spins: list[float] = []
        self.results: list[Any] = []
        self.tf32: list[bool] = []

    def sample(self, call: Callable[[], Any], spin_us: float) -> tuple[dict[str, Any], Any]:
        """One call."""
        self.spins.append(spin_us)
        result = call()
        self.results.append(None if result is None else result.clone())
        self.tf32.append(torch.backends.cuda.matmul.allow_tf32)
        return {"late": spin_us < self.needed_us}, result

    def finish(self, measured: dict[str, Any]) -> dict[str, Any]:
        """Its time is the number of turns so far."""
        return {**measured, "us": float(len(self.spins))}


def rated(clock: HostClock, **message: Any) -> list[float]:
    """What `rate` gives on the CPU."""
    return rate(clock, CPU, {"samples": 3, **message})  # type: ignore[arg-type]  # it has what a clock has


def test_a_late_turn_is_taken_again_with_a_longer_spin() -> None:
    clock = HostClock(needed_us=600.0)
    assert rated(clock, kind="fill", read_bytes=0, written_bytes=64) == [3.0, 6.0, 9.0]
    assert clock.spins == [150.0, 300.0, 600.0] * 3


def test_a_call_that_is_always_late_comes_to_an_end() -> None:
    clock = HostClock(needed_us=float("inf"))
    assert len(rated(clock, kind="launch")) == 3
    assert 1e5 < max(clock.spins) < 4e5


def test_a_launch_is_one_small_kernel_and_is_warm() -> None:
    clock = HostClock(0.0)
    rated(clock, kind="launch")
    assert [r.tolist() for r in clock.results] == [[float(n)] * 32 for n in (4, 5, 6)]  # three calls before


@pytest.mark.parametrize("dtype", sorted(MATMULS))
def test_products_of_every_type(dtype: str) -> None:
    clock = HostClock(0.0)
    before = torch.backends.cuda.matmul.allow_tf32
    assert len(rated(clock, kind="matmul", dtype=dtype, n=8)) == 3
    assert clock.results[0].shape == (8, 8)
    assert clock.results[0].dtype is MATMULS[dtype]
    assert bool(clock.results[0].any())
    assert clock.tf32 == [dtype == "tf32"] * 3
    assert torch.backends.cuda.matmul.allow_tf32 is before is False


def test_tf32_is_off_again_after_a_failure() -> None:
    with pytest.raises(KeyError):
        rated(HostClock(0.0), kind="matmul", dtype="tf32")
    assert torch.backends.cuda.matmul.allow_tf32 is False


@pytest.mark.gpu
def test_rates_of_a_gpu_are_those_of_a_gpu() -> None:
    device = torch.device("cuda:0")
    clock = Clock(device)
    size = 256 << 20

    def best(kind: str, **words: Any) -> float:
        return min(rate(clock, device, {"kind": kind, "samples": 5, **words}))

    copy = best("copy", read_bytes=size, written_bytes=size)
    read = best("read", read_bytes=size, written_bytes=0)
    fill = best("fill", read_bytes=0, written_bytes=size)
    assert 0 < read < copy
    assert 0 < fill < copy
    assert copy < 1.3 * (read + fill)
    assert best("launch") < read
    assert best("matmul", dtype="bf16", n=4096) < best("matmul", dtype="tf32", n=4096)
    assert best("matmul", dtype="tf32", n=4096) < best("matmul", dtype="fp32", n=4096)
