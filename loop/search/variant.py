"""A family of candidate kernels with its discrete space, and the GPU that they are meant for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Value = int | str | bool
Config = Mapping[str, Value]
"""A value for each name of a space."""


@dataclass(frozen=True)
class Target:
    """What a model of cost needs to know of a GPU. All of it comes from cited specs or from a measurement."""

    capability: int
    """Ten times the major version of the compute capability, plus the minor: 90."""
    multiprocessors: int
    bandwidth: float
    """Bytes a second that device memory gives."""
    l2_bytes: int
    launch_us: float = 2.0
    """Microseconds from one queued launch to the next."""
    registers: int = 65536
    """32-bit registers of a multiprocessor."""
    threads: int = 2048
    """Resident threads of a multiprocessor."""
    shared_bytes: int = 228 << 10
    """Shared memory of a multiprocessor."""
    flops: float = 0.0
    """Operations a second of the matrix units at the problem's precision; 0: not known."""


@dataclass(frozen=True)
class Variant:
    """One family of candidate kernels, and its discrete space."""

    name: str
    """Such as `row-per-program` or `split-reduction`; no two variants of a problem share one."""
    methods: tuple[str, ...]
    """Ids of the method registry that it stands for."""
    space: Mapping[str, tuple[Value, ...]]
    """Names and their values; the first value of each is a sensible default."""
    render: Callable[[Config], str]
    """The whole text of a kernel file that stands alone."""
    cost: Callable[[Config], float]
    """Microseconds by a model from floors (bytes, occupancy, waves): good for ranking and nothing else; `inf` where the
    configuration cannot work."""
    why: str
    """One plain sentence on why it may be faster, without a figure of any hardware."""

    @property
    def default(self) -> dict[str, Value]:
        """The first value of each name."""
        return {name: values[0] for name, values in self.space.items()}
