"""Occupancy on the GPU that is here: a compiled file and what follows from it, against the driver's own answer."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evaluator.sass.cubin import read_cubin
from evaluator.sass.tools import Target
from kbs.hardware.occupancy import Usage, occupancy
from tests.evaluator.cubins import assemble_heavy
from tests.kbs.hardware.test_occupancy import limits_of

SHARED, REGISTERS = 1, 4
"""Function attributes of the driver: bytes of static shared memory, registers a thread."""
OPT_IN = 8
"""Function attribute that allows more dynamic shared memory."""
MAJOR, MINOR = 75, 76
"""Device attributes: compute capability."""


@dataclass(frozen=True)
class Made:
    """A kernel that is compiled, and launches of it that are asked about."""

    live: int
    """Values that are alive at once."""
    shared: int
    barriers: int
    launches: tuple[tuple[int, int], ...]
    """Threads a block, bytes of dynamic shared memory."""


THREADS = (1, 32, 33, 64, 96, 128, 160, 192, 256, 320, 512, 768, 1024)
KERNELS = [
    Made(2, 0, 1, tuple((threads, 0) for threads in THREADS)),
    Made(24, 0, 1, tuple((threads, 0) for threads in THREADS)),
    Made(40, 16, 1, tuple((threads, 0) for threads in THREADS)),
    Made(64, 1000, 1, tuple((threads, 8 << 10) for threads in THREADS)),
    Made(100, 4096, 2, tuple((threads, 0) for threads in THREADS)),
    Made(128, 0, 1, tuple((threads, 20_000) for threads in THREADS[:10])),
    Made(160, 12 << 10, 4, tuple((threads, 100) for threads in THREADS[:10])),
    Made(220, 0, 1, tuple((threads, 0) for threads in THREADS[:9])),
    Made(16, 48 << 10, 1, tuple((128, added) for added in (0, 1, 1024, 16 << 10, 48 << 10))),
    Made(8, 0, 16, tuple((threads, 0) for threads in THREADS)),
    Made(8, 0, 1, tuple((64, added) for added in (0, 1, 127, 128, 1024, 31 << 10, 32 << 10, 64 << 10, 98 << 10))),
]


class Driver:
    """The CUDA driver, with the device's primary context current."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name: str, *words: object) -> None:
        """A function of the driver; an error fails the test."""
        error = getattr(self.cuda, name)(*words)
        assert error == 0, f"{name}: error {error}"

    def number(self, name: str, *words: object) -> int:
        """A function of the driver that writes a number into its first argument."""
        found = ctypes.c_int()
        self.call(name, ctypes.byref(found), *words)
        return found.value

    def load(self, cubin: Path) -> ctypes.c_void_p:
        """The kernel `heavy` of a file."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"heavy")
        return function

    def close(self) -> None:
        """Give the context back."""
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.close()


@pytest.mark.processes
@pytest.mark.gpu
@pytest.mark.parametrize("made", KERNELS, ids=lambda made: f"{made.live}-{made.shared}-{made.barriers}")
def test_equal_to_the_driver(made: Made, driver: Driver, tmp_path: Path) -> None:
    """Registers and static shared memory as the driver reports them; blocks for every launch as its API computes."""
    target = Target(
        10 * driver.number("cuDeviceGetAttribute", MAJOR, driver.device)
        + driver.number("cuDeviceGetAttribute", MINOR, driver.device)
    )
    limits = limits_of(f"{target.number // 10}.{target.number % 10}")
    cubin = assemble_heavy(tmp_path, target.name, made.live, made.shared, made.barriers)
    (kernel,) = read_cubin(cubin).kernels
    function = driver.load(cubin)
    assert kernel.usage.registers == driver.number("cuFuncGetAttribute", REGISTERS, function)
    assert kernel.usage.shared == driver.number("cuFuncGetAttribute", SHARED, function)
    assert kernel.usage.barriers == made.barriers
    for threads, added in made.launches:
        driver.call("cuFuncSetAttribute", function, OPT_IN, added)
        theirs = driver.number("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, ctypes.c_size_t(added))
        usage = Usage(threads, kernel.usage.registers, kernel.usage.shared + added, kernel.usage.barriers)
        assert occupancy(usage, limits).blocks == theirs, (threads, added)
